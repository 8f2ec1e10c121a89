package connection

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// errInterrupted ends a read that the connection itself called off.
var errInterrupted = errors.New("reading was called off")

// wire is the net.Conn in front of gws. It follows the WebSocket frames that come in, so that gws sees a header only when
// the frame is sound, fits the limits and is paid for: gws allocates from the length in the header, and dies of a length
// above 2^63. It also bounds how long a message may take to come in.
//
// Reading belongs to one goroutine. What gws writes after the handshake is never sent: it can only be a close frame, and the
// connection has its own.
type wire struct {
	net.Conn // the socket
	in       *bufio.Reader
	account  *kernel.Account
	large    *kernel.Account // bounds the large messages under way over all sockets; nil = no bound
	cfg      *Config
	ctx      context.Context // ends the wait for bytes

	// open lifts the early limit; set by the reader behind a sound initialize.
	open atomic.Bool
	// paused is set while the socket is not read because an account has no room: the silence is not the peer's then.
	paused atomic.Bool
	// stopped is set before a read is called off.
	stopped atomic.Bool
	// heard is when the last byte came in, in Unix nanoseconds; data the same of the last data frame either way.
	heard, data atomic.Int64
	received    atomic.Int64 // bytes of whole frames, headers included

	upgraded bool

	// The reader's own, of the frame under way:
	header       [14]byte
	parsed, sent int   // bytes of header that are valid, and that gws has got
	left         int64 // bytes of payload that gws has not got
	inMessage    bool  // a fragmented message is open
	sum          int64 // its bytes so far, this frame's included
	lease        *kernel.Lease
	claim        *kernel.Lease // on large, until the message is whole
	deadline     time.Time     // for the message or control frame under way; zero between messages
	armed        bool          // the socket has a read deadline
	lenient      bool          // the message under way was given more time, because the pod stood still
	exit         *Exit         // why reading ended, when it was the wire that ended it
}

func newWire(socket net.Conn, in *bufio.Reader, account *kernel.Account, cfg *Config) *wire {
	w := &wire{Conn: socket, in: in, account: account, cfg: cfg, ctx: context.Background()}
	now := stamp()
	w.heard.Store(now)
	w.data.Store(now)
	return w
}

// Read gives gws the next bytes, of one frame at most.
func (w *wire) Read(p []byte) (int, error) {
	if w.exit != nil {
		return 0, w.exit
	}
	if len(p) == 0 {
		return 0, nil
	}
	if w.sent == w.parsed && w.left == 0 {
		if exit := w.next(); exit != nil {
			return 0, w.fail(exit)
		}
	}
	if w.sent < w.parsed {
		n := copy(p, w.header[w.sent:w.parsed])
		w.sent += n
		w.whole()
		return n, nil
	}
	if int64(len(p)) > w.left {
		p = p[:w.left]
	}
	if exit := w.arm(len(p)); exit != nil {
		return 0, w.fail(exit)
	}
	n, err := w.in.Read(p)
	if n == 0 && w.late(err) {
		return w.Read(p)
	}
	w.left -= int64(n)
	w.touch()
	if err != nil && n == 0 {
		return 0, w.fail(w.ended(err, true))
	}
	w.whole()
	return n, nil
}

// whole notes the end of a frame once gws has all of it.
func (w *wire) whole() {
	if w.left > 0 || w.sent < w.parsed {
		return
	}
	if opcode := w.header[0] & 0x0f; opcode < 8 {
		w.data.Store(stamp())
	}
	if !w.inMessage {
		w.deadline = time.Time{}
		w.disarm()
	}
}

// next reads the header of the next frame, judges it and pays for it.
func (w *wire) next() *Exit {
	w.parsed, w.sent = 0, 0
	if err := w.take(1); err != nil {
		return w.ended(err, w.inMessage)
	}
	w.touch()
	if w.deadline.IsZero() {
		w.deadline, w.lenient = time.Now().Add(w.cfg.FrameTimeout), false
	}
	n, err := w.length()
	if err != nil {
		return w.ended(err, true)
	}
	if exit := w.judge(n); exit != nil {
		return exit
	}
	w.left = n
	w.received.Add(int64(w.parsed) + n)
	return nil
}

