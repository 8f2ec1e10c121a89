package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// manyTools are n tools of a server with these words in their names.
func manyTools(word string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s_%03d", word, i)
	}
	return names
}

// More tools than a session may name of its own are all there, whether they come before, during or after its first search, and beside others.
func TestALongListIsFoundWheneverItComes(t *testing.T) {
	big := manyTools("big", 50)
	limits := DeskLimits{Names: 10}
	has := func(t *testing.T, when string, f finding, total int) {
		t.Helper()
		if !strings.Contains(f.text, fmt.Sprintf(`"total":%d}`, total)) || !strings.Contains(f.text, `"unavailable":[]`) {
			t.Errorf("%s: %.300s … %s", when, f.text, f.text[max(0, len(f.text)-200):])
		}
	}
	t.Run("after the first search has waited in vain", func(t *testing.T) {
		s := newServer("many", Connecting, nil)
		runWith(t, DeskConfig{Limits: limits}, []*fakeServer{s}, func(w *world) {
			if f := <-w.search(Query{}); f.after != SettleTimeout || !strings.Contains(f.text, `"pending":["many"]`) {
				t.Fatalf("after %v: %s", f.after, f.text)
			}
			s.lists(big...)
			has(t, "late", <-w.search(Query{Text: "big"}), 50)
			for range 2 {
				s.lists(append(slices.Clone(big), manyTools("more", 20)...)...)
				has(t, "grown", <-w.search(Query{}), 70)
			}
		})
	})
	t.Run("beside one that was shown, and others of the client", func(t *testing.T) {
		quick, slow := newServer("quick", Ready, tools("read", "big_007")), newServer("many", Connecting, nil)
		runWith(t, DeskConfig{Limits: limits}, []*fakeServer{quick, slow}, func(w *world) {
			w.attach(shop("shop.buy"))
			<-w.search(Query{})
			slow.lists(slices.DeleteFunc(slices.Clone(big), func(name string) bool { return name == "big_007" })...)
			has(t, "late", <-w.search(Query{}), 52)
			for name, provider := range map[string]string{"big_007": "quick", "big_008": "many", "read": "quick", "shop.buy": BrowserProvider} {
				if c, ok := byName(w.view.Load().Catalog(), name); !ok || c.Provider != provider {
					t.Errorf("%s is of %q", name, c.Provider)
				}
			}
		})
	})
}

// What a session has no room to name is told, with its number, and the rest is there.
func TestToolsWithoutRoomForTheirNamesAreTold(t *testing.T) {
	run(t, DeskConfig{Limits: DeskLimits{Names: 3}}, func(w *world) {
		w.attach(shop(manyTools("tool", 5)...))
		f := <-w.search(Query{})
		if !strings.Contains(f.text, `"total":3}`) || !strings.Contains(f.text, "2 of its tools are not shown") {
			t.Error(f.text)
		}
		if again := <-w.search(Query{}); again.text != f.text || again.after > time.Millisecond {
			t.Errorf("after %v: %s", again.after, again.text)
		}
	})
}

// The desk of anonymous callers is as old as the pod: names of tools that are gone leave room for others, for good. A session keeps them; what it
// has no room for is told, and can be called by its qualified form.
func TestToolsThatComeAndGoLeaveRoomForOthers(t *testing.T) {
	for _, session := range []bool{false, true} {
		churns, quiet := newServer("churns", Ready, tools("zero")), newServer("quiet", Ready, tools("stays"))
		cfg := DeskConfig{Limits: DeskLimits{Names: 10}, Owner: "-"}
		if session {
			cfg.Owner = ""
		}
		runWith(t, cfg, []*fakeServer{churns, quiet}, func(w *world) {
			<-w.search(Query{})
			for round := range 12 {
				// "stays" of the other server, once a name of theirs comes in between, is no reason to take what all sessions were given
				churns.lists(append(manyTools(fmt.Sprintf("t%d", round), 7), "stays")...)
				<-w.search(Query{Names: true, Limit: 1})
			}
			quiet.lists("stays", "fresh")
			f := <-w.search(Query{Names: true})
			whole := strings.Contains(f.text, `"total":10}`) && strings.Contains(f.text, `"name":"fresh"`) && strings.Contains(f.text, `"unavailable":[]`)
			if whole == session {
				t.Errorf("session %v: %s", session, f.text)
			}
			if session && !strings.Contains(f.text, "1 of its tools are not shown") {
				t.Errorf("it is not told: %s", f.text)
			}
			if c, ok := byName(w.view.Load().Catalog(), "stays"); !ok || c.Server != "quiet" {
				t.Errorf("session %v: a name that was shown is of %q", session, c.Server)
			}
			c := w.call(Request{Name: "quiet.fresh"})
			_, q := quiet.next(t)
			w.answer(q, "ok")
			if e := c.wait(); e.err != nil {
				t.Errorf("session %v: by its qualified form: %v", session, e.err)
			}
		})
	}
}

// Whatever a session was shown, the names of many sessions take nothing of it, or are not taken.
func TestNamesOfManySessionsTakeNothingThatWasShown(t *testing.T) {
	server := rapid.SampledFrom([]string{"a", "b", "c", "a-b"})
	tool := rapid.SampledFrom([]string{"x", "y", "a.x", "b.x", "b.x.2", "a.b.x", "c.y", "x.2", "x y", "a/b"})
	one := rapid.Custom(func(t *rapid.T) binding {
		b := of(server.Draw(t, "server"), tool.Draw(t, "tool"))
		b.configured = rapid.Bool().Draw(t, "configured")
		return b
	})
	configured := func(list []binding) []binding {
		return slices.DeleteFunc(slices.Clone(list), func(b binding) bool { return !b.configured })
	}
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		n := names{}
		for range rapid.IntRange(0, 4).Draw(t, "rounds") {
			offered := rapid.SliceOfN(one, 0, 8).Draw(t, "offered")
			if rapid.Bool().Draw(t, "at once") {
				n = n.extend(offered)
				continue
			}
			base := names{}.extend(configured(offered))
			next, ok := n.rebased(&base)
			if !ok {
				n = n.extend(offered)
				continue
			}
			taken++
			n.all(func(name string, b binding) {
				if got, given := next.given(name); !given || got != b {
					t.Fatalf("%q meant %v and means %v", name, b, got)
				}
				if got, _ := next.of(b); got != name {
					t.Fatalf("%v was called %q and is called %q", b, name, got)
				}
				if got, given := next.find(name); !given || got != b {
					t.Fatalf("%q finds %v, not %v", name, got, b)
				}
			})
			for book := &n; book != nil; book = book.base {
				for name, b := range book.also {
					if got, found := next.find(name); !found || got != b {
						t.Fatalf("%q was accepted for %v and finds %v", name, b, got)
					}
				}
			}
			for _, b := range configured(offered) {
				if _, named := next.of(b); !named {
					t.Fatalf("%v has no name", b)
				}
			}
			seen := map[string]binding{}
			next.all(func(name string, b binding) {
				if _, twice := seen[name]; twice {
					t.Fatalf("%q is there twice", name)
				}
				seen[name] = b
			})
			if len(seen) != next.count() || len(slices.Compact(slices.Sorted(maps.Keys(seen)))) != len(seen) {
				t.Fatalf("%d names, %d are counted", len(seen), next.count())
			}
			n = next
		}
	})
	if taken == 0 {
		t.Error("no book was ever taken")
	}
}
