package provider

import (
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
)

func TestWhoAsksForAListOfAServerInBackoffHasItTriedAtOnceOnce(t *testing.T) {
	for name, want := range map[string]capability.Want{"a search": capability.Searched, "a plain name": capability.Guessed, "its name": capability.Meant} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer("buy")
			s.refuse = errCut
			cfg := with(s)
			cfg.Rand = func() float64 { return 0.999 } // the pause is long
			play(t, cfg, func(w *world) {
				w.want(want)
				w.pass(time.Hour)
				before := s.dials()
				if o := w.want(want); !o.ended || s.dials() != before+1 {
					t.Errorf("%d attempts", s.dials()-before)
				}
				w.pass(time.Second)
				s.set(func() { s.refuse = nil })
				if o := w.want(want); !o.ended || s.dials() != before+2 || w.state() != capability.Ready {
					t.Errorf("it is back, and not used: %v after %d attempts", w.state(), s.dials()-before)
				}
			})
		})
	}
}

func TestSearchesTryAServerInBackoffOnceASecond(t *testing.T) {
	for want, most := range map[capability.Want]int{capability.Searched: 11, capability.Guessed: 13} {
		s := newFakeServer("buy")
		s.refuse = errCut
		cfg := with(s)
		cfg.Rand = func() float64 { return 0.999 }
		play(t, cfg, func(w *world) {
			w.discover()
			w.pass(time.Hour)
			before := s.dials()
			for range 100 {
				if o := w.want(want); !o.ended {
					t.Fatal("it waits for nothing")
				}
				w.pass(100 * time.Millisecond)
			}
			if n := s.dials() - before; n < most-3 || n > most {
				t.Errorf("%v: %d attempts in 10 s", want, n)
			}
			if got := w.node("shop").Attrs["breaker"]; got != "closed" {
				t.Errorf("searches count for the breaker: %v", got)
			}
		})
	}
}

func TestCallsOfAServerThatNeverListedOpenItsBreaker(t *testing.T) {
	s := newFakeServer("buy")
	s.refuse = errCut
	play(t, with(s), func(w *world) {
		for range 100 {
			if o := w.want(capability.Meant); !o.ended {
				t.Fatal("it waits for nothing")
			}
		}
		if n := s.dials(); n != brokenAfter {
			t.Errorf("%d attempts", n)
		}
		if got := w.node("shop").Attrs["breaker"]; got != "open" {
			t.Error(got)
		}
		s.set(func() { s.refuse = nil })
		if o := w.discover(); !o.ended || s.dials() != brokenAfter {
			t.Error("a search goes past an open breaker")
		}
		w.pass(brokenFor)
		if o := w.want(capability.Meant); !o.ended || w.state() != capability.Ready {
			t.Error(w.state())
		}
	})
}

func TestOneAttemptIsForAllWhoAskMeanwhileAndOneMoreForAllWhoAskAfterItHasFailed(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["initialize"] = true
	cfg := with(s)
	cfg.Rand = func() float64 { return 0.999 }
	play(t, cfg, func(w *world) {
		first := w.discover()
		var more []*outcome
		for range 10 {
			more = append(more, w.want(capability.Meant))
		}
		if first.ended || s.dials() != 1 {
			t.Fatalf("%d attempts", s.dials())
		}
		s.set(func() { s.lingers = true }) // its process needs a while to end
		w.pass(time.Minute)
		for _, o := range append(more, first) {
			if !o.ended {
				t.Fatal("the attempt has failed, and somebody waits")
			}
		}
		s.set(func() { s.silent = map[string]bool{} })
		late := []*outcome{w.want(capability.Meant), w.want(capability.Meant), w.discover()}
		if late[0].ended || s.dials() != 1 {
			t.Fatalf("%d attempts: the one before has not ended", s.dials())
		}
		s.set(func() { s.lingers = false })
		s.last().die(errCut)
		w.pass(0)
		if s.dials() != 2 || s.peak() != 1 || w.state() != capability.Ready {
			t.Errorf("%d attempts, %d at a time, %v", s.dials(), s.peak(), w.state())
		}
		for _, o := range late {
			if !o.ended {
				t.Error("somebody waits")
			}
		}
	})
}

func TestAnOpenBreakerLetsNobodyWaitForTheEndOfAConnection(t *testing.T) {
	s := newFakeServer("buy")
	s.refuse = errCut
	play(t, with(s), func(w *world) {
		for range brokenAfter - 1 {
			w.want(capability.Meant)
		}
		s.set(func() { s.refuse, s.lingers, s.silent["initialize"] = nil, true, true })
		w.want(capability.Meant)
		w.pass(time.Minute)
		if o := w.want(capability.Meant); !o.ended || w.node("shop").Attrs["breaker"] != "open" {
			t.Errorf("%+v, %v", o, w.node("shop").Attrs)
		}
		s.set(func() { s.lingers = false })
		s.last().die(errCut)
		w.pass(0)
	})
}
