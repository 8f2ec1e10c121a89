package capability

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// lost breaks the way to a call's server.
func (w *world) lost(q *kernel.Question) {
	q.Fail(ErrDetached)
	synctest.Wait()
}

// TestARepeatOfAnOrphanWithoutAResultIsToldSoAndNotMade: its caller has gone and was told nothing, so the first who comes for it is.
func TestARepeatOfAnOrphanWithoutAResultIsToldSoAndNotMade(t *testing.T) {
	first, second := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}, Request{Name: "shop.buy", Arguments: []byte(`{"n":2}`)}
	for what, lose := range map[string]func(w *world, s *fakeSource){
		"its server went": func(w *world, s *fakeSource) {
			_, q := s.next(t)
			w.lost(q)
		},
		"its result went for another's": func(w *world, s *fakeSource) {
			_, q := s.next(t)
			w.answer(q, strings.Repeat("x", 100))
			w.call(second).hang()
			_, q = s.next(t)
			w.answer(q, strings.Repeat("y", 100))
		},
		"there was no room for its result": func(w *world, s *fakeSource) {
			_, q := s.next(t)
			w.answer(q, strings.Repeat("x", 2<<10))
		},
	} {
		run(t, DeskConfig{Limits: DeskLimits{KeptBytes: 150, ResultBytes: 1 << 10}}, func(w *world) {
			s := w.attach(shop("shop.buy"))
			w.call(first).hang()
			lose(w, s)
			begun := len(w.trail.all())
			if e := w.call(first).wait(); e.code() != OutcomeUnknown {
				t.Errorf("%s: the repeat got %s, %v", what, e.result.Raw, e.err)
			}
			w.reachedNobody(s)
			if told := w.trail.all()[begun:]; len(told) != 1 || told[0].Event != EventRefused || told[0].Outcome != string(OutcomeUnknown) {
				t.Errorf("%s: the audit has %+v", what, told)
			}
			again := w.call(first) // it has been told: this is another call
			_, q := s.next(t)
			w.answer(q, "twice")
			if e := again.wait(); e.err != nil {
				t.Errorf("%s: %v", what, e.err)
			}
		})
	}
}

func TestTheEndOfAnOrphanIsForgottenWithItsWindowAndWithItsTurn(t *testing.T) {
	request := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
	for what, forget := range map[string]func(w *world){
		"window": func(*world) { time.Sleep(31 * time.Second) },
		"turn":   func(w *world) { w.signal(EndCalls{Reason: EndTurn}) },
	} {
		run(t, DeskConfig{}, func(w *world) {
			s := w.attach(shop("shop.buy"))
			w.call(request).hang()
			_, q := s.next(t)
			w.lost(q)
			forget(w)
			again := w.call(request)
			_, q = s.next(t)
			w.answer(q, "anew")
			if e := again.wait(); e.err != nil {
				t.Errorf("%s: %v", what, e.err)
			}
		})
	}
}

// TestARepeatWithoutTheKeySharesTheResultOfAnOrphanWithOne as it would have joined it.
func TestARepeatWithoutTheKeySharesTheResultOfAnOrphanWithOne(t *testing.T) {
	keyed, plain := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`), Key: "k"}, Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		w.call(keyed).hang()
		_, q := s.next(t)
		w.answer(q, "once")
		for _, r := range []Request{plain, keyed} {
			if e := w.call(r).wait(); !strings.Contains(string(e.result.Raw), "once") {
				t.Errorf("key %q: got %s, %v", r.Key, e.result.Raw, e.err)
			}
		}
		w.reachedNobody(s)
	})
	run(t, DeskConfig{Limits: DeskLimits{KeptBytes: 10}}, func(w *world) { // of which no result was kept
		s := w.attach(shop("shop.buy"))
		w.call(keyed).hang()
		_, q := s.next(t)
		w.answer(q, "once")
		for _, r := range []Request{plain, keyed} {
			if e := w.call(r).wait(); e.code() != OutcomeUnknown {
				t.Errorf("key %q: got %s, %v", r.Key, e.result.Raw, e.err)
			}
		}
		w.reachedNobody(s)
	})
}

func TestEndsThatAreRememberedAreBounded(t *testing.T) {
	run(t, DeskConfig{Limits: DeskLimits{Keys: 3}}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		before := w.desk.Account().Used()
		for n := range 5 {
			w.call(Request{Name: "shop.buy", Arguments: []byte{'{', '"', 'n', '"', ':', '0' + byte(n), '}'}}).hang()
			_, q := s.next(t)
			w.lost(q)
		}
		if used := w.desk.Account().Used() - before; used != 3*endBytes {
			t.Errorf("%d bytes are charged for 3 ends", used)
		}
		if n := w.refused()["kept_results"]; n != 2 {
			t.Errorf("%d were forgotten early, and counted", n)
		}
	})
}
