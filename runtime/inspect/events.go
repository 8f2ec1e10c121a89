package inspect

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

const (
	keptEvents    = 512              // what a watcher that comes back may still find
	watcherEvents = 256              // how far a watcher may fall behind
	maxWatchers   = 16               // streams open at once
	eventPause    = 15 * time.Second // without an event, a comment goes out to find watchers that are gone
	eventWrite    = 10 * time.Second // a watcher that takes nothing for this long is gone
)

var jsonTolerant = jsontext.AllowInvalidUTF8(true)

// Event is the end of one generation, or its start, as /debug/events tells it. A start has id, at, path, kind, gen and follows only.
type Event struct {
	Start     bool      `json:"-"` // the SSE event is named start, not exit
	ID        uint64    `json:"id"`
	At        time.Time `json:"at"`
	Path      string    `json:"path"`
	Kind      string    `json:"kind"`
	Gen       uint64    `json:"gen"`
	Cause     string    `json:"cause"`
	Crashed   bool      `json:"crashed"`
	Abandoned bool      `json:"abandoned"`
	LivedMS   int64     `json:"lived_ms"`
	Next      uint64    `json:"next,omitzero"` // the generation that follows
	DelayMS   int64     `json:"delay_ms,omitzero"`
	Follows   uint64    `json:"follows,omitzero"` // of a start: the generation that it replaces
}

// events keeps the last ones and hands new ones to whoever watches. The lock is held for a few assignments only.
type events struct {
	mu       sync.Mutex
	last     uint64
	kept     []Event
	watchers map[*watcher]struct{}
	closed   bool
}

// watcher is one open stream. Its channel is closed when it is dropped.
type watcher struct {
	events  chan Event
	dropped bool // it was too slow; written before the channel is closed
}

func newEvents() *events { return &events{watchers: map[*watcher]struct{}{}} }

func (e *events) started(now time.Time, s kernel.Started) {
	e.add(Event{Start: true, At: now, Path: s.Path, Kind: s.Kind, Gen: s.Gen, Follows: s.Follows})
}

func (e *events) ended(now time.Time, exit kernel.Exit) {
	event := Event{
		At: now, Path: exit.Path, Kind: exit.Kind, Gen: exit.Gen, Crashed: exit.Crashed, Abandoned: exit.Abandoned,
		LivedMS: exit.Lived.Milliseconds(), Next: exit.Next, DelayMS: exit.Delay.Milliseconds(),
	}
	if exit.Cause != nil {
		event.Cause = kernel.Escape(exit.Cause.Error(), 200)
	}
	e.add(event)
}

func (e *events) add(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	event.ID = e.last
	if len(e.kept) == keptEvents {
		e.kept = append(e.kept[:0], e.kept[1:]...)
	}
	e.kept = append(e.kept, event)
	for w := range e.watchers {
		select {
		case w.events <- event:
		default:
			w.dropped = true
			e.end(w)
		}
	}
}

// end takes a watcher out; called with the lock.
func (e *events) end(w *watcher) {
	if _, there := e.watchers[w]; there {
		delete(e.watchers, w)
		close(w.events)
	}
}

// watch opens a stream and returns what it missed since the event numbered after. Nil when there are too many.
func (e *events) watch(after uint64) (*watcher, []Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || len(e.watchers) >= maxWatchers {
		return nil, nil
	}
	w := &watcher{events: make(chan Event, watcherEvents)}
	e.watchers[w] = struct{}{}
	var missed []Event
	for _, event := range e.kept {
		if event.ID > after {
			missed = append(missed, event)
		}
	}
	return w, missed
}

func (e *events) leave(w *watcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(w)
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for w := range e.watchers {
		e.end(w)
	}
}

func (i *Inspector) serveEvents(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64)
	watcher, missed := i.events.watch(after)
	if watcher == nil {
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, "too many watchers, or the pod is stopping; try again later")
		return
	}
	defer i.events.leave(watcher)
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	send := func(text string) bool {
		_ = stream.SetWriteDeadline(time.Now().Add(eventWrite))
		_, err := fmt.Fprint(w, text)
		return err == nil && stream.Flush() == nil
	}
	if !send(": the start and the end of each generation\n\n") {
		return
	}
	for _, event := range missed {
		if !send(frame(event)) {
			return
		}
	}
	pause := time.NewTicker(eventPause)
	defer pause.Stop()
	for {
		select {
		case event, open := <-watcher.events:
			if !open {
				if watcher.dropped {
					send("event: dropped\ndata: {\"reason\":\"too slow\"}\n\n")
				}
				return
			}
			if !send(frame(event)) {
				return
			}
		case <-pause.C:
			if !send(": still here\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// frame is one event on the wire; JSON has no line breaks, so the data is one line.
func frame(e Event) string {
	name, shown := "exit", any(e)
	if e.Start {
		name, shown = "start", startEvent{e.ID, e.At, e.Path, e.Kind, e.Gen, e.Follows}
	}
	text, err := json.Marshal(shown, jsonTolerant)
	if err != nil {
		return ": an event did not fit into JSON\n\n"
	}
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.ID, name, text)
}

// startEvent is what a start shows.
type startEvent struct {
	ID      uint64    `json:"id"`
	At      time.Time `json:"at"`
	Path    string    `json:"path"`
	Kind    string    `json:"kind"`
	Gen     uint64    `json:"gen"`
	Follows uint64    `json:"follows,omitzero"`
}
