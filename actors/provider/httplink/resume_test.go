package httplink

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// resuming is a server whose answers' streams end early: post is the stream of a call, gets those that take it up again, one behind the
// other, each a status and a text.
type resuming struct {
	post string
	gets []string // "405" or a text
	mu   sync.Mutex
	at   []time.Time
	ids  []string
}

func (s *resuming) handle(w http.ResponseWriter, r *http.Request, g got) {
	if g.method != http.MethodGet || g.header.Get("Last-Event-Id") == "" {
		ordinary(func(w http.ResponseWriter, _ *http.Request, _ got) { startEvents(w, s.post) })(w, r, g)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.ids = append(s.at, time.Now()), append(s.ids, g.header.Get("Last-Event-Id"))
	n := min(len(s.at), len(s.gets)) - 1
	switch text := s.gets[n]; text {
	case "404", "405", "503":
		var status int
		_, _ = fmt.Sscan(text, &status)
		w.WriteHeader(status)
	default:
		startEvents(w, text)
	}
}

// TestAStreamThatEndsEarlyIsTakenUpWhereItEnded: by the id of its last whole event, not before the server wants it, and only so often.
func TestAStreamThatEndsEarlyIsTakenUpWhereItEnded(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/message"}`
	for name, c := range map[string]struct {
		post     string
		gets     []string
		answered bool
		ids      []string
		first    time.Duration // at the earliest
	}{
		"primed":            {"id: 1\nretry: 500\ndata:\n\n", []string{event(result("2"))}, true, []string{"1"}, 500 * time.Millisecond},
		"without a retry":   {"id: 1\ndata:\n\n", []string{event(result("2"))}, true, []string{"1"}, time.Second},
		"impatient":         {"id: 1\nretry: 0\ndata:\n\n", []string{event(result("2"))}, true, []string{"1"}, firstPause},
		"patient":           {"id: 1\nretry: 9999999999\ndata:\n\n", []string{event(result("2"))}, true, []string{"1"}, maxPause},
		"an event cut":      {"id: 1\ndata:\n\nid: 2\ndata: " + note, []string{event(result("2"))}, true, []string{"1"}, 0},
		"twice":             {"id: a\ndata:\n\n", []string{"id: b\n" + event(note), event(result("2"))}, true, []string{"a", "b"}, 0},
		"the id stays":      {"id: a\n" + event(note), []string{event(note), event(result("2"))}, true, []string{"a", "a"}, 0},
		"a busy server":     {"id: a\ndata:\n\n", []string{"503", "503", event(result("2"))}, true, []string{"a", "a", "a"}, 0},
		"no streams":        {"id: a\ndata:\n\n", []string{"405"}, false, []string{"a"}, 0},
		"a lost session":    {"id: a\ndata:\n\n", []string{"404"}, false, []string{"a"}, 0},
		"nothing new":       {"id: a\ndata:\n\n", []string{""}, false, slices.Repeat([]string{"a"}, maxResumes), 0},
		"no ids":            {event(note), nil, false, nil, 0},
		"an id taken back":  {"id: a\n" + event(note) + "id\n" + event(note), nil, false, nil, 0},
		"an id for nothing": {"id: " + strings.Repeat("x", 2000) + "\n" + event(note), nil, false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := &resuming{post: c.post, gets: c.gets}
			bubble(t, server.handle, func(t *testing.T, s *site, o Options) {
				r := run(t, o, 1<<20)
				r.initialize()
				time.Sleep(time.Second)
				begun := time.Now()
				r.request(2, "tools/call")
				end := r.next()
				for ; end.id == ""; end = r.next() {
					if end.about != "2" {
						t.Errorf("told %+v", end)
					}
				}
				if (end.err == nil) != c.answered || end.id != "2" || errors.Is(end.err, link.ErrUnsent) {
					t.Errorf("the end is %+v", end)
				}
				server.mu.Lock()
				defer server.mu.Unlock()
				if !slices.Equal(server.ids, c.ids) {
					t.Errorf("taken up from %v, want %v", server.ids, c.ids)
				}
				for i, at := range server.at {
					if pause := at.Sub(begun); i == 0 && (pause < c.first || pause > 2*max(c.first, firstPause)) {
						t.Errorf("taken up after %v, want %v or a little more", pause, c.first)
					}
				}
				for _, g := range s.requests("GET") {
					if g.header.Get("Mcp-Session-Id") != "s-1" || g.header.Get("Mcp-Protocol-Version") != "2025-06-18" {
						t.Errorf("a GET without session and version: %v", g.header)
					}
				}
			})
		})
	}
}

