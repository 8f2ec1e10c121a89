package wire

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lxzan/gws"
)

// deadline is how long a test waits for what must come.
const deadline = 30 * time.Second

// echo is a WebSocket server that is not ours. It sends every message back, and keeps what the tests ask about.
type echo struct {
	gws.BuiltinEventHandler
	sockets  chan *gws.Conn
	messages chan string
	closes   chan error
	requests chan *http.Request
}

// startEcho serves an echo and gives its address.
func startEcho(t *testing.T, option *gws.ServerOption) (*echo, string) {
	t.Helper()
	e := &echo{sockets: make(chan *gws.Conn, 8), messages: make(chan string, 64), closes: make(chan error, 8), requests: make(chan *http.Request, 8)}
	option.ReadMaxPayloadSize, option.SubProtocols = 16<<20, []string{"acp.v1"}
	option.ResponseHeader = http.Header{"Acp-Connection-Id": {"number 1"}}
	upgrader := gws.NewUpgrader(e, option)
	var loops sync.WaitGroup
	loops.Add(1) // until the end, so that no loop begins while they are waited for
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.requests <- r
		if socket, err := upgrader.Upgrade(w, r); err == nil {
			loops.Go(socket.ReadLoop)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		loops.Done()
		loops.Wait()
	})
	return e, "ws" + strings.TrimPrefix(server.URL, "http") + "/acp?a=b"
}

func (e *echo) OnOpen(s *gws.Conn)             { e.sockets <- s }
func (e *echo) OnClose(_ *gws.Conn, err error) { e.closes <- err }
func (e *echo) OnPing(s *gws.Conn, p []byte)   { _ = s.WritePong(p) }
func (e *echo) OnPong(_ *gws.Conn, p []byte)   { e.messages <- "pong " + string(p) }
func (e *echo) OnMessage(s *gws.Conn, m *gws.Message) {
	defer func() { _ = m.Close() }()
	e.messages <- m.Data.String()
	_ = s.WriteMessage(m.Opcode, m.Bytes())
}

// open opens a socket for a test, and resets it at the test's end.
func open(t *testing.T, d Dial) *Socket {
	t.Helper()
	s, err := Open(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Reset)
	if err := s.NetConn().SetReadDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return s
}

// next takes what must come on a channel.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(deadline):
		t.Fatalf("nothing came within %v", deadline)
		panic("not reached")
	}
}

// pair is a connection over loopback with a scripted server's end, after a handshake that took no part in the test.
func pair(t *testing.T, d Dial) (*Socket, *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			conn = nil
		}
		accepted <- conn
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server := next(t, accepted)
	if server == nil {
		t.Fatal("the listener closed")
	}
	for _, c := range []net.Conn{conn, server} {
		_ = c.SetDeadline(time.Now().Add(deadline))
		t.Cleanup(func() { _ = c.Close() })
	}
	s := &Socket{conn: conn, rand: d.Rand}
	s.mute.Store(d.Mute)
	s.in = frames{from: conn, limit: readLimit, seen: s.count}
	return s, server.(*net.TCPConn)
}
