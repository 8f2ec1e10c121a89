package httplink

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// older is a server of 2024-11-05: a GET opens the one stream, which names the address for messages; answers come in the stream.
type older struct {
	endpoint string // event that the stream begins with
	post     int    // status of a POST to the stream's own address

	mu     sync.Mutex
	stream http.ResponseWriter
	over   chan struct{} // closed to end the stream
}

func newOlder(endpoint string) *older {
	return &older{endpoint: endpoint, post: http.StatusMethodNotAllowed, over: make(chan struct{})}
}

func (s *older) handle(w http.ResponseWriter, r *http.Request, g got) {
	switch {
	case g.method == http.MethodGet:
		s.mu.Lock()
		startEvents(w, s.endpoint)
		s.stream = w
		s.mu.Unlock()
		select {
		case <-r.Context().Done():
		case <-s.over:
		}
		s.mu.Lock()
		s.stream = nil
		s.mu.Unlock()
	case g.path != "/messages":
		w.WriteHeader(s.post)
	default:
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "Accepted")
		if g.rpc.Method == "silent" || g.rpc.ID.IsZero() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stream == nil {
			return
		}
		_, _ = io.WriteString(s.stream, "event: message\ndata: "+result(string(g.rpc.ID.Raw()))+"\n\n")
		flush(s.stream)
	}
}

func TestTheOlderTransport(t *testing.T) {
	for name, c := range map[string]struct {
		old  bool
		post int
	}{"configured": {true, 404}, "after 400": {false, 400}, "after 404": {false, 404}, "after 405": {false, 405}} {
		server := newOlder("event: endpoint\ndata: /messages?session=7\n\n")
		server.post = c.post
		s := serve(t, server.handle)
		r := run(t, Options{URL: s.url, Old: c.old, Headers: map[string]string{"X-Api-Key": "k"}}, 1<<20)
		r.initialize()
		for id, text := range map[int64]string{2: "2", 3: "3"} {
			r.request(id, "tools/call")
			if got := r.answer(text); got != result(text) {
				t.Errorf("%s: %s", name, got)
			}
		}
		r.end()
		for _, g := range append(s.requests("POST"), s.requests("GET")...) {
			if g.header.Get("X-Api-Key") != "k" || g.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s: %s %s has the headers %v", name, g.method, g.path, g.header)
			}
		}
		if n := len(s.requests("DELETE")); n != 0 {
			t.Errorf("%s: a session was ended that this transport does not have", name)
		}
	}
}

func TestTheEndOfTheOneStreamIsTheLinks(t *testing.T) {
	server := newOlder("event: endpoint\ndata: /messages\n\n")
	s := serve(t, server.handle)
	r := run(t, Options{URL: s.url, Old: true}, 1<<20)
	r.initialize()
	r.request(2, "silent")
	await(t, "the request", func() bool { return len(s.called("silent")) == 1 })
	close(server.over)
	err := r.ended()
	if _, cut := errors.AsType[*CutError](err); !cut {
		t.Errorf("Run ends with %v", err)
	}
	if err := r.failure("2"); errors.Is(err, link.ErrUnsent) {
		t.Errorf("the request fails with %v", err)
	}
}

func TestAnAddressForMessagesElsewhereIsNotUsed(t *testing.T) {
	for name, address := range map[string]string{
		"another host":      "http://localhost:PORT/messages",
		"another port":      "http://127.0.0.1:1/messages",
		"another scheme":    "https://HOST/messages",
		"a user":            "http://u:p@HOST/messages",
		"no scheme":         "//127.0.0.2/messages",
		"no address":        "http://[::bad/",
		"no end of it":      "/" + strings.Repeat("x", 100<<10),
		"a file":            "file:///etc/passwd",
		"backslashes":       `\\127.0.0.2\messages`,
		"hidden in a scope": "http://127.0.0.1%2f@127.0.0.2/",
	} {
		server := newOlder("")
		s := serve(t, server.handle)
		host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
		_, port, _ := strings.Cut(host, ":")
		server.endpoint = "event: endpoint\ndata: " + strings.NewReplacer("HOST", host, "PORT", port).Replace(address) + "\n\n"
		r := run(t, Options{URL: s.url, Old: true}, 1<<20)
		if name == "backslashes" { // a path of this host
			r.awaitUp()
			continue
		}
		err := r.ended()
		if _, foreign := errors.AsType[*ForeignEndpointError](err); !foreign || len(err.Error()) > 200 {
			t.Errorf("%s: Run ends with %v", name, err)
		}
	}
}

// TestNoStreamOfTheOlderTransport: what is there in its place fails the link with nothing sent; an unasked attempt leaves the first refusal.
func TestNoStreamOfTheOlderTransport(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		text, kind string
		auth       bool
	}{
		"405":         {status: 405},
		"401":         {status: 401, auth: true},
		"500":         {status: 500},
		"html":        {status: 200, text: "<html>", kind: "text/html"},
		"no endpoint": {status: 200, text: event(`{"jsonrpc":"2.0","method":"x"}`), kind: "text/event-stream"},
		"nothing":     {status: 200, kind: "text/event-stream"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, g got) {
			if g.method == http.MethodPost {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("Www-Authenticate", `Bearer scope="a"`)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.text)
		})
		r := run(t, Options{URL: s.url, Old: true}, 1<<20)
		err := r.ended()
		if auth, ok := errors.AsType[*link.AuthError](err); !errors.Is(err, link.ErrUnsent) || ok != c.auth || ok && auth.Scope != "a" {
			t.Errorf("%s: Run ends with %v", name, err)
		}
		for len(r.told) > 0 {
			if (<-r.told).up {
				t.Errorf("%s: it was up", name)
			}
		}
		r = run(t, Options{URL: s.url}, 1<<20)
		r.awaitUp()
		r.request(1, "initialize")
		end := r.next()
		for end.id == "" {
			end = r.next()
		}
		if status, ok := errors.AsType[*link.StatusError](end.err); !ok || status.Status != 400 {
			t.Errorf("%s: initialize fails with %v", name, end.err)
		}
		if n := len(s.requests("GET")); n != 2 {
			t.Errorf("%s: %d attempts of the older transport, want one a link", name, n)
		}
		r.request(2, "initialize")
		r.failure("2")
	}
}

func TestAServerThatNamesNoAddressInTimeIsNotWaitedFor(t *testing.T) {
	server := newOlder(": hello\n\n")
	bubble(t, server.handle, func(t *testing.T, _ *site, o Options) {
		server.over = make(chan struct{}) // of the bubble
		o.Old = true
		r := run(t, o, 1<<20)
		if err := r.ended(); !errors.Is(err, errNoEndpoint) || !errors.Is(err, link.ErrUnsent) {
			t.Errorf("Run ends with %v", err)
		}
	})
}

func TestARequestThatWaitsForTheOneStreamEndsAtItsDeadline(t *testing.T) {
	s := serve(t, newOlder("event: endpoint\ndata: /messages\n\n").handle)
	r := run(t, Options{URL: s.url, Old: true}, 1<<20)
	r.initialize()
	id := jsonrpc.IntID(2)
	r.send(link.Message{ID: id, Method: "silent", Head: jsonrpc.AppendRequest(nil, id, "silent", nil), Deadline: time.Now().Add(300 * time.Millisecond)})
	if err := r.failure("2"); !errors.Is(err, errDeadline) {
		t.Errorf("it ends with %v", err)
	}
	r.request(3, "tools/call")
	r.answer("3")
}
