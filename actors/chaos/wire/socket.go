package wire

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Socket is one open WebSocket, a client's. Writing is safe from any goroutine; one reads at a time, others wait.
type Socket struct {
	conn                 net.Conn
	protocol, connection string
	read, written        atomic.Int64
	mute                 atomic.Bool

	writing sync.Mutex // one frame, or one Raw, at a time
	rand    *rand.Rand // under writing

	reading sync.Mutex
	in      frames
	ended   error // what every further Read answers
}

// closeWait is how long Close waits for the server's close frame.
const closeWait = 2 * time.Second

// piece is the most that is masked and written at once.
const piece = 64 << 10

// pieces are the buffers in which frames are masked: the caller's bytes stay as they are.
var pieces = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// Text sends one text message in one masked frame. It waits while the server reads nothing; Reset ends that.
func (s *Socket) Text(payload []byte) error { return s.Frame(TextFrame, true, payload) }

// Frame sends one masked frame.
func (s *Socket) Frame(opcode byte, fin bool, payload []byte) error {
	return s.Send(Head{Fin: fin, Opcode: opcode, Masked: true, Length: uint64(len(payload))}, payload)
}

// Send sends a frame with that head, which may lie about the payload. If it is masked and its key is zero, it gets a random one.
func (s *Socket) Send(h Head, payload []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if h.Masked && h.Key == [4]byte{} {
		binary.LittleEndian.PutUint32(h.Key[:], s.random())
	}
	buffer := pieces.Get().(*[]byte)
	defer pieces.Put(buffer)
	b := h.Append((*buffer)[:0])
	for at := 0; ; {
		head, n := len(b), min(len(payload)-at, piece-len(b))
		b = append(b, payload[at:at+n]...)
		if h.Masked {
			mask(h.Key, at, b[head:])
		}
		*buffer = b
		if err := s.write(b); err != nil {
			return err
		}
		if at += n; at >= len(payload) {
			return nil
		}
		b = b[:0]
	}
}

// Raw sends bytes as they are: half a head, a head whose payload never comes, anything. See Header.
func (s *Socket) Raw(b []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.write(b)
}

func (s *Socket) write(b []byte) error {
	n, err := s.conn.Write(b)
	s.written.Add(int64(n))
	return err
}

func (s *Socket) random() uint32 {
	if s.rand != nil {
		return s.rand.Uint32()
	}
	return rand.Uint32()
}

// Read gives the next data message, text or binary, whole; it is the caller's to keep. Pings are answered on the way, unless
// the socket is mute. The error is a *Closed when the server's close frame came (it is echoed, and the connection closed), a
// *Violation when the server broke the framing, and else the connection's. An error lasts, except that of a read deadline set on
// NetConn: after that, Read goes on where it stood.
func (s *Socket) Read() ([]byte, error) {
	_, message, err := s.Message()
	return message, err
}

// Message is Read, and tells text from binary by the opcode.
func (s *Socket) Message() (opcode byte, message []byte, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.ended != nil {
		return 0, nil, s.ended
	}
	opcode, message, err = s.in.data(s.controlled)
	s.end(err)
	return opcode, message, err
}

// ReadFrame gives the next frame as it is, control frames too, and answers none. It must not be mixed with Read within a message.
func (s *Socket) ReadFrame() (Frame, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.ended != nil {
		return Frame{}, s.ended
	}
	frame, err := s.in.frame()
	s.end(err)
	return frame, err
}

// end keeps an error that lasts.
func (s *Socket) end(err error) {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	s.ended = err
	if closed, ok := errors.AsType[*Closed](err); ok && !s.mute.Load() {
		_ = s.conn.SetWriteDeadline(time.Now().Add(closeWait))
		_ = s.sendClose(closed.Code, "")
		_ = s.conn.Close()
	}
}

// controlled answers a ping.
func (s *Socket) controlled(opcode byte, payload []byte) error {
	if opcode == PongFrame || s.mute.Load() {
		return nil
	}
	return s.Frame(PongFrame, true, payload)
}

// Mute stops, or starts again, the answers that Read gives on its own: to pings and to a close.
func (s *Socket) Mute(on bool) { s.mute.Store(on) }

// Close sends a close frame, waits up to 2 s for the server's, and closes the connection. Data that comes meanwhile goes to a Read
// that waits, or nowhere. Code 1005 sends a close frame without a code. The error is that of the sending, or says how the server
// ended it when that was not by a close frame of its own.
func (s *Socket) Close(code int, reason string) error {
	_ = s.conn.SetDeadline(time.Now().Add(closeWait))
	sent := s.sendClose(code, reason)
	var err error
	for err == nil && sent == nil {
		_, err = s.Read()
	}
	_ = s.conn.Close()
	if _, ok := errors.AsType[*Closed](err); ok {
		return nil
	}
	return errors.Join(sent, err)
}

func (s *Socket) sendClose(code int, reason string) error {
	if code == 1005 {
		return s.Frame(CloseFrame, true, nil)
	}
	return s.Frame(CloseFrame, true, append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...))
}

// Reset ends the connection with a RST, whatever is under way on it.
func (s *Socket) Reset() {
	if tcp, ok := s.conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = s.conn.Close()
}

// Fin closes the writing half: the server sees the end of the stream, and reading goes on.
func (s *Socket) Fin() {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.conn.Close()
}

// NetConn is the connection, for deadlines and buffers.
func (s *Socket) NetConn() net.Conn { return s.conn }

// Protocol is the subprotocol that the server chose, ConnectionID its Acp-Connection-Id.
func (s *Socket) Protocol() string     { return s.protocol }
func (s *Socket) ConnectionID() string { return s.connection }

// BytesIn and BytesOut count what crossed the connection, handshake and heads included.
func (s *Socket) BytesIn() int64  { return s.read.Load() }
func (s *Socket) BytesOut() int64 { return s.written.Load() }

func (s *Socket) count(n int) { s.read.Add(int64(n)) }

// counted reads the handshake's answer.
type counted struct{ s *Socket }

func (c counted) Read(p []byte) (int, error) {
	n, err := c.s.conn.Read(p)
	c.s.count(n)
	return n, err
}