func TestTheWaitForAStreamEndsAtTheDeadline(t *testing.T) {
	server := &resuming{post: "id: 1\nretry: 50000\ndata:\n\n", gets: []string{""}}
	bubble(t, server.handle, func(t *testing.T, _ *site, o Options) {
		r := run(t, o, 1<<20)
		r.initialize()
		begun := time.Now()
		id := jsonrpc.IntID(2)
		r.send(link.Message{ID: id, Method: "x", Head: jsonrpc.AppendRequest(nil, id, "x", nil), Deadline: begun.Add(7 * time.Second)})
		if err := r.failure("2"); !errors.Is(err, errDeadline) || time.Since(begun) != 7*time.Second {
			t.Errorf("it ends with %v after %v", err, time.Since(begun))
		}
	})
}

// listening is a server with streams to listen to: each is a status or a text, and stays open when it ends with "…".
type listening struct {
	streams []string
	mu      sync.Mutex
	at      []time.Time
	ids     []string
}

func (s *listening) handle(w http.ResponseWriter, r *http.Request, g got) {
	if g.method != http.MethodGet {
		ordinary(func(w http.ResponseWriter, _ *http.Request, g got) { reply(w, g, `{}`) })(w, r, g)
		return
	}
	s.mu.Lock()
	s.at, s.ids = append(s.at, time.Now()), append(s.ids, g.header.Get("Last-Event-Id"))
	n := len(s.at) - 1
	s.mu.Unlock()
	if n >= len(s.streams) {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	switch text := s.streams[n]; text {
	case "400", "405", "500", "html":
		status := http.StatusOK
		_, _ = fmt.Sscan(text, &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>")
	default:
		text, stays := strings.CutSuffix(text, "…")
		startEvents(w, text)
		if stays {
			<-r.Context().Done()
		}
	}
}

// TestTheServersOwnStreamIsOpenedAgain: from its last event, after a pause that grows while nothing comes of it, until there is none.
func TestTheServersOwnStreamIsOpenedAgain(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	for name, c := range map[string]struct {
		streams []string
		told    int
		ids     []string
		pauses  []time.Duration // at the least
		gaps    int             // through which something may have been missed
	}{
		"none":             {[]string{"405"}, 0, []string{""}, nil, 0},
		"none of its kind": {[]string{"html"}, 0, []string{""}, nil, 0},
		"refused":          {[]string{"400"}, 0, []string{""}, nil, 0},
		"stays":            {[]string{event(changed) + "id: 7\n" + event(changed) + "…"}, 2, []string{""}, nil, 0},
		"ends":             {[]string{"id: 7\n" + event(changed), "…"}, 1, []string{"", "7"}, []time.Duration{firstPause}, 0},
		"rhythm":           {[]string{"retry: 200\nid: 7\ndata:\n\n", "id: 8\n" + event(changed), "…"}, 1, []string{"", "7", "8"}, []time.Duration{200 * time.Millisecond, 200 * time.Millisecond}, 0},
		"fails":            {[]string{"500", "500", "", "405"}, 0, []string{"", "", "", ""}, []time.Duration{firstPause, 2 * firstPause, 4 * firstPause}, 1},
		"unnamed":          {[]string{":\n", event(changed) + "…"}, 1, []string{"", ""}, []time.Duration{firstPause}, 1},
		"too long":         {[]string{"data: " + strings.Repeat("x", 200<<10) + "\n\n" + event(changed) + "…"}, 1, []string{""}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := &listening{streams: c.streams}
			bubble(t, server.handle, func(t *testing.T, _ *site, o Options) {
				o.ResultBytes = 100 << 10
				r := run(t, o, 1<<20)
				r.initialize()
				time.Sleep(2 * time.Minute)
				for range c.gaps {
					if got := r.next(); !got.missed {
						t.Errorf("told %+v, want a gap", got)
					}
				}
				for range c.told {
					if got := r.next(); got.frame != changed || got.about != "" {
						t.Errorf("told %+v", got)
					}
				}
				if len(r.told) != 0 {
					t.Errorf("told once more: %+v", <-r.told)
				}
				r.request(2, "still/here")
				r.answer("2")
				server.mu.Lock()
				defer server.mu.Unlock()
				if !slices.Equal(server.ids, c.ids) {
					t.Errorf("opened from %q, want %q", server.ids, c.ids)
				}
				for i, least := range c.pauses {
					if pause := server.at[i+1].Sub(server.at[i]); pause < least || pause > least+least/pauseSpread+time.Millisecond {
						t.Errorf("pause %d is %v, want %v or a little more", i, pause, least)
					}
				}
				if name == "too long" && r.refusals("long_message") != 1 {
					t.Errorf("refused %v", r.refused)
				}
			})
		})
	}
}

func TestPausesGrowAndAreBounded(t *testing.T) {
	for _, retry := range []time.Duration{0, 1, minPause, 5 * time.Second, time.Hour} {
		for n := range 100 {
			p := mark{retry: retry}.pause(n)
			if p < minPause || p > maxPause+maxPause/pauseSpread {
				t.Errorf("after %d attempts with retry %v the pause is %v", n, retry, p)
			}
		}
	}
}

func TestACancelledRequestIsNotWaitedForAnyMore(t *testing.T) {
	over := make(chan struct{})
	s := serve(t, ordinary(func(w http.ResponseWriter, r *http.Request, _ got) {
		startEvents(w, ": working\n\n")
		<-r.Context().Done()
		close(over)
	}))
	r := run(t, Options{URL: s.url}, 1<<20)
	r.initialize()
	r.request(2, "slow")
	await(t, "the request", func() bool { return len(s.called("slow")) == 1 })
	r.notify("notifications/cancelled", `{"requestId":2}`)
	if err := r.failure("2"); !errors.Is(err, errCancelled) || errors.Is(err, link.ErrUnsent) {
		t.Errorf("it ends with %v", err)
	}
	<-over
	if n := len(s.called("notifications/cancelled")); n != 1 {
		t.Errorf("the server was told %d times", n)
	}
	r.notify("notifications/cancelled", `{"requestId":2}`) // of one that is over: the server is told all the same
	await(t, "the second", func() bool { return len(s.called("notifications/cancelled")) == 2 })
}

func TestACancelledRequestThatWaitsForItsPlaceIsNeverSent(t *testing.T) {
	s := serve(t, ordinary(func(_ http.ResponseWriter, r *http.Request, _ got) { <-r.Context().Done() }))
	r := run(t, Options{URL: s.url}, 8<<20)
	r.initialize()
	for i := range int64(maxRequests) {
		r.request(100+i, "hang")
	}
	await(t, "the requests", func() bool { return len(s.called("hang")) == maxRequests })
	r.request(2, "waits")
	r.notify("notifications/cancelled", `{"requestId":2}`)
	if err := r.failure("2"); !errors.Is(err, link.ErrUnsent) {
		t.Errorf("it ends with %v", err)
	}
	r.end()
	if len(s.called("waits")) != 0 || len(s.called("notifications/cancelled")) != 0 {
		t.Error("the server heard of it")
	}
}

// TestRequestsGoWhenTheServersOwnStreamWasAskedFor: and not never, when that brings nothing.
func TestRequestsGoWhenTheServersOwnStreamWasAskedFor(t *testing.T) {
	for name, wait := range map[string]time.Duration{"open": 0, "silent": askGrace} {
		bubble(t, func(w http.ResponseWriter, r *http.Request, g got) {
			switch {
			case g.method != http.MethodGet:
				ordinary(func(w http.ResponseWriter, _ *http.Request, g got) { reply(w, g, `{}`) })(w, r, g)
			case name == "open":
				startEvents(w, ": here\n\n")
				fallthrough
			default:
				<-r.Context().Done()
			}
		}, func(t *testing.T, s *site, o Options) {
			begun := time.Now()
			r := run(t, o, 1<<20)
			r.initialize()
			r.request(2, "tools/call")
			r.answer("2")
			if waited := time.Since(begun); waited != wait {
				t.Errorf("%s: the request went after %v, want %v", name, waited, wait)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := s.seen[2].method; got != http.MethodGet {
				t.Errorf("%s: %s came before the stream was asked for", name, got)
			}
		})
	}
}
