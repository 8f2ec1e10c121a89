package capability

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whoever repeats a call under its key is told what became of the first one, whatever now stands in the way of another. Only a key
// that was never used is told what stands there.
func TestARepeatUnderAKeyIsToldOfItsFirstCallWhateverIsInTheWay(t *testing.T) {
	request := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`), Key: "order-7"}
	firsts := map[string]struct {
		make   func(w *world, s *fakeSource) (end func())
		again  Code // "" = the result of the one execution
		ledger bool // only the ledger knows of it
	}{
		"was answered": {func(w *world, s *fakeSource) func() {
			c := w.call(request)
			_, q := s.next(w.t)
			w.answer(q, "once")
			c.wait()
			return nil
		}, "", false},
		"runs on": {func(w *world, s *fakeSource) func() {
			w.call(request).hang()
			_, q := s.next(w.t)
			return func() { w.answer(q, "once") }
		}, "", false},
		"was taken back while it ran": {func(w *world, s *fakeSource) func() {
			c := w.call(request)
			s.next(w.t)
			w.signal(EndCalls{Reason: EndCancel})
			c.wait()
			return nil
		}, OutcomeUnknown, false},
		"was made before its desk crashed": {func(w *world, s *fakeSource) func() {
			c := w.call(request)
			s.next(w.t)
			w.signal(Attach{nil})
			c.wait()
			time.Sleep(time.Minute)
			return nil
		}, OutcomeUnknown, true},
	}
	obstacles := map[string]struct {
		raise func(w *world, s *fakeSource) (lower func())
		fresh Code
		waits bool // for a server that connects
	}{
		"the server is detached":     {func(w *world, s *fakeSource) func() { w.signal(Detach{s}); return nil }, NotAttached, false},
		"the tool is listed no more": {func(w *world, s *fakeSource) func() { w.publish(s, Ready, tools("shop.look!")); return nil }, Unknown, false},
		"the server connects again": {func(w *world, s *fakeSource) func() {
			w.signal(Detach{s})
			w.attach(newSource("shop", Connecting, nil))
			return nil
		}, NotAttached, true},
		"no further call may be open": {func(w *world, s *fakeSource) func() {
			var filling []*pendingCall
			for range 3 {
				filling = append(filling, w.call(Request{Name: "shop.look"}))
			}
			return func() {
				for _, c := range filling {
					c.hang()
				}
			}
		}, TooMuch, false},
	}
	for what, first := range firsts {
		for obstacle, o := range obstacles {
			t.Run(fmt.Sprintf("%s, and %s", what, obstacle), func(t *testing.T) {
				run(t, DeskConfig{Limits: DeskLimits{Calls: 3}}, func(w *world) {
					s := w.attach(shop("shop.buy", "shop.look!"))
					end := first.make(w, s)
					lower := o.raise(w, s)
					fresh, changed := request, request
					fresh.Key, changed.Arguments = "order-8", []byte(`{"n":2}`)
					again := w.call(request)
					other := w.call(changed)
					unseen := w.call(fresh)
					if end != nil {
						if !again.open() {
							t.Error("it did not join the call that runs")
						}
						end()
					}
					e := again.wait()
					if e.code() != first.again || (first.again == "") != strings.Contains(string(e.result.Raw), "once") {
						t.Errorf("the repeat: %s, %v", e.result.Raw, e.err)
					}
					if at := map[bool]time.Duration{true: SettleTimeout}[o.waits && first.ledger]; e.after != at {
						t.Errorf("the repeat was told after %v, not %v", e.after, at)
					}
					if e := other.wait(); e.code() != BadArguments {
						t.Errorf("the key with other arguments: %v", e.err)
					}
					if e := unseen.wait(); e.code() != o.fresh {
						t.Errorf("a key that was never used: %v, want %s", e.err, o.fresh)
					}
					if lower != nil {
						lower()
					}
				})
			})
		}
	}
}

// A key speaks of its own session and capability, and of nobody else's.
func TestAKeyTellsNothingOfAnotherSessionOrCapability(t *testing.T) {
	ledger := newMemoryLedger()
	request := Request{Name: "shop.buy", Key: "k"}
	run(t, DeskConfig{Ledger: ledger, Owner: "one"}, func(w *world) {
		s := w.attach(shop("shop.buy", "shop.other"))
		c := w.call(request)
		_, q := s.next(t)
		w.answer(q, "once")
		c.wait()
		w.signal(Detach{s})
		if e := w.call(Request{Name: "shop.other", Key: "k"}).wait(); e.code() != NotAttached {
			t.Errorf("another capability: %v", e.err)
		}
	})
	grants := NewGrants([]Grant{{Name: "shop", Tools: []string{"shop.other"}}})
	for owner, want := range map[string]Code{"one": OutcomeUnknown, "two": ToolNotGranted} { // who made the first call had the grant then
		run(t, DeskConfig{Ledger: ledger, Owner: owner, Grants: grants}, func(w *world) {
			w.attach(shop("shop.buy", "shop.other"))
			if e := w.call(request).wait(); e.code() != want {
				t.Errorf("%s: %v", owner, e.err)
			}
		})
	}
}

// A desk that cannot be asked is no reason to deny a call that was made.
func TestAStartedKeyIsKnownWhenItsDeskTakesNothing(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		c := w.call(Request{Name: "shop.buy", Key: "k"})
		_, q := s.next(t)
		w.answer(q, "once")
		c.wait()
		account := w.k.Account()
		lease, err := account.Acquire(account.Limit() - account.Used())
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]Code{"k": OutcomeUnknown, "new": TooMuch, "": TooMuch} {
			if e := w.call(Request{Name: "shop.buy", Key: key}).wait(); e.code() != want {
				t.Errorf("with the key %q: %v, want %s", key, e.err, want)
			}
			if last := w.trail.all()[len(w.trail.all())-1]; last.Event != EventRefused || last.Outcome != string(want) {
				t.Errorf("with the key %q the audit has %+v", key, last)
			}
		}
		lease.Release()
	})
}

// After a restart of the pod a name has no meaning yet: it may be the published one or the qualified one, of a server that is
// declared or was.
func TestWhatANameMayHaveMeant(t *testing.T) {
	v := viewOf(all("shop", "bank"), []string{"late"}, newSource("shop", Ready, tools("search")), newSource("bank", Ready, tools("search")))
	for name, want := range map[string][]binding{
		"bank.search": {of("bank", "search")},
		"shop.search": {of("shop", "search")},
		"late.x":      {of("bank", "late.x"), of("late", "late.x"), of("late", "x"), of("shop", "late.x")},
		"gone.x":      {of("bank", "gone.x"), of("late", "gone.x"), of("shop", "gone.x"), of("gone", "gone.x"), of("gone", "x")},
		"x":           {of("bank", "x"), of("late", "x"), of("shop", "x")},
	} {
		got := v.meanings(name)
		sort := func(list []binding) {
			slices.SortFunc(list, func(a, b binding) int { return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.tool, b.tool)) })
		}
		sort(got)
		sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
