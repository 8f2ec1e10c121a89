package connection

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// fragmentBytes is the most that is written without looking for a pong, a ping or an end.
const fragmentBytes = 256 << 10

const (
	opText     = 0x1
	opContinue = 0x0
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xa
	finalBit   = 0x80
)

// writer is the only one that writes to the socket after the handshake. It runs on a goroutine that the actor owns.
type writer struct {
	wire   *wire
	socket net.Conn // the innermost, so that parts leave in one system call
	out    *outbox
	cfg    *Config
	stats  *counters
	trace  *tracer
	sent   atomic.Int64 // bytes, frames' headers included

	head [10]byte
	bufs net.Buffers // reused; net.Buffers.WriteTo eats it
	room [4][]byte
}

// run writes until the outbox is finished and empty, or the socket fails. The error is an *Exit.
func (w *writer) run() *Exit {
	for {
		j, ok := w.out.next()
		if !ok {
			<-w.out.wake
			continue
		}
		if j.finish {
			return nil
		}
		var err error
		if j.frame != nil {
			err = w.message(j.frame)
		} else {
			err = w.controlFrame(j)
		}
		switch {
		case errors.Is(err, errAborted):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return &Exit{Reason: WriteTimeout, Err: err}
		case err != nil:
			return &Exit{Reason: WriteError, Err: err}
		}
	}
}

// innermost is the connection that a listener's wrapper holds.
func innermost(socket net.Conn) net.Conn {
	for {
		outer, ok := socket.(interface{ Unwrap() net.Conn })
		if !ok {
			return socket
		}
		socket = outer.Unwrap()
	}
}

// errAborted ends a message in the middle: the connection is being closed without a flush.
var errAborted = errors.New("aborted")

// message writes one text message, in fragments when it is large. Between them go what is urgent.
func (w *writer) message(f *outFrame) error {
	written := false
	defer func() { f.end(written) }() // however it ends
	w.trace.out(f)
	left := f.size()
	w.stats.framesOut.Add(1)
	w.stats.bytesOut.Add(left)
	parts := f.parts
	rest := parts[:]
	opcode := byte(opText)
	for {
		n := min(left, fragmentBytes)
		left -= n
		first := opcode
		if left == 0 {
			first |= finalBit
		}
		w.bufs = append(w.room[:0], w.header(first, n))
		for n > 0 {
			take := min(int64(len(rest[0])), n)
			if take > 0 {
				w.bufs = append(w.bufs, rest[0][:take])
				n -= take
			}
			if rest[0] = rest[0][take:]; len(rest[0]) == 0 && len(rest) > 1 {
				rest = rest[1:]
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
		if left == 0 {
			w.wire.data.Store(stamp())
			written = true
			return nil
		}
		opcode = opContinue
		for {
			j, ok := w.out.urgent()
			if !ok {
				break
			}
			if j.finish {
				return errAborted
			}
			if err := w.controlFrame(j); err != nil {
				return err
			}
		}
	}
}

func (w *writer) controlFrame(j job) error {
	opcode := byte(opPing)
	if j.isPong {
		opcode = opPong
	}
	w.bufs = append(w.room[:0], w.header(opcode|finalBit, int64(len(j.pong))), j.pong)
	return w.flush()
}

// header is that of a server's frame: never masked.
func (w *writer) header(first byte, n int64) []byte {
	w.head[0] = first
	switch {
	case n < 126:
		w.head[1] = byte(n)
		return w.head[:2]
	case n < 1<<16:
		w.head[1] = 126
		binary.BigEndian.PutUint16(w.head[2:4], uint16(n))
		return w.head[:4]
	default:
		w.head[1] = 127
		binary.BigEndian.PutUint64(w.head[2:10], uint64(n))
		return w.head[:10]
	}
}

// flush writes the buffers. A peer that accepts something, however slowly, is never timed out.
func (w *writer) flush() error {
	for {
		if err := w.wire.SetWriteDeadline(time.Now().Add(w.cfg.WriteTimeout)); err != nil {
			return err
		}
		n, err := w.bufs.WriteTo(w.socket)
		w.sent.Add(n)
		if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		return err
	}
}

// goodbye sends the close frame and waits a moment for the peer's side to end: a socket that is closed with bytes unread is
// reset, and the reset can overtake the close frame.
func goodbye(socket net.Conn, closeFrame []byte, wait time.Duration) {
	deadline := time.Now().Add(wait)
	_ = socket.SetWriteDeadline(deadline)
	if _, err := socket.Write(closeFrame); err != nil {
		return
	}
	half, ok := socket.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || socket.SetReadDeadline(deadline) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, socket)
}

// closeFrame builds the frame of a close; the reason is cut to what a control frame holds.
func closeFrame(code uint16, reason string) []byte {
	if len(reason) > 123 {
		reason = reason[:123]
	}
	frame := []byte{opClose | finalBit, byte(2 + len(reason)), 0, 0}
	binary.BigEndian.PutUint16(frame[2:], code)
	return append(frame, reason...)
}
