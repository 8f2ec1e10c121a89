package httplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what the system under test does at once.
const patience = 100 * time.Second

// told is one thing that a link told its sink.
type told struct {
	up     bool
	missed bool // what the server said while nobody listened
	frame  string
	id     string // of a message that is an answer, and of a failure
	about  string
	err    error // of a failure
}

// recorder is a sink that keeps what it is told for the test to take.
type recorder struct {
	account *kernel.Account
	told    chan told
	keep    bool // leases are kept until the test is over

	mu      sync.Mutex
	refused map[string]int
	kept    []*kernel.Lease
}

func (r *recorder) Up(int) { r.told <- told{up: true} }
func (r *recorder) Message(frame []byte, f jsonrpc.Frame, about jsonrpc.ID, lease *kernel.Lease) {
	if lease.Size() < int64(len(frame)) {
		panic(fmt.Sprintf("a message of %d bytes is paid for with %d", len(frame), lease.Size()))
	}
	t := told{frame: string(frame[:min(len(frame), 1<<10)]), about: string(about.Raw())}
	if f.Kind == jsonrpc.Response {
		t.id = string(f.ID.Raw())
	}
	if r.keep {
		r.mu.Lock()
		r.kept = append(r.kept, lease)
		r.mu.Unlock()
	} else {
		lease.Release()
	}
	r.told <- t
}
func (r *recorder) Failed(id jsonrpc.ID, err error) { r.told <- told{id: string(id.Raw()), err: err} }
func (r *recorder) Missed()                         { r.told <- told{missed: true} }
func (r *recorder) Account() *kernel.Account        { return r.account }
func (r *recorder) Refused(scope string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[scope]++
}
func (r *recorder) refusals(scope string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[scope]
}

// running is a link with its sink, and what ends it.
type running struct {
	*recorder
	t    *testing.T
	link *httpLink
	stop context.CancelCauseFunc
	done chan error
	over bool
}

var errTestOver = errors.New("the test is over")

// run starts a link whose account has room for limit bytes. At the end of the test it is stopped, and must have freed everything.
func run(t *testing.T, o Options, limit int64) *running {
	t.Helper()
	r := &running{t: t, done: make(chan error, 1), recorder: &recorder{
		account: kernel.NewAccount("provider_bytes", limit), told: make(chan told, 4096), refused: map[string]int{},
	}}
	ctx, stop := context.WithCancelCause(context.Background())
	r.link, r.stop = New(o).(*httpLink), stop
	go func() { r.done <- r.link.Run(ctx, r.recorder) }()
	t.Cleanup(func() { r.end() })
	return r
}

// end stops the link and gives Run's error.
func (r *running) end() error {
	r.t.Helper()
	if r.over {
		return nil
	}
	r.stop(errTestOver)
	return r.ended()
}

// ended waits for Run to return.
func (r *running) ended() error {
	r.t.Helper()
	r.over = true
	select {
	case err := <-r.done:
		if used := r.account.Used(); used != 0 && !r.keep {
			r.t.Errorf("after the end %d bytes are still charged", used)
		}
		return err
	case <-time.After(patience):
		r.t.Fatal("Run has not returned")
		return nil
	}
}

// next is what the link tells next.
func (r *running) next() told {
	r.t.Helper()
	select {
	case got := <-r.told:
		return got
	case <-time.After(patience):
		r.t.Fatalf("nothing is told; refused: %v", r.refused)
		return told{}
	}
}

func (r *running) awaitUp() {
	r.t.Helper()
	if got := r.next(); !got.up {
		r.t.Fatalf("told %+v before it is up", got)
	}
}

// answer is the next thing told, which must be the answer to that request.
func (r *running) answer(id string) string {
	r.t.Helper()
	got := r.next()
	if got.err != nil || got.id != id {
		r.t.Fatalf("told %+v in place of the answer to %s", got, id)
	}
	return got.frame
}

// failure is the next thing told, which must be that this request failed.
func (r *running) failure(id string) error {
	r.t.Helper()
	got := r.next()
	if got.err == nil || got.id != id {
		r.t.Fatalf("told %+v in place of the failure of %s", got, id)
	}
	if strings.ContainsAny(got.err.Error(), "\r\n") {
		r.t.Errorf("an error of more than one line: %q", got.err)
	}
	return got.err
}

