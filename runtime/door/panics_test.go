package door

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

type panicked struct{ value, stack string }

// A handler that panics is told with its value and stack, and its client gets a 500, or sees that the answer is half.
func TestAPanicIsToldAndAnswered(t *testing.T) {
	for _, row := range []struct {
		name   string
		serve  http.HandlerFunc
		status int // 0 = no whole answer
		told   string
	}{
		{"before anything is written", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "7")
			w.Header().Set("Content-Encoding", "gzip")
			panic("boom")
		}, 500, "boom"},
		{"in the middle of an answer", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half an ")
			panic("boom")
		}, 0, "boom"},
		{"in an answer of a told length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "14")
			_, _ = io.WriteString(w, "half an ")
			panic("boom")
		}, 0, "boom"},
		{"with a fault of the runtime", func(http.ResponseWriter, *http.Request) {
			noMap()["x"] = 1
		}, 500, "assignment to entry in nil map"},
		{"with very much to say", func(http.ResponseWriter, *http.Request) { panic(strings.Repeat("x", 1<<20)) }, 500, strings.Repeat("x", 256)},
		{"by a handler that ends its connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, ""},
		{"not at all", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }, 200, ""},
	} {
		told := make(chan panicked, 8)
		panics := Panics(func(value string, stack []byte) { told <- panicked{value, string(stack)} })
		status := served(t, &http.Server{ReadHeaderTimeout: time.Minute, Handler: panics.Guard(row.serve), ErrorLog: panics.ErrorLog(slog.New(slog.DiscardHandler))})
		if status != row.status {
			t.Errorf("%s: %d, want %d", row.name, status, row.status)
		}
		if row.told == "" {
			if len(told) != 0 {
				t.Errorf("%s: told %q", row.name, <-told)
			}
			continue
		}
		select {
		case p := <-told:
			if !strings.HasSuffix(p.value, row.told) || !strings.Contains(p.stack, "panics_test.go") || len(told) != 0 {
				t.Errorf("%s: told %.300q, the stack %d bytes, and %d more", row.name, p.value, len(p.stack), len(told))
			}
		default:
			t.Errorf("%s: nobody was told", row.name)
		}
	}
}

// A connection that the handler took before it panicked gets nothing that the handler did not write.
func TestAPanicWritesNothingIntoATakenConnection(t *testing.T) {
	told, got := make(chan panicked, 8), make(chan string, 1)
	panics := Panics(func(value string, stack []byte) { told <- panicked{value, string(stack)} })
	done := make(chan struct{})
	guarded := panics.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go func() { // closes it once the panic has been dealt with
			<-done
			_, _ = io.WriteString(conn, "ours")
			_ = conn.Close()
		}()
		panic("boom")
	}))
	srv := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: panics.ErrorLog(slog.New(slog.DiscardHandler)), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		guarded.ServeHTTP(w, r)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			got <- err.Error()
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		text, _ := io.ReadAll(conn)
		got <- string(text)
	}()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(listener) }()
	if text := <-got; text != "ours" || len(told) != 1 {
		t.Errorf("the client read %q; %d were told", text, len(told))
	}
	_ = srv.Close()
	within(t, "the server ends", ended)
}

// What no handler caught stands in the server's own log, where a panic is told apart from what peers did wrong.
func TestAPanicOutsideOfHandlersIsTold(t *testing.T) {
	told := make(chan panicked, 8)
	var text bytes.Buffer
	panics := Panics(func(value string, stack []byte) { told <- panicked{value, string(stack)} })
	lines := panics.ErrorLog(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	lines.Print("http: TLS handshake error from 192.0.2.1:1: EOF")
	if len(told) != 0 || !strings.Contains(text.String(), "level=DEBUG msg=\"http: TLS handshake error from 192.0.2.1:1: EOF\"\n") {
		t.Errorf("%d were told, the log has %q", len(told), text.String())
	}
	status := served(t, &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: lines, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })})
	if status != 0 {
		t.Errorf("answered with %d", status)
	}
	select {
	case p := <-told:
		if !strings.HasSuffix(p.value, ": boom") || !strings.Contains(p.stack, "panics_test.go") {
			t.Errorf("told %q with %q", p.value, p.stack)
		}
	default:
		t.Error("nobody was told")
	}
}

// served is the status of one request to a server that then ends, 0 when its answer is not whole, or not as its head says.
func served(t *testing.T, srv *http.Server) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSocket(listener)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.View(0, nil).Serve(ctx, srv, time.Minute) }()
	defer func() { cancel(); within(t, "the server ends", ended) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: time.Minute}
	response, err := client.Get("http://" + s.Addr().String())
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadAll(response.Body); err != nil || response.Header.Get("Content-Encoding") != "" {
		return 0
	}
	return response.StatusCode
}

func noMap() map[string]int { return nil }
