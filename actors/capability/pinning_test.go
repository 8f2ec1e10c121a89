package capability

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/mcp"
)

// fakePins remember by owner and name.
type fakePins struct {
	mu   sync.Mutex
	seen map[PinOwner]*sessionPins
	n    int // lists that were admitted
}

func (p *fakePins) of(o PinOwner) *sessionPins {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[PinOwner]*sessionPins{}
	}
	if p.seen[o] == nil {
		p.seen[o] = newSessionPins()
	}
	return p.seen[o]
}

func (p *fakePins) Admit(o PinOwner, tools []*Tool) {
	p.mu.Lock()
	p.n++
	p.mu.Unlock()
	p.of(o).Admit(o, tools)
}
func (p *fakePins) Changed(o PinOwner, t *Tool) []string { return p.of(o).Changed(o, t) }

// forget is an operator's acceptance of everything.
func (p *fakePins) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = nil
}

// described makes a list of tools, each with a description: "name: text".
func described(early bool, texts ...string) *List {
	var list []mcp.Tool
	for _, text := range texts {
		name, description, _ := strings.Cut(text, ": ")
		tools, bad, err := mcp.ParseTools(fmt.Appendf(nil, `[{"name":%q,"description":%q,"inputSchema":{"type":"object"}}]`, name, description), 10)
		if err != nil || len(bad) > 0 {
			panic(fmt.Sprint(err, bad))
		}
		list = append(list, tools...)
	}
	return NewList(list, early)
}

func TestAToolThatChangedIsHeldBackAndItsRefusalNamesWhatChanged(t *testing.T) {
	files, pins := newServer("files", Ready, described(false, "read: reads", "write: writes")), &fakePins{}
	runWith(t, DeskConfig{Pins: pins}, []*fakeServer{files}, func(w *world) {
		f := <-w.search(Query{})
		if !strings.Contains(f.text, `"total":2`) {
			t.Fatalf("got %s", f.text)
		}
		files.become(Toolset{State: Ready, List: described(false, "read: reads, and tells its author", "write: writes", "new: is new")})
		if list := w.view.Load().Catalog(); len(list) != 1 || list[0].Name != "write" {
			t.Errorf("before any turn of the desk: %+v", list)
		}
		f = <-w.search(Query{})
		if !strings.Contains(f.text, `"total":2`) || strings.Contains(f.text, `"name":"read"`) || !strings.Contains(f.text, `"name":"new"`) {
			t.Errorf("got %s", f.text)
		}
		if want := "files: 1 tool has changed (description) and is held back until the operator accepts it with `acpod mcp pins --accept files`"; !strings.Contains(f.text, want) {
			t.Errorf("%q is not in %s", want, f.text)
		}
		for _, name := range []string{"read", "files.read"} {
			e := w.call(Request{Name: name}).wait()
			if e.code() != PinChanged || !strings.Contains(e.err.Error(), "description") || !strings.Contains(e.err.Error(), "acpod mcp pins --accept files.read") {
				t.Errorf("%s: %v", name, e.err)
			}
		}
		entries := w.trail.all()
		if e := entries[len(entries)-1]; e.Provider != "files" || e.Outcome != string(PinChanged) {
			t.Errorf("the audit has %+v", e)
		}
		w.reachedNobody(files.fakeSource)
		pins.forget()
		if list := w.view.Load().Catalog(); len(list) != 3 {
			t.Errorf("after it was accepted: %+v", list)
		}
	})
}

func TestWhatAServerOnlyPromisedIsNotPinned(t *testing.T) {
	run(t, DeskConfig{Pins: &fakePins{}}, func(w *world) {
		s := w.attach(newSource("shop", Connecting, described(true, "buy: buys")))
		w.publish(s, Ready, described(false, "buy: buys for real"))
		if list := w.view.Load().Catalog(); len(list) != 1 {
			t.Fatalf("the real list is held to a promise: %+v", list)
		}
		w.publish(s, Ready, described(false, "buy: buys otherwise"))
		if list := w.view.Load().Catalog(); len(list) != 0 {
			t.Errorf("a tool that changed is shown: %+v", list)
		}
		u := w.view.Load().Unavailable()
		if len(u) != 1 || u[0].Provider != BrowserProvider || !strings.Contains(u[0].Error, "shop: 1 tool has changed (description) and is held back") {
			t.Errorf("got %+v", u)
		}
		if e := w.call(Request{Name: "buy"}).wait(); e.code() != PinChanged {
			t.Errorf("got %v", e.err)
		}
	})
}

func TestPinsOfClientsAreTheirOwnersOrTheSessions(t *testing.T) {
	for scope, want := range map[string]int{"": 0, "a client": 1} {
		pins := &fakePins{}
		run(t, DeskConfig{Pins: pins, PinScope: scope}, func(w *world) {
			s := w.attach(newSource("shop", Ready, described(false, "buy: buys")))
			if got := len(pins.of(PinOwner{scope, "shop"}).seen); got != want {
				t.Errorf("scope %q: %d tools are pinned for it", scope, got)
			}
			if err := w.desk.Signal(Attach{nil}); err != nil { // a fault of our own: what was pinned still is
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			w.publish(s, Ready, described(false, "buy: buys otherwise"))
			if list := w.view.Load().Catalog(); len(list) != 0 {
				t.Errorf("scope %q: a tool that changed is shown: %+v", scope, list)
			}
			other := w.attach(newSource("bank", Ready, described(false, "buy: buys otherwise")))
			if list := w.view.Load().Catalog(); len(list) != 1 || list[0].Server != other.server {
				t.Errorf("scope %q: another server's tool of that name: %+v", scope, list)
			}
		})
	}
}

func TestAListIsPinnedOnceHoweverManySessionsSeeIt(t *testing.T) {
	files, pins := newServer("files", Ready, described(false, "read: reads")), &fakePins{}
	roster := NewRoster([]Configured{files})
	for range 3 {
		run(t, DeskConfig{Pins: pins, Roster: roster}, func(w *world) {
			if f := <-w.search(Query{}); !strings.Contains(f.text, `"total":1`) {
				t.Errorf("got %s", f.text)
			}
		})
	}
	if pins.n != 1 {
		t.Errorf("it was admitted %d times", pins.n)
	}
}

func TestWithoutPinsNothingIsHeldBack(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(newSource("shop", Ready, described(false, "buy: buys")))
		w.publish(s, Ready, described(false, "buy: buys otherwise"))
		if list := w.view.Load().Catalog(); len(list) != 1 {
			t.Errorf("got %+v", list)
		}
	})
}