// length reads the rest of the header. A negative length is one that no frame can have.
func (w *wire) length() (int64, error) {
	if err := w.take(1); err != nil {
		return 0, err
	}
	n := int64(w.header[1] & 0x7f)
	extended := 0
	switch n {
	case 126:
		extended = 2
	case 127:
		extended = 8
	}
	if w.header[1]&0x80 != 0 {
		extended += 4 // the mask
	}
	if err := w.take(extended); err != nil {
		return 0, err
	}
	switch n {
	case 126:
		n = int64(binary.BigEndian.Uint16(w.header[2:4]))
	case 127:
		n = int64(binary.BigEndian.Uint64(w.header[2:10]))
	}
	return n, nil
}

// take reads n more bytes of the header.
func (w *wire) take(n int) error {
	for n > 0 {
		if exit := w.arm(1); exit != nil {
			return exit
		}
		b, err := w.in.ReadByte()
		switch {
		case w.late(err):
			continue
		case err != nil:
			return err
		}
		w.header[w.parsed] = b
		w.parsed++
		n--
	}
	return nil
}

// late gives a message as much time again, once, when the end of its time was noticed far too late: it was the pod, or the machine, that
// stood still, and what the peer sent meanwhile is not read yet. It may be the rest of a header that says more of the frame than its lateness does.
func (w *wire) late(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || w.stopped.Load() || w.lenient || w.deadline.IsZero() || time.Since(w.deadline) <= standstill {
		return false
	}
	w.deadline, w.lenient = time.Now().Add(w.cfg.FrameTimeout), true
	w.armed = false // the socket has the deadline that is over
	return true
}

// judge refuses what is no sound frame, or too large, and charges what is let through.
func (w *wire) judge(n int64) *Exit {
	first, second := w.header[0], w.header[1]
	final, opcode := first&0x80 != 0, first&0x0f
	unsound := func(why string) *Exit { return &Exit{Reason: ProtocolError, Err: errors.New(why)} }
	switch {
	case n < 0:
		return unsound("a frame length above 2^63")
	case first&0x70 != 0:
		return unsound("a reserved bit is set")
	case second&0x80 == 0:
		return unsound("the frame is not masked")
	case opcode >= 8:
		if opcode > 10 {
			return unsound("a reserved opcode")
		}
		if !final || second&0x7f > 125 { // by how the length is spelled: 126 and 127 announce a longer form
			return unsound("a control frame that is long or in fragments")
		}
		return nil // at most 125 bytes: the connection's own reserve has room for one
	case opcode > 2:
		return unsound("a reserved opcode")
	case (opcode == 0) != w.inMessage:
		return unsound("a fragment out of place")
	}
	limit := w.cfg.FrameBytes
	if !w.open.Load() {
		limit = w.cfg.EarlyFrameBytes
	}
	if !w.inMessage {
		w.sum = 0
	}
	if n > limit-w.sum {
		return &Exit{Reason: FrameTooLarge, Err: &tooLarge{limit: limit}}
	}
	w.sum += n
	fragmented := w.inMessage || !final
	w.inMessage = !final
	return w.charge(n, fragmented)
}

// charge pays for the frame before gws sees its header. A message in fragments is gathered in a second buffer, which
// doubles when it grows: so does its lease, and one lease stands for all of it whatever the number of fragments.
func (w *wire) charge(n int64, fragmented bool) *Exit {
	need := readBuffer(n)
	if fragmented {
		need += w.sum
		have := w.lease.Size()
		if need <= have {
			return nil
		}
		need = max(need, min(2*have, 2*w.cfg.FrameBytes))
	}
	if w.large != nil && need > w.cfg.EarlyFrameBytes {
		if exit := w.pay(w.large, need, &w.claim); exit != nil {
			return exit
		}
	}
	return w.pay(w.account, need, &w.lease)
}

