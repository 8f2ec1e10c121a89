package facade

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Inside is the facade for messages that come another way than by HTTP, from somebody whom another actor has identified: the same
// answers, the same policy, the same audit. It serves from the start of the facade's first generation on; between two of them it
// refuses. The zero value is ready, one for each facade ([Config.Inside]).
type Inside struct{ front atomic.Pointer[front] }

// Message is one JSON-RPC message of the Model Context Protocol on its way in.
type Message struct {
	Caller capability.Caller // not anonymous: somebody has said who it is
	// Peer is put before the ids of the messages of one connection, since callers with one token may choose the same.
	Peer string
	// Text is valid UTF-8 and JSON, and stays unchanged until Serve has returned. Bytes pays for it and is taken over.
	Text  []byte
	Bytes *kernel.Lease
	// Line writes one message of the facade's, without the end of its line. It may be called on several goroutines; an error says that
	// nobody reads any more.
	Line func(write func(io.Writer) error) error
	// Begun is called when the next message of the connection may be served, however long this one takes: so a cancellation never
	// overtakes what it is about. It is called at least once, at the latest when Serve returns; it must not block.
	Begun func()
}

// Serve answers one message, and returns when it has been answered. The end of ctx is what the closing of the request is over HTTP.
func (i *Inside) Serve(ctx context.Context, m Message) {
	defer m.Begun()
	f := i.front.Load()
	if f == nil || !f.open.TryRLock() {
		m.Bytes.Release()
		if frame, bad := jsonrpc.Scan(m.Text); bad == nil && frame.Kind == jsonrpc.Request {
			_ = m.Line(func(w io.Writer) error {
				return errorAnswer(frame.ID, jsonrpc.Draining(0).AppendObject(nil)).writeTo(w)
			})
		}
		return
	}
	defer f.open.RUnlock()
	ctx, done := f.within(ctx)
	defer done()
	who := m.Caller
	who.Desk = who.Desk.Current() // a desk that crashed has come back under the same identity
	defer func() {                // ends this message; the others go on
		if p := recover(); p != nil {
			f.panicked(fmt.Sprint(p), debug.Stack())
		}
	}()
	x := &exchange{front: f, out: &lineOutlet{front: f, line: m.Line}, ctx: ctx, streams: true, lines: true,
		caller: who, lease: m.Bytes, peer: m.Peer, begun: m.Begun}
	defer x.release()
	slot, err := x.payer().Acquire(requestBytes)
	if err != nil && len(m.Text) <= smallBody { // an agent whose session is full can still shake hands
		slot, err = f.account.Acquire(requestBytes)
	}
	defer slot.Release()
	if err != nil {
		frame, _ := jsonrpc.Scan(m.Text)
		x.out.full(frame.ID, err)
		return
	}
	x.serve(m.Text)
}
