package connection

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

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
	defer func() { r.wire.paid(0).Release() }() // of a message that never got whole
	conn.ReadLoop()
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
		empty := r.wire.header[1]&0x7f == 0 // of the last frame, which gws shows as code 0, as it does two zeros
		if !empty && !sendable(closed.Code) {
			return &Exit{Reason: ProtocolError, PeerCode: closed.Code, Err: errCloseCode}
		}
		return &Exit{Reason: ClientClosed, PeerCode: closed.Code}
	}
	return &Exit{Reason: ProtocolError, Err: r.closed}
}

// errCloseCode is the error of a close frame whose payload is no code, or one that must not be sent.
var errCloseCode = errors.New("a close frame with a code that must not be sent")

// sendable tells the close codes that may stand in a frame.
func sendable(code uint16) bool {
	switch {
	case code == 1004, code == 1005, code == 1006, code >= 1015 && code < 3000: // reserved, or not assigned to anybody
		return false
	}
	return code >= 1000 && code < 5000
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
	data, pooled := take(data)
	if pooled {
		_ = m.Close()
	}
	data, lease, err := r.mend(data, lease)
	if err != nil {
		r.refuse(data, err, r.client.drop)
		return
	}
	r.greeted(data)
	r.trace.in(data)
	if err = r.client.self.Tell(&inFrame{data, lease}); err != nil {
		r.refuse(data, err, func(error) { r.client.spend() }) // the mailbox counted it
	}
}

// greeted lifts the early limit behind the first initialize that is sound. It is judged here, where the frames pass in their
// order: a client may send its next frame without waiting for the answer, and how large that may be must not depend on how
// far the actor is.
func (r *reader) greeted(data []byte) {
	if r.wire.open.Load() {
		return
	}
	frame, fault := jsonrpc.ScanLimit(data, int(r.client.cfg.RequestBytes))
	if fault != nil || frame.Kind != jsonrpc.Request || frame.Method != acp.MethodInitialize {
		return
	}
	if _, bad := acp.ParseInitialize(frame.Params); bad == nil {
		r.wire.open.Store(true)
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
func (r *reader) refuse(data []byte, why error, count func(error)) {
	if errors.Is(why, kernel.ErrStopped) {
		return
	}
	cl := r.client
	frame, fault := jsonrpc.ScanLimit(data, int(cl.cfg.RequestBytes))
	switch {
	case fault != nil && !fault.Silent():
		cl.deny(fault.ID, fault.Err())
	case fault != nil && fault.Code == jsonrpc.Overload:
		cl.refuse(fault.Err())
	case fault == nil && frame.Kind == jsonrpc.Request:
		cl.send(jsonrpc.AppendError(nil, frame.ID, overloadOf(why)))
		count(why)
	case fault == nil && frame.Kind == jsonrpc.Response:
		r.lose(frame, why)
		count(why)
	default:
		count(why)
	}
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
func sinceText(stamp int64) time.Duration {
	return time.Since(moment(stamp)).Truncate(time.Second)
}
