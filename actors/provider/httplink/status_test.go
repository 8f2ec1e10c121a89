package httplink

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// TestStatuses: what each status means for the request, and whether it may be sent again.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ unsent, auth, lost bool }{
		301: {unsent: true}, 302: {}, 303: {}, 307: {unsent: true}, 308: {unsent: true},
		400: {unsent: true}, 401: {unsent: true, auth: true}, 403: {unsent: true, auth: true}, 404: {unsent: true, lost: true}, 405: {unsent: true},
		406: {unsent: true}, 408: {unsent: true}, 409: {}, 413: {unsent: true}, 415: {unsent: true}, 429: {unsent: true},
		500: {}, 501: {unsent: true}, 502: {}, 503: {unsent: true}, 504: {}, 505: {unsent: true}, 599: {},
	} {
		s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, _ got) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(status)
		}))
		r := run(t, Options{URL: s.url}, 1<<20)
		r.initialize()
		r.request(2, "tools/call")
		err := r.failure("2")
		if errors.Is(err, link.ErrUnsent) != want.unsent || errors.Is(err, link.ErrSessionLost) != want.lost {
			t.Errorf("%d: %v: unsent %v, session lost %v", status, err, errors.Is(err, link.ErrUnsent), errors.Is(err, link.ErrSessionLost))
		}
		if auth, ok := errors.AsType[*link.AuthError](err); ok != want.auth || ok && auth.Status != status {
			t.Errorf("%d: %v", status, err)
		}
		if s, ok := errors.AsType[*link.StatusError](err); ok && s.Status != status || ok == (want.auth || want.lost) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestA404WithoutASessionIsAStatus(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, g got) {
		if g.rpc.Method == "initialize" {
			reply(w, g, `{}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	r.request(2, "tools/call")
	if err := r.failure("2"); errors.Is(err, link.ErrSessionLost) || !errors.Is(err, link.ErrUnsent) {
		t.Errorf("404 without a session is %v", err)
	}
}

// TestAnErrorStatusWithTheAnswer: a JSON-RPC error for the request is its answer, whatever the status.
func TestAnErrorStatusWithTheAnswer(t *testing.T) {
	t.Parallel()
	const answer = `{"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}`
	for body, answered := range map[string]bool{
		answer: true,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`:     false,
		`{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"another's"}}`: false,
		`{"jsonrpc":"2.0","id":2,"result":{}}`:                                   false,
		`[` + answer + `]`:                                                       false,
		`no`:                                                                     false,
		``:                                                                       false,
		answer[:len(answer)-1] + strings.Repeat(" ", maxErrorBytes) + "}":          false,
		`{"jsonrpc":"2.0","id":2,"method":"x","params":{"error":{"code":-32022}}}`: false,
	} {
		s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, _ got) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		}))
		r := run(t, Options{URL: s.url}, 1<<20)
		r.initialize()
		r.request(2, "tools/call")
		if answered {
			if got := r.answer("2"); got != body {
				t.Errorf("the answer is %s", got)
			}
		} else if status, ok := errors.AsType[*link.StatusError](r.failure("2")); !ok || status.Status != 400 {
			t.Errorf("%.80s: not the failure of a status", body)
		}
	}
}

// TestWhatIsNoAnswer: a success that holds none fails the request, which may have been done.
func TestWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(w http.ResponseWriter){
		"no type": func(w http.ResponseWriter) { w.Header()["Content-Type"] = nil; _, _ = io.WriteString(w, result("2")) },
		"html": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html\u0085")
			_, _ = io.WriteString(w, "<html>")
		},
		"202":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"204":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"nothing": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") },
		"another's": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, result("3"))
		},
		"a batch": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "["+result("2")+"]")
		},
		"a notification": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0"}`)
		},
		"gzip": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "\x1f\x8b\x08")
		},
		"gzip stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "br")
			startEvents(w, "xx")
		},
		"an empty stream": func(w http.ResponseWriter) { startEvents(w, "") },
		"a silent stream": func(w http.ResponseWriter) { startEvents(w, ": hello\n\n"+event(result("9"))) },
	} {
		s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, _ got) { script(w) }))
		r := run(t, Options{URL: s.url}, 1<<20)
		r.initialize()
		r.request(2, "tools/call")
		if err := r.failure("2"); errors.Is(err, link.ErrUnsent) {
			t.Errorf("%s: %v says that nothing was accepted", name, err)
		}
	}
}

