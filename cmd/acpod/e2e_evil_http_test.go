package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A server that lost its sessions answers 404: one initialize for all who wait, what it never accepted is sent once more, and another
// server's sessions are left alone.
func TestALostSessionIsHealedOnceAndOnlyThere(t *testing.T) {
	t.Parallel()
	lost := newEvilWeb(t, evilScript{Name: "lost", Sessions: true, Offer: []string{"echo", "slow"}})
	other := newEvilWeb(t, evilScript{Name: "other", Sessions: true})
	p, a := startEvil(t, providersConfig, lost, other)
	a.says("lost.echo", `{"n":0}`, `echo {"n":0}`)
	a.says("other.echo", `{"n":0}`, `echo {"n":0}`)
	_, second := p.session()
	for round := 1; round <= 3; round++ {
		lost.web.forget()
		var all sync.WaitGroup
		for i, caller := range []agentClient{a, second, a, second, a, second} {
			all.Go(func() {
				arguments := fmt.Sprintf(`{"n":"%d-%d"}`, round, i)
				caller.says("lost.echo", arguments, "echo "+arguments)
			})
		}
		all.Wait()
		if n := len(lost.journal("initialize")); n != round+1 {
			t.Errorf("round %d: initialized %d times", round, n)
		}
	}
	if n := lost.calls("echo"); n != 1+3*6 {
		t.Errorf("19 calls ran %d times", n)
	}
	if n := len(other.journal("initialize")); n != 1 {
		t.Errorf("the other server was initialized %d times", n)
	}
}

// A server that knows no session at all is not asked for ever.
func TestAServerThatLosesEverySessionIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "amnesic", Sessions: true})
	_, a := startEvil(t, providersConfig, s)
	a.says("echo", `{}`, `echo {}`)
	s.web.meddleWith(func(_ http.ResponseWriter, _ *http.Request, f frame) bool {
		if f.Method == "tools/call" {
			s.web.forget()
		}
		return false
	})
	if got := a.ask("echo", `{"n":1}`); !got.Result.IsError || got.Result.refusal() != "detached" {
		t.Errorf("%s", got.raw)
	}
	if initialized, lost := len(s.journal("initialize")), len(s.journal("lost")); initialized > 3 || lost > 3 || s.calls("echo") != 1 {
		t.Errorf("initialized %d times, refused %d times, %d calls", initialized, lost, s.calls("echo"))
	}
}

// eventForms are ways in which a stream of events may be written; %s is the message.
var eventForms = map[string]string{
	"LF":                     "data: %s\n\n",
	"CRLF":                   "event: message\r\nid: 7\r\ndata: %s\r\n\r\n",
	"CR":                     "data: %s\r\r",
	"no space":               "data:%s\n\n",
	"comments and keepalive": ": hello\n\n: keep-alive\n\ndata: %s\n: within\n\n",
	"an empty event first":   "id: 1\nretry: 5\ndata:\n\ndata: %s\n\n",
	"an unknown field":       "foo: bar\nbare\ndata: %s\n\n",
	"a byte order mark":      "\ufeffdata: %s\n\n",
	"another event's type":   "event: other\ndata: {}\n\nevent: message\ndata: %s\n\n",
}

// The whole grammar of event streams is read, wherever the network cuts them.
func TestEventStreamsAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "forms"})
	_, a := startEvil(t, providersConfig, s)
	for name, form := range eventForms {
		for _, step := range []int{1, 7, 1 << 20} { // bytes a write
			s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
				if f.Method != "tools/call" {
					return false
				}
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				note := fmt.Sprintf(form, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
				text := note + fmt.Sprintf(strings.TrimPrefix(form, "\ufeff"), answerOf(f, textOf(`é 😀 `+name)))
				for at := 0; at < len(text); at += step {
					io.WriteString(w, text[at:min(at+step, len(text))])
					w.(http.Flusher).Flush()
				}
				return true
			})
			a.says("echo", fmt.Sprintf(`{"form":%q,"step":%d}`, name, step), `é 😀 `+name)
		}
	}
	// One message over several data lines.
	s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
		if f.Method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\ndata: %s}\n\n", f.ID, textOf("lines"))
		return true
	})
	a.says("echo", `{}`, "lines")
}

