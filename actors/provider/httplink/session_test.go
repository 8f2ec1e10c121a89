package httplink

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func readRequest(c net.Conn) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return r
}

func TestASessionIsKeptSentAndEnded(t *testing.T) {
	s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, g got) { reply(w, g, `{"ok":true}`) }))
	r := run(t, Options{URL: s.url + "?k=v#part", Headers: map[string]string{"X-Api-Key": "k1", "authorization": "Bearer b1"}, Build: "9"}, 1<<20)
	r.initialize()
	r.request(2, "tools/list")
	if got := r.answer("2"); got != `{"jsonrpc":"2.0","id":2,"result":{"ok":true}}` {
		t.Errorf("the answer is %s", got)
	}
	await(t, "a look for a stream to listen to", func() bool { return len(s.requests("GET")) == 1 })
	if err := r.end(); !errors.Is(err, errTestOver) {
		t.Errorf("Run ends with %v", err)
	}
	first := s.called("initialize")[0].header
	if first.Get("Mcp-Session-Id") != "" || first.Get("Mcp-Protocol-Version") != "" {
		t.Errorf("initialize names a session or a version: %v", first)
	}
	later := append(s.called("tools/list"), s.called("notifications/initialized")...)
	later = append(later, s.requests("GET")...)
	later = append(later, s.requests("DELETE")...)
	if len(later) != 4 {
		t.Fatalf("the server saw %d requests in place of 4", len(later))
	}
	for _, g := range later {
		if g.header.Get("Mcp-Session-Id") != "s-1" || g.header.Get("Mcp-Protocol-Version") != "2025-06-18" {
			t.Errorf("%s %s: session %q, version %q", g.method, g.rpc.Method, g.header.Get("Mcp-Session-Id"), g.header.Get("Mcp-Protocol-Version"))
		}
	}
	for _, g := range append(later, s.called("initialize")...) {
		if g.header.Get("X-Api-Key") != "k1" || g.header.Get("Authorization") != "Bearer b1" || g.header.Get("User-Agent") != "acpod/9" {
			t.Errorf("%s %s: headers of the configuration are not as they were written: %v", g.method, g.rpc.Method, g.header)
		}
		accept := "application/json, text/event-stream"
		switch g.method {
		case "GET":
			accept = "text/event-stream"
		case "DELETE":
			accept = ""
		}
		if g.header.Get("Accept") != accept || g.header.Get("Accept-Encoding") != "" {
			t.Errorf("%s accepts %q, encoded %q", g.method, g.header.Get("Accept"), g.header.Get("Accept-Encoding"))
		}
	}
}

func TestWhatIsSaidAfterInitializedComesAfterIt(t *testing.T) {
	taken := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, g got) {
		if g.rpc.Method == "notifications/initialized" {
			<-taken
		}
		ordinary(func(w http.ResponseWriter, _ *http.Request, g got) { reply(w, g, `{}`) })(w, r, g)
	})
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	r.request(2, "tools/list")
	r.notify("notifications/roots/list_changed", "{}") // by another way, to see that the request would have come by now
	await(t, "the notification", func() bool { return len(s.called("notifications/roots/list_changed")) == 1 })
	if n := len(s.called("tools/list")); n != 0 {
		t.Error("a request has overtaken notifications/initialized")
	}
	close(taken)
	r.answer("2")
}

