package door

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// house is a server behind a view with a limit, whose requests to /slow wait until they are let go.
type house struct {
	t                  *testing.T
	socket             *Socket
	view               *View
	refused, displaced chan string
	slow               chan struct{}
}

func openHouse(t *testing.T, limit int, how ...func(*View) *View) *house {
	t.Helper()
	h := &house{t: t, socket: socket(t), refused: make(chan string, 1024), displaced: make(chan string, 1024), slow: make(chan struct{})}
	h.view = h.socket.View(limit, func(a net.Addr) { h.refused <- a.String() }).Displaces(func(a net.Addr) { h.displaced <- a.String() })
	for _, so := range how {
		so(h.view)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-h.slow
		case "/taken":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			t.Cleanup(func() { _ = conn.Close() })
			return
		}
		_, _ = io.WriteString(w, "answer")
	})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = h.view.Serve(ctx, srv, time.Second) }()
	t.Cleanup(func() { cancel(); within(t, "the server ends", ended) })
	return h
}

// guest is one connection of the house.
type guest struct {
	net.Conn
	in *bufio.Reader
}

func (h *house) dial(asks string) *guest {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.socket.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	g := &guest{conn, bufio.NewReader(conn)}
	if asks != "" {
		g.ask(h.t, asks)
	}
	return g
}

func (g *guest) ask(t *testing.T, path string) {
	t.Helper()
	if _, err := io.WriteString(g, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// answered reads one answer.
func (g *guest) answered(t *testing.T) int {
	t.Helper()
	_ = g.SetReadDeadline(time.Now().Add(20 * time.Second))
	response, err := http.ReadResponse(g.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	return response.StatusCode
}

func (g *guest) gone(t *testing.T) {
	t.Helper()
	_ = g.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := g.in.ReadByte(); err == nil || errTimeout(err) == err {
		t.Errorf("%s is still there: %v", g.LocalAddr(), err)
	}
}

func (h *house) open(n int) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); h.view.Open() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("%d connections are open, not %d", h.view.Open(), n)
		}
	}
}

func (h *house) settled(silent, idle int) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		h.view.quiet.mu.Lock()
		s, i := h.view.quiet.silent.Len(), h.view.quiet.idle.Len()
		h.view.quiet.mu.Unlock()
		if s == silent && i == idle {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%d are silent and %d idle, not %d and %d", s, i, silent, idle)
		}
	}
}

// Connections that ask for nothing keep nobody out: the longest silent one goes, one that has only begun its request with them,
// then one between two requests, and never one that is at work or was taken from the server.
func TestTheLongestQuietConnectionMakesRoom(t *testing.T) {
	h := openHouse(t, 5)
	idle := h.dial("/")
	idle.answered(t)
	busy := h.dial("/slow")
	taken := h.dial("/taken")
	taken.answered(t)
	h.settled(0, 1)
	silent := h.dial("")
	h.settled(1, 1)
	begun := h.dial("")
	if _, err := io.WriteString(begun, "GET / HTTP/1.1\r\nHost: local"); err != nil {
		t.Fatal(err)
	}
	h.settled(2, 1)
	for _, goes := range []*guest{silent, begun, idle} {
		h.open(5)
		newcomer := h.dial("/slow")
		if got := <-h.displaced; got != goes.LocalAddr().String() {
			t.Errorf("%s went, not %s", got, goes.LocalAddr())
		}
		goes.gone(t)
		defer newcomer.answered(t)
		h.settled(map[*guest]int{silent: 1}[goes], map[*guest]int{silent: 1, begun: 1}[goes])
	}
	late := h.dial("")
	if got := <-h.refused; got != late.LocalAddr().String() {
		t.Errorf("%s was refused, not %s", got, late.LocalAddr())
	}
	late.gone(t)
	close(h.slow)
	if busy.answered(t) != 200 {
		t.Error("who was at work has no answer")
	}
}

// By age a newcomer whose first request is on its way is the last to go; a connection is as old as the end of its last request.
func TestByAgeTheLongestWithoutARequestMakesRoom(t *testing.T) {
	h := openHouse(t, 4, (*View).ByAge)
	first := h.dial("/")
	first.answered(t)
	h.settled(0, 1)
	silent := h.dial("")
	h.settled(0, 2)
	second := h.dial("/")
	second.answered(t)
	h.settled(0, 3)
	first.ask(t, "/")
	first.answered(t)
	h.settled(0, 3)
	newcomer := h.dial("")
	h.settled(0, 4)
	for left, goes := range []*guest{silent, second, first, newcomer} {
		busy := h.dial("/slow")
		if got := <-h.displaced; got != goes.LocalAddr().String() {
			t.Errorf("%s went, not %s", got, goes.LocalAddr())
		}
		goes.gone(t)
		defer busy.answered(t)
		h.settled(0, 3-left)
	}
	late := h.dial("")
	if got := <-h.refused; got != late.LocalAddr().String() {
		t.Errorf("%s was refused, not %s", got, late.LocalAddr())
	}
	late.gone(t)
	close(h.slow)
}

// A flood of silent connections, and one client that speaks each time it comes.
func TestAFloodOfSilentConnectionsKeepsNobodyOut(t *testing.T) {
	h := openHouse(t, 20)
	for range 10 {
		for range 30 {
			h.dial("")
		}
		client := h.dial("/")
		if client.answered(t) != 200 {
			t.Fatal("not served")
		}
		client.ask(t, "/")
		if client.answered(t) != 200 {
			t.Fatal("not served again")
		}
		_ = client.Close()
	}
	if n := len(h.refused); n != 0 {
		t.Errorf("%d were refused", n)
	}
}

// noFiles is a listener whose process has no more files for a while.
type noFiles struct {
	deadliner
	lacks atomic.Int64
}

func (l *noFiles) Accept() (net.Conn, error) {
	if l.lacks.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.deadliner.Accept()
}

// Also when it is the process that has no file left, the longest silent one goes and the server goes on.
func TestWithoutFilesASilentConnectionGoes(t *testing.T) {
	h := openHouse(t, 0)
	silent := h.dial("")
	h.settled(1, 0)
	short := &noFiles{deadliner: h.socket.listener}
	short.lacks.Store(1)
	s := &Socket{listener: short, turn: make(chan struct{}, 1)}
	v := s.View(0, nil).Displaces(func(a net.Addr) { h.displaced <- a.String() })
	v.watched = true
	h.view.quiet.mu.Lock()
	c := h.view.quiet.silent.Front().Value.(*counted)
	h.view.quiet.mu.Unlock()
	v.quiet.add(&counted{Conn: c.Conn, view: v}, &v.quiet.silent)
	v.open.Add(1)
	if _, err := v.Accept(); err == nil {
		t.Error("no error for the server to wait after")
	}
	select {
	case got := <-h.displaced:
		if got != silent.LocalAddr().String() {
			t.Errorf("%s went, not %s", got, silent.LocalAddr())
		}
		silent.gone(t)
	default:
		t.Error("nobody went")
	}
}