// What a broken answer does to its own call, and to nothing else.
func TestABrokenAnswerFailsItsOwnCall(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0", 1<<20)
	for _, row := range []struct {
		name   string
		answer func(w http.ResponseWriter, f frame)
		why    string
	}{
		{"a stream that is cut before the answer", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": soon\n\ndata: {\"jsonrpc\"")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, ""},
		{"a stream that ends without an answer", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": nothing\n\n")
		}, ""},
		{"a body that is cut", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"jsonrpc":"2.0"`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, ""},
		{"a page", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>Please log in, token=SECRETVALUE</html>")
		}, ""},
		{"a body that is no JSON", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":`)
		}, ""},
		{"the answer to another request", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":"another","result":{"content":[]}}`)
		}, ""},
		{"500", func(w http.ResponseWriter, f frame) {
			http.Error(w, "stack trace with password=SECRETVALUE", http.StatusInternalServerError)
		}, "500"},
		{"429", func(w http.ResponseWriter, f frame) { http.Error(w, "slow down", http.StatusTooManyRequests) }, "429"},
		{"202 to a request", func(w http.ResponseWriter, f frame) { w.WriteHeader(http.StatusAccepted) }, ""},
		{"a bomb of gzip", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			bomb := gzip.NewWriter(w)
			fmt.Fprintf(bomb, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, f.ID)
			for range 64 {
				if _, err := io.WriteString(bomb, big); err != nil {
					return
				}
			}
			_ = bomb.Close()
		}, ""},
		{"a body without an end", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, f.ID)
			for range 64 {
				if _, err := io.WriteString(w, big); err != nil {
					return
				}
			}
		}, "result_bytes"},
		{"an event without an end", func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: ")
			for range 64 {
				if _, err := io.WriteString(w, big); err != nil {
					return
				}
			}
		}, "result_bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newEvilWeb(t, evilScript{Name: "broken", Offer: []string{"echo", "slow"}}).set("request_timeout_secs", 20)
			p, a := startEvil(t, providersConfig, s)
			a.says("echo", `{}`, `echo {}`)
			neighbour := a.later("slow", `{"ms":500,"text":"all the same"}`)
			until(t, "the neighbour at the server", func() bool { return s.calls("slow") == 1 })
			var tries atomic.Int32
			s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
				if f.Method != "tools/call" || !strings.Contains(f.raw, `"break"`) {
					return false
				}
				tries.Add(1)
				row.answer(w, f)
				return true
			})
			got := a.ask("echo", `{"break":true}`)
			if !got.Result.IsError && got.Error == nil || !strings.Contains(got.raw, row.why) {
				t.Errorf("%.500s, which does not say %q", got.raw, row.why)
			}
			noneOf(t, "the answer", got.raw, "SECRETVALUE")
			noneOf(t, "the log", p.log.String(), "SECRETVALUE")
			if tries.Load() != 1 {
				t.Errorf("a call that may have run was sent %d times", tries.Load())
			}
			if result := neighbour.wait(); result.text() != "done all the same" {
				t.Errorf("the neighbour: %s", result.raw)
			}
			s.web.meddleWith(nil)
			a.says("echo", `{"after":1}`, `echo {"after":1}`)
			p.await("the bytes are given back", func() bool { return p.provider("broken").Account.Used < 1<<20 })
		})
	}
}

// An answer in a bomb's clothing that is small is an answer.
func TestACompressedAnswerIsReadOrRefusedButNeverShown(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "packed"})
	_, a := startEvil(t, providersConfig, s)
	a.says("echo", `{}`, `echo {}`)
	s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
		if f.Method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			io.WriteString(w, answerOf(f, textOf("packed")))
			return true
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		io.WriteString(packed, answerOf(f, textOf("packed")))
		_ = packed.Close()
		return true
	})
	a.says("echo", `{"n":1}`, "packed")
}

