package connection

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// pooledBytes is the size up to which gws keeps its read buffers in a pool: such a message is copied out, so that the buffer
// goes back and a queued frame holds no more than it pays for.
const pooledBytes = 256 << 10

// inFrame is one message of the client, raw, with the lease that pays for it.
type inFrame struct {
	data  []byte
	bytes *kernel.Lease
}

// Lease implements kernel.Leased.
func (f *inFrame) Lease() *kernel.Lease { return f.bytes }

// readingOver is the last that the reader tells: after all frames before it.
type readingOver struct{ exit *Exit }

// reader is gws's event handler. It hands frames to the actor and never waits for it. After OnOpen all its methods run on one
// goroutine, which the actor owns.
type reader struct {
	wire   *wire
	client *client
	trace  *tracer
	closed error // what gws ended with
}

var _ gws.Event = (*reader)(nil)

// run reads until the socket ends, the wire refuses something or ctx ends. What must be told in order comes back as a
// readingOver; an end that should not wait behind queued frames stops the actor at once.
func (r *reader) run(ctx context.Context, conn *gws.Conn) kernel.Msg {
	stop := context.AfterFunc(ctx, r.wire.interrupt)
	defer stop()
	r.wire.ctx = ctx
	conn.ReadLoop()
	r.wire.paid(0).Release()
	exit := r.ended()
	switch {
	case errors.Is(exit, errInterrupted):
		return nil
	case exit.Reason == Overloaded:
		r.client.self.Stop(exit)
		return nil
	}
	return readingOver{exit}
}

func (r *reader) ended() *Exit {
	if r.wire.exit != nil {
		return r.wire.exit
	}
	if closed, ok := errors.AsType[*gws.CloseError](r.closed); ok {
		return &Exit{Reason: ClientClosed, PeerCode: closed.Code}
	}
	return &Exit{Reason: ProtocolError, Err: r.closed}
}

// OnOpen implements gws.Event.
func (r *reader) OnOpen(*gws.Conn) {}

// OnClose implements gws.Event.
func (r *reader) OnClose(_ *gws.Conn, err error) { r.closed = err }

// OnPing implements gws.Event: the pong carries the ping's payload, which gws's own does not.
func (r *reader) OnPing(_ *gws.Conn, payload []byte) { r.client.out.answerPing(payload) }

// OnPong implements gws.Event. That something came in was noted by the wire.
func (r *reader) OnPong(*gws.Conn, []byte) {}

// OnMessage implements gws.Event.
func (r *reader) OnMessage(_ *gws.Conn, m *gws.Message) {
	data := m.Bytes()
	lease := r.wire.paid(len(data))
	stats := r.client.stats
	stats.framesIn.Add(1)
	stats.bytesIn.Add(int64(len(data)))
	if m.Opcode != gws.OpcodeText {
		_ = m.Close()
		lease.Release()
		stats.binary.Add(1)
		r.client.self.CountRefusal("binary")
		return
	}
	if len(data) <= pooledBytes {
		data = append(make([]byte, 0, len(data)), data...)
		_ = m.Close()
	}
	data, lease, err := r.mend(data, lease)
	if err == nil {
		r.trace.in(data)
		err = r.client.self.Tell(&inFrame{data, lease})
	}
	if err != nil && !errors.Is(err, kernel.ErrStopped) {
		r.refuse(data, err)
	}
}

// mend replaces what is not UTF-8 by U+FFFD, which takes more room: paid for before it is used.
func (r *reader) mend(data []byte, lease *kernel.Lease) ([]byte, *kernel.Lease, error) {
	if utf8.Valid(data) {
		return data, lease, nil
	}
	bad := 0
	for rest := data; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		if c == utf8.RuneError && n == 1 {
			bad++
		}
		rest = rest[n:]
	}
	r.client.stats.notUTF8.Add(int64(bad))
	r.client.self.CountRefusal("not_utf8")
	larger, err := r.client.account.Acquire(int64(len(data) + 2*bad))
	lease.Release()
	if err != nil {
		return data, nil, err
	}
	data, _ = jsonrpc.ValidUTF8(data)
	larger.Shrink(int64(len(data)))
	return data, larger, nil
}

// refuse ends a frame for which the actor or the account has no room: a request is answered, a notification dropped, and
// whoever waits for an answer is told that it was lost. All are counted, and a peer that goes on is closed.
func (r *reader) refuse(data []byte, why error) {
	cl := r.client
	frame, fault := jsonrpc.ScanLimit(data, int(cl.cfg.RequestBytes))
	switch {
	case fault != nil && !fault.Silent():
		cl.deny(fault.ID, fault.Err())
		return
	case fault == nil && frame.Kind == jsonrpc.Request:
		cl.deny(frame.ID, overloadOf(why))
		return
	case fault == nil && frame.Kind == jsonrpc.Response:
		r.lose(frame, why)
	}
	cl.self.CountRefusal("frame_dropped")
	cl.spend()
}

func (r *reader) lose(frame jsonrpc.Frame, why error) {
	n, ok := frame.ID.Int()
	if !ok || n <= 0 {
		return
	}
	a := r.client.book.takeAsk(uint64(n))
	if a == nil {
		return
	}
	if a.arrived != nil && frame.Result != nil {
		r.client.dismiss(a.arrived(frame.Result))
	}
	if r.client.self.Signal(lostAnswer{a, why}) != nil {
		r.client.self.Stop(&Exit{Reason: Overloaded, Err: why})
	}
}

// sinceText is for the log: how long ago, in whole seconds.
func sinceText(unixNano int64) time.Duration {
	return time.Since(time.Unix(0, unixNano)).Truncate(time.Second)
}
