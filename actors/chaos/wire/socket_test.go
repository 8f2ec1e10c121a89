package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lxzan/gws"
)

func TestMessagesOfEveryLengthGoThereAndBack(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	s := open(t, Dial{URL: url})
	for _, n := range []int{0, 1, 7, 125, 126, small - 4, small, 1 << 10, 1<<16 - 1, 1 << 16, piece + 1, 3*piece + 5, 5<<20 + 3} {
		text := []byte(strings.Repeat("0123456789abcdefg", n/17+1)[:n])
		kept := bytes.Clone(text)
		if err := s.Text(text); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, kept) {
			t.Fatalf("sending %d bytes changed them", n)
		}
		got, err := s.Read()
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%d bytes came back as %d, %v", n, len(got), err)
		}
		if heard := next(t, e.messages); heard != string(text) {
			t.Fatalf("the server heard %d bytes of %d", len(heard), n)
		}
	}
}

func TestAHandshakeSendsWhatItIsTold(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	var status int
	s := open(t, Dial{URL: url, Key: "secret", Origin: "http://evil.example", Host: "pod.example", Header: http.Header{"X-A": {"1", "2"}},
		Response: func(r *http.Response) { status = r.StatusCode }})
	r := next(t, e.requests)
	if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Origin") != "http://evil.example" || r.Host != "pod.example" ||
		len(r.Header["X-A"]) != 2 || r.Header.Get("Sec-WebSocket-Protocol") != "acp.v1" || r.RequestURI != "/acp?a=b" {
		t.Errorf("the server saw %s for %s with %v", r.RequestURI, r.Host, r.Header)
	}
	if s.Protocol() != "acp.v1" || s.ConnectionID() != "number 1" || status != 101 {
		t.Errorf("protocol %q, connection %q, status %d", s.Protocol(), s.ConnectionID(), status)
	}
	open(t, Dial{URL: url, Key: "secret", ByProtocol: true})
	r = next(t, e.requests)
	if r.Header.Get("Authorization") != "" || r.Header.Get("Sec-WebSocket-Protocol") != "acp.v1, openab.bearer.secret" {
		t.Errorf("with the key as a protocol the server saw %v", r.Header)
	}
}

func TestARefusalTellsStatusAndBody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "no place", http.StatusServiceUnavailable)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer func() { _ = server.Close() }()
	_, err = Open(context.Background(), Dial{URL: "ws://" + listener.Addr().String() + "/acp"})
	refused, ok := errors.AsType[*Refused](err)
	if !ok || refused.Status != 503 || refused.Body != "no place\n" || refused.Header.Get("Retry-After") != "1" {
		t.Fatalf("got %v", err)
	}
}