// 401 and 403 end the matter until credentials change: no retry, no breaker, no request to any address that the server names.
func TestARefusalOfCredentialsStopsAndFetchesNothing(t *testing.T) {
	t.Parallel()
	trapped := atomic.Int32{}
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { trapped.Add(1) }))
	t.Cleanup(trap.Close)
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newEvilWeb(t, evilScript{Name: "closed"}).set("headers", object{"Authorization": "Bearer SECRETVALUE"})
			good := newEvilWeb(t, evilScript{Name: "good"})
			s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="mail.read", resource_metadata="`+trap.URL+`/.well-known/oauth-protected-resource"`)
				http.Error(w, "no: SECRETVALUE", status)
				return true
			})
			p, a := startEvil(t, providersConfig, s, good)
			first := a.search(`{}`)
			if why := first.without("closed"); why == "" || !strings.Contains(why, fmt.Sprint(status)) && !strings.Contains(why, "credential") && !strings.Contains(why, "log in") {
				t.Errorf("it is told of as %q", why)
			}
			if !first.has("echo") {
				t.Error("the good one is not there")
			}
			tries := len(s.web.requests(http.MethodPost))
			for range 8 { // more than would open a breaker
				a.refuses("needs_login", "closed.echo", `{}`)
				a.search(`{}`)
			}
			if now := len(s.web.requests(http.MethodPost)); now != tries || tries > 2 {
				t.Errorf("asked %d times at first, %d times in the end", tries, now)
			}
			_, session := p.session()
			session.refuses("needs_login", "closed.echo", `{}`)
			text := encode(t, first)
			noneOf(t, "a search", text, "SECRETVALUE", trap.URL)
			noneOf(t, "the log", p.log.String(), "SECRETVALUE")
			if trapped.Load() != 0 {
				t.Error("an address in WWW-Authenticate was fetched")
			}
		})
	}
}

// No redirect is followed, and no configured header reaches a second host.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var caught []http.Header
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		caught = append(caught, r.Header)
	}))
	t.Cleanup(second.Close)
	var servers []*evilServer
	codes := []int{301, 302, 303, 307, 308}
	for _, code := range codes {
		s := newEvilWeb(t, evilScript{Name: fmt.Sprintf("to%d", code)}).set("headers", object{"X-Api-Key": "SECRETVALUE"})
		s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
			http.Redirect(w, r, second.URL+"/mcp", code)
			return true
		})
		servers = append(servers, s)
	}
	p, a := startEvil(t, providersConfig, servers...)
	seen := a.search(`{}`)
	for _, s := range servers {
		if !strings.Contains(seen.without(s.script.Name), "a redirect, which is not followed") {
			t.Errorf("%s is not among the unavailable, with what to do: %+v", s.script.Name, seen)
		}
		if got := a.ask(s.script.Name+".echo", `{}`); !got.Result.IsError {
			t.Errorf("%s: %s", s.script.Name, got.raw)
		}
		for _, request := range s.web.requests(http.MethodPost) {
			if request.Header.Get("X-Api-Key") != "SECRETVALUE" {
				t.Errorf("%s was asked without its header: %v", s.script.Name, request.Header)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(caught) != 0 {
		t.Errorf("the second host was asked with %v", caught)
	}
	noneOf(t, "the log", p.log.String(), "SECRETVALUE")
}

// What a server is sent is what its entry says, and nothing of who calls.
func TestAServerGetsItsOwnHeadersAndNobodysToken(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "headers", Sessions: true}).set("headers", object{"X-Api-Key": "its own", "Authorization": "Bearer its-own"})
	p, _ := startEvil(t, providersConfig, s)
	_, session := p.session()
	session.says("echo", `{}`, `echo {}`)
	for i, r := range s.web.requests(http.MethodPost) {
		h := r.Header
		if h.Get("X-Api-Key") != "its own" || h.Get("Authorization") != "Bearer its-own" || h.Get("Content-Type") != "application/json" ||
			!strings.Contains(h.Get("Accept"), "application/json") || !strings.Contains(h.Get("Accept"), "text/event-stream") || h.Get("Origin") != "" || h.Get("Cookie") != "" {
			t.Errorf("request %d has the headers %v", i, h)
		}
		noneOf(t, "a header", fmt.Sprint(h), session.token)
	}
}

// The older transport, an event stream that names where messages go, works and comes back after its stream was cut.
func TestTheOlderTransportWorksAndComesBack(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "old", OldSSE: true, Offer: []string{"echo", "read_hang", "hang"}})
	_, a := startEvil(t, providersConfig, s)
	a.says("echo", `{"n":1}`, `echo {"n":1}`)
	reads, writes := a.later("read_hang", `{}`), a.later("hang", `{}`)
	until(t, "the calls at the server", func() bool { return s.calls("read_hang") == 1 && s.calls("hang") == 1 })
	s.web.cut()
	if result := reads.wait(); result.refusal() != "detached" {
		t.Errorf("the one that reads: %s", result.raw)
	}
	if result := writes.wait(); result.refusal() != "outcome_unknown" {
		t.Errorf("the one that writes: %s", result.raw)
	}
	// A call may still go out over a connection that was cut and does not know it yet: one that reads is told so, and the next is served.
	until(t, "a call after the cut", func() bool {
		got := a.ask("echo", `{"n":2}`)
		if refusal := got.Result.refusal(); refusal != "" && refusal != "detached" {
			t.Fatalf("after the cut: %s", got.raw)
		}
		return strings.Contains(got.raw, "echo {")
	})
	if n := len(s.journal("stream")); n < 2 || n > 3 || s.calls("hang") != 1 {
		t.Errorf("%d streams, %d calls of hang", n, s.calls("hang"))
	}
}

// An endpoint event that points elsewhere is not followed: the entry's headers stay with its host.
func TestTheOlderTransportsMessagesStayWithItsHost(t *testing.T) {
	t.Parallel()
	caught := atomic.Int32{}
	second := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught.Add(1) }))
	t.Cleanup(second.Close)
	s := newEvilWeb(t, evilScript{Name: "old", OldSSE: true}).set("headers", object{"X-Api-Key": "SECRETVALUE"}).set("request_timeout_secs", 2)
	s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
		if r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/message\n\n", second.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	_, a := startEvil(t, providersConfig, s)
	if got := a.ask("old.echo", `{}`); !got.Result.IsError {
		t.Errorf("%s", got.raw)
	}
	if caught.Load() != 0 {
		t.Error("a message was sent to another host")
	}
}

// A second GET stream that the server refuses, or one that it closes again and again, ends neither its session nor its calls.
func TestAServersRefusedStreamEndsNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusConflict, http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusInternalServerError, http.StatusOK} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newEvilWeb(t, evilScript{Name: "one", Sessions: true})
			s.web.meddleWith(func(w http.ResponseWriter, r *http.Request, f frame) bool {
				if r.Method != http.MethodGet {
					return false
				}
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(status)
				return true
			})
			_, a := startEvil(t, providersConfig, s)
			for n := range 5 {
				arguments := fmt.Sprintf(`{"n":%d}`, n)
				a.says("echo", arguments, "echo "+arguments)
				time.Sleep(20 * time.Millisecond)
			}
			if len(s.journal("initialize")) != 1 || s.calls("echo") != 5 {
				t.Errorf("initialized %d times, %d calls", len(s.journal("initialize")), s.calls("echo"))
			}
			if n := len(s.web.requests(http.MethodGet)); n > 3 {
				t.Errorf("the stream was asked for %d times in no time", n)
			}
		})
	}
}

// A caller that goes away in the middle leaves nothing behind at an HTTP server either.
func TestACallerThatGoesAwayEndsItsCallAtTheServer(t *testing.T) {
	t.Parallel()
	s := newEvilWeb(t, evilScript{Name: "web", Offer: []string{"read_hang", "hang", "echo"}})
	p, _ := startEvil(t, with(providersConfig, "mcp.orphan_window", `"1s"`), s)
	e, a := p.session()
	a.says("echo", `{}`, `echo {}`)
	for _, tool := range []string{"read_hang", "hang"} {
		call := a.later(tool, `{}`)
		until(t, "the call at the server", func() bool { return s.calls(tool) == 1 })
		call.hangUp()
		until(t, "its end at the server", func() bool {
			for _, n := range s.journal("stopped") {
				if n.about == tool {
					return true
				}
			}
			return false
		})
	}
	a.says("echo", `{"n":1}`, `echo {"n":1}`)
	e.hangUp()
}

// The facade keeps no session: whatever a client does with session ids, streams and methods, it is answered at once and the same.
func TestTheFacadeKeepsNoSessionForAnybody(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one"})
	_, a := startEvil(t, providersConfig, s)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodHead, http.MethodOptions} {
		if r := a.statusOf(method, http.Header{"Mcp-Session-Id": {"stale"}, "Accept": {"text/event-stream"}}, ""); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: %d, Allow %q", method, r.StatusCode, r.Header.Get("Allow"))
		}
	}
	for _, session := range []string{"", "stale", "another"} {
		request := a.request(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"one.echo"}}}`)
		if session != "" {
			request.Header.Set("Mcp-Session-Id", session)
		}
		response, body := a.do(request)
		var answered struct{ Result toolResult }
		if err := json.Unmarshal(body, &answered); err != nil || answered.Result.text() != "echo {}" || response.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("session %q: %d %v %s", session, response.StatusCode, response.Header, body)
		}
	}
	for _, row := range []struct {
		header http.Header
		status int
	}{
		{http.Header{"Origin": {"http://evil.example"}}, http.StatusForbidden},
		{http.Header{"Origin": {"null"}}, http.StatusForbidden},
		{http.Header{"Host": {"evil.example"}}, http.StatusForbidden},
	} {
		row.header.Set("Content-Type", "application/json")
		response := a.statusOf(http.MethodPost, row.header, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if response.StatusCode != row.status || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: %d, %v", row.header, response.StatusCode, response.Header)
		}
	}
	// A header that names a cheap tool beside a body that calls another is refused before anything runs.
	before := s.calls("echo")
	request := a.request(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"one.echo"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	request.Header.Set("MCP-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", "tools/call")
	request.Header.Set("Mcp-Name", "search_capabilities")
	if response, body := a.do(request); response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "-32020") || s.calls("echo") != before {
		t.Errorf("a header that differs from the body: %d %s", response.StatusCode, body)
	}
}