// request sends a request of that method.
func (r *running) request(id int64, method string) {
	r.t.Helper()
	r.send(link.Message{ID: jsonrpc.IntID(id), Method: method, Head: jsonrpc.AppendRequest(nil, jsonrpc.IntID(id), method, []byte(`{}`))})
}

func (r *running) notify(method, params string) {
	r.t.Helper()
	r.send(link.Message{Method: method, Head: jsonrpc.AppendNotification(nil, method, []byte(params))})
}

func (r *running) send(m link.Message) {
	r.t.Helper()
	lease, err := r.account.Acquire(int64(len(m.Head) + len(m.Body) + len(m.Tail)))
	if err != nil {
		r.t.Fatal(err)
	}
	m.Held = lease
	if err := r.link.Send(m); err != nil {
		r.t.Fatal(err)
	}
}

// initialize does the handshake as the provider does it.
func (r *running) initialize() {
	r.t.Helper()
	r.awaitUp()
	r.request(1, "initialize")
	r.answer("1")
	r.link.Speaks("2025-06-18")
	r.notify("notifications/initialized", "{}")
}

// await polls until what holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in %v", what, patience)
		}
	}
}

// got is one request as a server saw it.
type got struct {
	method string
	header http.Header
	body   string
	rpc    jsonrpc.Frame
	path   string
}

// site is an HTTP server of a test on loopback.
type site struct {
	url string

	mu   sync.Mutex
	seen []got
}

// serve starts one. handler is given each request with its body read.
func serve(t *testing.T, handler func(w http.ResponseWriter, r *http.Request, g got)) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, "http://"+listener.Addr().String()+"/mcp", handler)
}

func serveOn(t *testing.T, listener net.Listener, url string, handler func(w http.ResponseWriter, r *http.Request, g got)) *site {
	s := &site{url: url}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g := got{method: r.Method, header: r.Header.Clone(), body: string(body), path: r.URL.Path}
		g.rpc, _ = jsonrpc.Scan(body)
		s.mu.Lock()
		s.seen = append(s.seen, g)
		s.mu.Unlock()
		handler(w, r, g)
	})}
	over := make(chan struct{})
	go func() { defer close(over); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-over })
	return s
}

func (s *site) requests(method string) (list []got) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.seen {
		if g.method == method {
			list = append(list, g)
		}
	}
	return list
}

// called are the requests of one JSON-RPC method.
func (s *site) called(method string) (list []got) {
	for _, g := range s.requests(http.MethodPost) {
		if g.rpc.Method == method {
			list = append(list, g)
		}
	}
	return list
}

// reply answers a request with a JSON body.
func reply(w http.ResponseWriter, g got, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(jsonrpc.AppendResult(nil, g.rpc.ID, []byte(result)))
}

// ordinary is a server with sessions: initialize gives one, notifications are taken, there is no stream to listen to. call answers the rest.
func ordinary(call func(w http.ResponseWriter, r *http.Request, g got)) func(http.ResponseWriter, *http.Request, got) {
	return func(w http.ResponseWriter, r *http.Request, g got) {
		switch {
		case g.method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case g.method == http.MethodDelete:
		case g.rpc.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s-1")
			reply(w, g, `{"protocolVersion":"2025-06-18"}`)
		case g.rpc.ID.IsZero():
			w.WriteHeader(http.StatusAccepted)
		default:
			call(w, r, g)
		}
	}
}

// events starts an answer that is a stream and writes its beginning.
func startEvents(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, text)
	flush(w)
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func event(frame string) string { return "data: " + frame + "\n\n" }

func result(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"n":` + id + `}}` }

// raw is a server that writes what it likes: each connection's request is read up to the end of its body, then script has the connection.
func raw(t *testing.T, script func(c net.Conn, request *http.Request)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if r := readRequest(c); r != nil {
					script(c, r)
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); all.Wait() })
	return "http://" + listener.Addr().String() + "/mcp"
}