// pay waits for bytes, never for an actor, and puts the new lease in the place of the old one. The time of the wait is not
// the peer's fault.
func (w *wire) pay(account *kernel.Account, n int64, into **kernel.Lease) *Exit {
	lease, err := account.Acquire(n)
	if err != nil {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(w.ctx, w.cfg.BytesWait)
		w.paused.Store(true)
		lease, err = account.AcquireWait(ctx, n)
		w.touch()
		w.paused.Store(false)
		cancel()
		w.deadline = w.deadline.Add(time.Since(begun))
		w.armed = false // the socket has the earlier deadline
	}
	switch {
	case errors.Is(err, kernel.ErrStopped), err != nil && w.stopped.Load():
		return &Exit{Reason: ReadError, Err: errInterrupted}
	case err != nil:
		return &Exit{Reason: Overloaded, Err: err}
	}
	(*into).Release()
	*into = lease
	return nil
}

// paid hands over the lease of the message that gws has just delivered, cut to its size.
func (w *wire) paid(size int) *kernel.Lease {
	lease := w.lease
	w.claim.Release()
	w.lease, w.claim = nil, nil
	lease.Shrink(int64(size))
	return lease
}

// arm puts the message's deadline on the socket before a read that may block.
func (w *wire) arm(n int) *Exit {
	if w.stopped.Load() {
		return &Exit{Reason: ReadError, Err: errInterrupted}
	}
	if w.armed || w.deadline.IsZero() || w.in.Buffered() >= n {
		return nil
	}
	w.armed = true
	if err := w.SetReadDeadline(w.deadline); err != nil {
		return &Exit{Reason: ReadError, Err: err}
	}
	if w.stopped.Load() { // called off between the look above and the deadline: make sure that it stays off
		_ = w.SetReadDeadline(past)
	}
	return nil
}

func (w *wire) disarm() {
	if !w.armed {
		return
	}
	w.armed = false
	_ = w.SetReadDeadline(time.Time{})
	if w.stopped.Load() {
		_ = w.SetReadDeadline(past)
	}
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// interrupt calls reading off, from any goroutine.
func (w *wire) interrupt() {
	w.stopped.Store(true)
	_ = w.SetReadDeadline(past)
}

func (w *wire) touch() { w.heard.Store(stamp()) }

// ended says what an error of the socket means; inside tells that a message was under way.
func (w *wire) ended(err error, inside bool) *Exit {
	var exit *Exit
	switch {
	case errors.As(err, &exit):
		return exit
	case w.stopped.Load():
		return &Exit{Reason: ReadError, Err: errInterrupted}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Exit{Reason: FrameTimeout}
	case errors.Is(err, io.EOF) && !inside:
		return &Exit{Reason: StreamEnded}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Exit{Reason: StreamEnded, Err: io.ErrUnexpectedEOF}
	}
	return &Exit{Reason: ReadError, Err: err}
}

func (w *wire) fail(exit *Exit) error {
	if w.exit == nil {
		w.exit = exit
	}
	return w.exit
}

// Write passes the handshake through. Later the only thing that gws writes is a close frame, from the reader; the
// connection sends its own, when nothing else is being written.
func (w *wire) Write(p []byte) (int, error) {
	if !w.upgraded {
		return w.Conn.Write(p)
	}
	return len(p), nil
}

// Close does nothing after the handshake: the socket is closed by its owner, after the close frame is out.
func (w *wire) Close() error {
	if !w.upgraded {
		return w.Conn.Close()
	}
	return nil
}

// tooLarge is the error of a frame above a limit.
type tooLarge struct{ limit int64 }

func (e *tooLarge) Error() string { return "a message above " + sizeText(e.limit) }
