package clientcheck

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lxzan/gws"

	"github.com/acpod/acpod/actors/chaos/wire"
)

// happening is the kind of an event.
type happening byte

const (
	attempted happening = iota // somebody asked for a socket
	opened                     // and got one
	said                       // a message
	pinged
	ponged
	ended // the socket, with all of it read
)

// event is something that the run is told by the door or by a reader.
type event struct {
	what   happening
	socket *socket
	entry  entry
	at     time.Time
	binary bool
	data   []byte
	cause  error
}

// events are how the run is told, one at a time: a client that talks faster than it is judged waits.
type events struct {
	ctx context.Context
	ch  chan event
}

func (e events) tell(one event) bool {
	select {
	case e.ch <- one:
		return true
	case <-e.ctx.Done():
		return false
	}
}

// errUnsound ends the reading of a client that breaks RFC 6455.
var errUnsound = errors.New("the client breaks RFC 6455")

// socket is one connection of the client. The run writes, one goroutine of its own reads.
type socket struct {
	conn   net.Conn
	in     io.Reader // conn, and before it what the HTTP server had read of it
	gws    *gws.Conn
	events events

	quiet atomic.Bool // what gws has to say from now on is swallowed: the run has sent a close frame

	// The reader's own, and the run's once it was told that the socket ended.
	framing framing
	unsound string // what broke RFC 6455
	large   bool   // it was a message over the limit
	end     error  // what gws ended with
}

var _ gws.Event = (*socket)(nil)

// upgrade takes the connection from the HTTP server and answers 101.
func upgrade(w http.ResponseWriter, r *http.Request, e entry, to events) (*socket, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	s := &socket{conn: conn, in: conn, events: to, framing: framing{limit: frameBytes}}
	if n := rw.Reader.Buffered(); n > 0 {
		early, _ := rw.Reader.Peek(n)
		s.in = io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn)
	}
	option := &gws.ServerOption{
		ReadMaxPayloadSize: frameBytes, WriteMaxPayloadSize: frameBytes, Logger: silent{},
		ResponseHeader: http.Header{"Acp-Connection-Id": {uuid.NewString()}},
	}
	r.Header.Set("Upgrade", "websocket") // gws reads only the first line of each
	r.Header.Set("Connection", "Upgrade")
	r.Header.Del("Sec-Websocket-Protocol")
	if e.echo {
		option.SubProtocols = []string{subprotocol}
		r.Header.Set("Sec-Websocket-Protocol", subprotocol)
	}
	faced := &facing{conn, s}
	if s.gws, err = gws.NewUpgrader(s, option).UpgradeFromConn(faced, bufio.NewReaderSize(faced, 4<<10), r); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// facing is the connection as gws has it: it gets sound frames only.
type facing struct {
	net.Conn
	s *socket
}

// Read implements net.Conn.
func (f *facing) Read(p []byte) (int, error) {
	s := f.s
	if s.unsound != "" {
		return 0, errUnsound
	}
	n, err := s.in.Read(p)
	sound, why, large := s.framing.feed(p[:n])
	if why == "" {
		return n, err
	}
	s.unsound, s.large = why, large
	if sound == 0 {
		return 0, errUnsound
	}
	return sound, nil
}

// Write implements net.Conn.
func (f *facing) Write(p []byte) (int, error) {
	if f.s.quiet.Load() {
		return len(p), nil
	}
	return f.Conn.Write(p)
}

// read reads until the socket ends and tells so.
func (s *socket) read() {
	s.gws.ReadLoop()
	s.events.tell(event{what: ended, socket: s, cause: s.end})
}

// OnOpen implements gws.Event.
func (s *socket) OnOpen(*gws.Conn) {}

// OnClose implements gws.Event.
func (s *socket) OnClose(_ *gws.Conn, err error) { s.end = err }

// OnPing implements gws.Event. The run answers.
func (s *socket) OnPing(_ *gws.Conn, payload []byte) {
	s.events.tell(event{what: pinged, socket: s, data: bytes.Clone(payload)})
}

// OnPong implements gws.Event.
func (s *socket) OnPong(_ *gws.Conn, payload []byte) {
	s.events.tell(event{what: ponged, socket: s, data: bytes.Clone(payload)})
}

// OnMessage implements gws.Event.
func (s *socket) OnMessage(_ *gws.Conn, m *gws.Message) {
	one := event{what: said, socket: s, binary: m.Opcode != gws.OpcodeText, data: bytes.Clone(m.Bytes())}
	_ = m.Close()
	s.events.tell(one)
}

// write sends one text message within that time.
func (s *socket) write(text []byte, within time.Duration) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(within))
	return s.gws.WriteMessage(gws.OpcodeText, text)
}

// raw sends one frame as it is.
func (s *socket) raw(within time.Duration, opcode byte, final bool, payload []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(within))
	frame := wire.Head{Fin: final, Opcode: opcode, Length: uint64(len(payload))}.Append(nil)
	_, err := s.conn.Write(append(frame, payload...))
	return err
}

// close sends a close frame, and nothing after it.
func (s *socket) close(within time.Duration, code int, reason string) error {
	s.quiet.Store(true)
	return s.raw(within, wire.CloseFrame, true, append([]byte{byte(code >> 8), byte(code)}, reason...))
}

// reset ends the connection as a pod does that is gone.
func (s *socket) reset() {
	s.quiet.Store(true)
	if tcp, ok := s.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = s.conn.Close()
}

// silent is gws's logger.
type silent struct{}

// Error implements gws.Logger.
func (silent) Error(...any) {}