func TestAHandshakeThatIsNeverAnsweredEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, err = Open(context.Background(), Dial{URL: "ws://" + listener.Addr().String(), Timeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

// counting counts the writes of a connection.
type counting struct {
	net.Conn
	writes atomic.Int32
}

func (c *counting) Write(p []byte) (int, error) { c.writes.Add(1); return c.Conn.Write(p) }

func TestASmallMessageIsOneWrite(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	var conn *counting
	s := open(t, Dial{URL: url, Net: func(_ context.Context, network, addr string) (net.Conn, error) {
		inner, err := net.Dial(network, addr)
		conn = &counting{Conn: inner}
		return conn, err
	}})
	before := conn.writes.Load()
	if err := s.Text(make([]byte, piece-maxHead)); err != nil {
		t.Fatal(err)
	}
	next(t, e.messages)
	if n := conn.writes.Load() - before; n != 1 {
		t.Errorf("a message of %d bytes took %d writes", piece-maxHead, n)
	}
	if s.BytesOut() < piece || s.BytesIn() == 0 {
		t.Errorf("%d bytes went out, %d came in", s.BytesOut(), s.BytesIn())
	}
}

func TestFragmentsAndHalfFramesArriveAsOneMessage(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	s := open(t, Dial{URL: url, Rand: rand.New(rand.NewPCG(1, 2))})
	for i, word := range []string{"one ", "two ", "three"} {
		opcode := Continuation
		if i == 0 {
			opcode = TextFrame
		}
		if err := s.Frame(opcode, i == 2, []byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(t, e.messages); got != "one two three" {
		t.Errorf("fragments arrived as %q", got)
	}
	whole := append(Header(TextFrame, true, 11), "byte by byte"[:11]...)
	for _, b := range whole {
		if err := s.Raw([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(t, e.messages); got != "byte by byt" {
		t.Errorf("single bytes arrived as %q", got)
	}
}

func TestPingsAreAnsweredUnlessMute(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	s := open(t, Dial{URL: url, Mute: true})
	server := next(t, e.sockets)
	read := func() {
		t.Helper()
		if err := server.WriteString("after the ping"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(); err != nil {
			t.Fatal(err)
		}
	}
	_ = server.WritePing([]byte("unheard"))
	read()
	s.Mute(false)
	_ = server.WritePing([]byte("heard"))
	read()
	if got := next(t, e.messages); got != "pong heard" {
		t.Errorf("the server heard %q first", got)
	}
}

func TestCloseSaysWhyAndWaits(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	s := open(t, Dial{URL: url})
	reader := make(chan error)
	go func() {
		_, err := s.Read()
		reader <- err
	}()
	if err := s.Close(4001, "gone home"); err != nil {
		t.Fatal(err)
	}
	told, ok := errors.AsType[*gws.CloseError](next(t, e.closes))
	if !ok || told.Code != 4001 || string(told.Reason) != "gone home" {
		t.Errorf("the server was told %v", told)
	}
	if closed, ok := errors.AsType[*Closed](next(t, reader)); !ok || closed.Code != 4001 {
		t.Errorf("the reader got %v", closed)
	}
}

func TestAServersCloseIsReadAndEchoed(t *testing.T) {
	e, url := startEcho(t, &gws.ServerOption{})
	s := open(t, Dial{URL: url})
	server := next(t, e.sockets)
	_ = server.WriteClose(1013, []byte("too much"))
	for range 2 {
		_, err := s.Read()
		if closed, ok := errors.AsType[*Closed](err); !ok || closed.Code != 1013 || closed.Reason != "too much" {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := s.NetConn().Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still open: %v", err)
	}
}

func TestResetIsAResetAndFinIsHalf(t *testing.T) {
	s, server := pair(t, Dial{})
	s.Reset()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset the server reads %v", err)
	}
	s, server = pair(t, Dial{})
	s.Fin()
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after a FIN the server reads %v", err)
	}
	if _, err := server.Write(serverFrame(TextFrame, true, "still here")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(); string(got) != "still here" {
		t.Errorf("after a FIN came %q, %v", got, err)
	}
}

func TestAReadDeadlineInterruptsAndLosesNothing(t *testing.T) {
	s, server := pair(t, Dial{})
	frame := append(serverFrame(TextFrame, false, strings.Repeat("a", 700)), serverFrame(Continuation, true, "b")...)
	for _, b := range [][]byte{frame[:1], frame[1:3], frame[3:400], frame[400 : len(frame)-2], frame[len(frame)-2:]} {
		_ = s.NetConn().SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := s.Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read %v", err)
		}
		if _, err := server.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.NetConn().SetReadDeadline(time.Now().Add(deadline))
	if got, err := s.Read(); err != nil || string(got) != strings.Repeat("a", 700)+"b" {
		t.Fatalf("%d bytes came, %v", len(got), err)
	}
}

// yielding keeps what is written, and lets others run after each write.
type yielding struct {
	net.Conn
	mu   sync.Mutex
	kept []byte
}

func (y *yielding) Write(p []byte) (int, error) {
	y.mu.Lock()
	y.kept = append(y.kept, p...)
	y.mu.Unlock()
	for range 100 {
		runtime.Gosched()
	}
	return len(p), nil
}

func TestOneFrameAtATime(t *testing.T) {
	const writers, each = 8, 5*piece + 1
	conn := &yielding{}
	s := &Socket{conn: conn}
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			if err := s.Text(bytes.Repeat([]byte{byte('a' + i)}, each)); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	in := frames{from: bytes.NewReader(conn.kept), limit: readLimit, seen: func(int) {}}
	for range writers {
		frame, err := in.frame()
		if violation, ok := errors.AsType[*Violation](err); !ok || violation.What != "a masked frame" {
			t.Fatalf("read %v", err)
		}
		if len(frame.Payload) != each || bytes.Count(frame.Payload, frame.Payload[:1]) != each {
			t.Fatalf("a frame of %d bytes has those of others in it", len(frame.Payload))
		}
	}
}

func TestTheReceiveBufferIsSetBeforeConnecting(t *testing.T) {
	_, url := startEcho(t, &gws.ServerOption{})
	size := func(s *Socket) (n int) {
		raw, err := s.NetConn().(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) { n, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF) })
		return n
	}
	if n := size(open(t, Dial{URL: url, ReceiveBuffer: 4 << 10})); n == 0 || n > 16<<10 {
		t.Errorf("a receive buffer of 4 KiB is %d bytes", n)
	}
}

func TestASocketIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Socket{}); n > 1<<10 {
		t.Errorf("a socket takes %d bytes", n)
	}
}
