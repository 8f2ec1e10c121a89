package capability

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// finding is what came of a search.
type finding struct {
	text  string
	after time.Duration
}

// search makes a search on a goroutine of its own.
func (w *world) search(q Query) chan finding {
	out := make(chan finding, 1)
	go func() {
		begun := time.Now()
		text, lease, err := Search(context.Background(), w.caller, q)
		if err != nil {
			text = []byte(err.Error())
		}
		lease.Release()
		out <- finding{string(text), time.Since(begun)}
	}()
	synctest.Wait()
	return out
}

func TestTheFirstSearchWaitsForConfiguredServersAndFindsThem(t *testing.T) {
	notes, files := newServer("notes", Idle, nil), newServer("files", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{notes, files}, func(w *world) {
		w.attach(shop("shop.buy"))
		search := w.search(Query{})
		a, b := notes.asked(t), files.asked(t)
		time.Sleep(time.Second)
		notes.lists("add_note")
		found(a)
		time.Sleep(time.Second)
		files.lists("read_file", "add_note")
		found(b)
		f := <-search
		for _, name := range []string{`"name":"add_note"`, `"name":"read_file"`, `"name":"notes.add_note"`, `"name":"shop.buy"`} {
			if !strings.Contains(f.text, name) {
				t.Errorf("%s is not in %s", name, f.text)
			}
		}
		if f.after != 2*time.Second || !strings.Contains(f.text, `"pending":[]`) || !strings.Contains(f.text, `"unavailable":[]`) {
			t.Errorf("after %v: %s", f.after, f.text)
		}
		if f = <-w.search(Query{}); f.after != 0 {
			t.Errorf("the second search took %v", f.after)
		}
		for name, at := range map[string]*fakeServer{"add_note": files, "notes.add_note": notes, "files.read_file": files} {
			c := w.call(Request{Name: name})
			call, q := at.next(t)
			if call.Owner == "" {
				t.Error("nobody's call")
			}
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
	})
}
