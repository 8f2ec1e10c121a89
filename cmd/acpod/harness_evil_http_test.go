package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// evilWeb is the evil server behind HTTP: Streamable HTTP as of 2025-11-25, or the older stream of events.
type evilWeb struct {
	*evil
	server *httptest.Server

	mu       sync.Mutex
	sessions map[string]bool // that it knows; the others get 404
	given    int             // session ids so far
	seen     []*http.Request // every request, in order
	streams  map[string]chan string
	// meddle may answer a request itself: true = it did. Called for each, with the message of a POST.
	meddle func(w http.ResponseWriter, r *http.Request, f frame) bool
}

func serveEvil(t testing.TB, script evilScript) *evilWeb {
	w := &evilWeb{evil: newEvilCore(script), sessions: map[string]bool{}, streams: map[string]chan string{}}
	w.server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// meddleWith sets what comes before everything else.
func (w *evilWeb) meddleWith(meddle func(http.ResponseWriter, *http.Request, frame) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meddle = meddle
}

// forget makes it lose its sessions, as a restart or a reaper of idle ones does.
func (w *evilWeb) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sessions)
}

// requests are those of a method so far.
func (w *evilWeb) requests(method string) (found []*http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.seen {
		if method == "" || r.Method == method {
			found = append(found, r)
		}
	}
	return found
}

func (w *evilWeb) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var f frame
	_ = json.Unmarshal(body, &f)
	f.raw = string(body)
	w.mu.Lock()
	w.seen = append(w.seen, r)
	meddle := w.meddle
	w.mu.Unlock()
	switch {
	case meddle != nil && meddle(out, r, f):
	case w.script.OldSSE:
		w.old(out, r, f)
	case r.Method == http.MethodDelete:
		w.mu.Lock()
		delete(w.sessions, r.Header.Get("Mcp-Session-Id"))
		w.mu.Unlock()
		w.script.write("delete", "")
		out.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost:
		w.script.write("method", r.Method)
		out.Header().Set("Allow", "POST, DELETE")
		out.WriteHeader(http.StatusMethodNotAllowed)
	default:
		w.post(out, r, f)
	}
}

// post answers one message of Streamable HTTP.
func (w *evilWeb) post(out http.ResponseWriter, r *http.Request, f frame) {
	if w.script.Sessions {
		id := r.Header.Get("Mcp-Session-Id")
		w.mu.Lock()
		known := w.sessions[id]
		if f.Method == "initialize" {
			w.given++
			id, known = fmt.Sprintf("session-%d", w.given), true
			w.sessions[id] = true
			out.Header().Set("Mcp-Session-Id", id)
		}
		w.mu.Unlock()
		if id == "" {
			http.Error(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}`, http.StatusBadRequest)
			return
		}
		if !known {
			w.script.write("lost", f.Method)
			http.Error(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, http.StatusNotFound)
			return
		}
	}
	if f.ID == nil || f.Method == "" {
		w.hear(f, func(string) {})
		out.WriteHeader(http.StatusAccepted)
		return
	}
	if w.script.Plain || f.Method != "tools/call" {
		w.hear(f, func(text string) {
			if strings.Contains(text, `"method":`) {
				return // a body of JSON has room for the answer alone
			}
			out.Header().Set("Content-Type", "application/json")
			io.WriteString(out, text)
		})
		return
	}
	out.Header().Set("Content-Type", "text/event-stream")
	gone := r.Context()
	go func() { <-gone.Done(); w.cancel(string(f.ID)) }()
	w.hear(f, event(out))
	if gone.Err() != nil {
		w.script.write("closed", f.Method)
	}
}

// event writes messages as events.
func event(out http.ResponseWriter) say {
	return func(text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(out, "data: %s\n", strings.TrimSuffix(line, "\n"))
		}
		io.WriteString(out, "\n")
		out.(http.Flusher).Flush()
	}
}

// old is the transport of 2024: a stream first, which says where messages go; answers come in the stream.
func (w *evilWeb) old(out http.ResponseWriter, r *http.Request, f frame) {
	id := r.URL.Query().Get("session")
	if r.Method == http.MethodGet {
		w.mu.Lock()
		w.given++
		id = fmt.Sprint(w.given)
		stream := make(chan string, 64)
		w.streams[id] = stream
		w.mu.Unlock()
		w.script.write("stream", id)
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(out, "event: endpoint\r\ndata: /message?session=%s\r\n\r\n: alive\r\n\r\n", id)
		out.(http.Flusher).Flush()
		for {
			select {
			case text, open := <-stream:
				if !open {
					return
				}
				io.WriteString(out, "event: message\r\n")
				event(out)(text)
			case <-r.Context().Done():
				return
			}
		}
	}
	w.mu.Lock()
	stream := w.streams[id]
	w.mu.Unlock()
	if stream == nil || r.Method != http.MethodPost {
		out.WriteHeader(http.StatusNotFound)
		return
	}
	out.WriteHeader(http.StatusAccepted)
	go w.hear(f, func(text string) {
		select {
		case stream <- text:
		case <-time.After(patience):
		}
	})
}

// cut ends the streams of the older transport.
func (w *evilWeb) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, stream := range w.streams {
		close(stream)
		delete(w.streams, id)
	}
}