func TestNoHostButTheConfiguredOneIsReached(t *testing.T) {
	t.Parallel()
	var trapped atomic.Int32
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := trap.Accept()
			if err != nil {
				return
			}
			trapped.Add(1)
			c.Close()
		}
	}()
	away := "http://" + trap.Addr().String()
	if newTransport(nil).Proxy != nil { // one for loopback is never used, so it shows nowhere else
		t.Error("a proxy of the environment would be a second host")
	}
	status := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, g got) {
		w.Header().Set("Location", away+"/mcp")
		w.Header().Add("Www-Authenticate", `Bearer error="insufficient_scope", resource_metadata="`+away+`/.well-known/oauth-protected-resource", scope="tools:read tools:call"`)
		w.Header().Add("Link", "<"+away+">; rel=preload")
		w.WriteHeader(status)
	})
	for _, status = range []int{301, 302, 303, 307, 308, 401, 403} {
		r := run(t, Options{URL: s.url, Headers: map[string]string{"X-Api-Key": "secret"}}, 1<<20)
		r.awaitUp()
		r.request(1, "initialize")
		err := r.failure("1")
		if errors.Is(err, link.ErrUnsent) == (status == 302 || status == 303) || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%d: %v", status, err)
		}
		if auth, ok := errors.AsType[*link.AuthError](err); ok != (status >= 400) || ok && auth.Scope != "tools:read tools:call" {
			t.Errorf("%d: %#v", status, err)
		}
		r.end()
	}
	trap.Close()
	<-over
	if n := trapped.Load(); n != 0 {
		t.Errorf("%d connections went to another host", n)
	}
}

func TestScopes(t *testing.T) {
	for challenge, want := range map[string]string{
		`Bearer scope="a b"`:                                       "a b",
		`Bearer realm="x, scope=\"no\"", scope=yes`:                "yes",
		`Basic realm="scope=no", Bearer error="e",SCOPE="files:*"`: "files:*",
		`Bearer`:                "",
		``:                      "",
		`Bearer scope=`:         "",
		`Bearer scope="never`:   "",
		`Bearer scope="a  b"`:   "",
		`Bearer scope="a\"b"`:   "",
		"Bearer scope=\"a\tb\"": "",
		`Bearer scope="` + strings.Repeat("x", maxScope+1) + `"`: "",
		`=,=,= scope="a"`:               "a",
		`Bearer not_scope="a", x=scope`: "",
	} {
		if got := scopeOf([]string{"Negotiate", challenge}); got != want {
			t.Errorf("%.60s: scope %q, want %q", challenge, got, want)
		}
	}
}

func FuzzScopes(f *testing.F) {
	f.Add(`Bearer realm="x, scope=\"no\"", scope=yes`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := scopeOf([]string{s}); got != "" && !isScope(got) {
			t.Fatalf("%q", got)
		}
	})
}

func TestADialThatFailsHasSentNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	r := run(t, Options{URL: "http://" + listener.Addr().String() + "/?key=secret"}, 1<<20)
	r.awaitUp()
	r.request(1, "initialize")
	got := r.failure("1")
	if _, ok := errors.AsType[*UnreachableError](got); !ok || !errors.Is(got, link.ErrUnsent) || strings.Contains(got.Error(), "secret") {
		t.Errorf("a refused dial is %v", got)
	}
}

func TestARequestEndsAtItsDeadlineAndNothingElseDoes(t *testing.T) {
	over := make(chan struct{})
	s := serve(t, ordinary(func(w http.ResponseWriter, r *http.Request, g got) {
		if g.rpc.Method == "slow" {
			<-r.Context().Done()
			close(over)
			return
		}
		reply(w, g, `{}`)
	}))
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	id := jsonrpc.IntID(2)
	r.send(link.Message{ID: id, Method: "slow", Head: jsonrpc.AppendRequest(nil, id, "slow", nil), Deadline: time.Now().Add(300 * time.Millisecond)})
	err := r.failure("2")
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, link.ErrUnsent) {
		t.Errorf("a deadline is %v", err)
	}
	select {
	case <-over:
	case <-time.After(patience):
		t.Error("the server's request is still open")
	}
	r.request(3, "fast")
	r.answer("3")
}

func TestTheEndOfTheLinkEndsWhatIsUnderWay(t *testing.T) {
	s := serve(t, ordinary(func(_ http.ResponseWriter, r *http.Request, _ got) { <-r.Context().Done() }))
	r := run(t, Options{URL: s.url}, 8<<20)
	r.initialize()
	for i := range int64(maxRequests + 10) {
		r.request(100+i, "hang")
	}
	await(t, "the requests", func() bool { return len(s.called("hang")) == maxRequests })
	if err := r.end(); !errors.Is(err, errTestOver) {
		t.Errorf("Run ends with %v", err)
	}
	queued := 0
	for range maxRequests + 10 {
		got := r.next()
		if got.err == nil {
			t.Fatalf("told %+v", got)
		}
		if errors.Is(got.err, link.ErrUnsent) {
			queued++
		}
	}
	if queued != 10 {
		t.Errorf("%d requests are said to be unsent, 10 were", queued)
	}
	if err := r.link.Send(link.Message{Method: "x"}); !errors.Is(err, link.ErrUnsent) {
		t.Errorf("after the end a message is taken: %v", err)
	}
}