func TestALostSessionIsToldOfTheRequestAndTheNextInitializeBeginsAnother(t *testing.T) {
	var live atomic.Value
	live.Store("s-1")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, g got) {
		switch session := g.header.Get("Mcp-Session-Id"); {
		case g.method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case g.rpc.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", live.Load().(string))
			reply(w, g, `{}`)
		case session != live.Load():
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}`)
		case g.rpc.ID.IsZero():
			w.WriteHeader(http.StatusAccepted)
		default:
			reply(w, g, `{}`)
		}
	})
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	await(t, "notifications/initialized", func() bool { return len(s.called("notifications/initialized")) == 1 })
	live.Store("s-2")
	r.request(2, "tools/call")
	if err := r.failure("2"); !errors.Is(err, link.ErrSessionLost) || !errors.Is(err, link.ErrUnsent) {
		t.Fatalf("404 for a session is %v", err)
	}
	r.request(5, "tools/call") // what comes before the handshake is told the same
	if err := r.failure("5"); !errors.Is(err, link.ErrSessionLost) {
		t.Fatalf("a second 404 for a session is %v", err)
	}
	r.request(3, "initialize")
	r.answer("3")
	r.link.Speaks("2025-06-18")
	r.notify("notifications/initialized", "{}")
	r.request(4, "tools/call")
	r.answer("4")
	r.end()
	for _, g := range s.called("initialize") {
		if g.header.Get("Mcp-Session-Id") != "" || g.header.Get("Mcp-Protocol-Version") != "" {
			t.Errorf("initialize names a session or a version: %v", g.header)
		}
	}
	if d := s.requests("DELETE"); len(d) != 1 || d[0].header.Get("Mcp-Session-Id") != "s-2" {
		t.Errorf("the sessions that were ended: %v", d)
	}
}

func TestASessionIDThatNoHeaderMayHoldIsNone(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, g got) {
		if g.rpc.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", "two words")
			reply(w, g, `{}`)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	await(t, "notifications/initialized", func() bool { return len(s.called("notifications/initialized")) == 1 })
	if id := s.called("notifications/initialized")[0].header.Get("Mcp-Session-Id"); id != "" || r.refusals("bad_session_id") != 1 {
		t.Errorf("the session is %q, refused %v", id, r.refused)
	}
	r.end()
	if len(s.requests("DELETE")) != 0 {
		t.Error("a session was ended that never began")
	}
}

func TestAnAnswerStreamBringsInOrderWhatIsAboutItsRequest(t *testing.T) {
	s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, g got) {
		startEvents(w, "\ufeff: hello\r\n\r\n"+event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)+
			"event: message\r\nid: 7\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":\"q\",\"method\":\"roots/list\"}\r\n\r\n"+
			"event: other\ndata: {}\n\n"+event("not json")+event(result("2"))+event(result("2")))
	}))
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	r.request(2, "tools/call")
	for i, want := range []told{
		{about: "2", frame: `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`},
		{about: "2", frame: "{\"jsonrpc\":\"2.0\",\n\"id\":\"q\",\"method\":\"roots/list\"}"},
		{about: "2", id: "2", frame: result("2")},
	} {
		if got := r.next(); got != want {
			t.Errorf("%d: told %+v, want %+v", i, got, want)
		}
	}
	if r.refusals("unknown_event") != 1 || r.refusals("junk_message") != 1 {
		t.Errorf("refused %v", r.refused)
	}
	r.end()
	if len(r.told) != 0 {
		t.Errorf("told once more: %+v", <-r.told)
	}
}

func TestASessionThatTheServerHasLostIsNotEnded(t *testing.T) {
	s := serve(t, ordinary(func(w http.ResponseWriter, _ *http.Request, _ got) { w.WriteHeader(http.StatusNotFound) }))
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	r.request(2, "tools/call")
	r.failure("2")
	r.end()
	if n := len(s.requests("DELETE")); n != 0 {
		t.Errorf("it was ended %d times", n)
	}
}

func TestAMessageIsPaidForUntilItWasWritten(t *testing.T) {
	s := serve(t, ordinary(func(_ http.ResponseWriter, r *http.Request, _ got) { <-r.Context().Done() }))
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	id := jsonrpc.IntID(2)
	r.send(link.Message{ID: id, Method: "hang", Head: jsonrpc.AppendRequest(nil, id, "hang", []byte(`"`+strings.Repeat("x", 200<<10)+`"`))})
	await(t, "the request", func() bool { return len(s.called("hang")) == 1 })
	await(t, "the end of its lease", func() bool { return r.account.Used() < 100<<10 })
}
