package capability

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// TestAnAbandonedDeskEndsEachCallOnceAndGivesAllBackWhenItsLastTurnHasEnded blocks a desk in a turn, or in its last words, until it is given
// up; then that turn goes on.
func TestAnAbandonedDeskEndsEachCallOnceAndGivesAllBackWhenItsLastTurnHasEnded(t *testing.T) {
	stop := func(w *world) {
		kerneltest.Do(t, w.parent, func(c *kernel.Ctx) { c.Stop(w.desk, nil) })
	}
	for what, tc := range map[string]struct {
		at   Event // the record in which it blocks
		end  func(w *world)
		back bool
	}{
		"in the turn that sends a call":   {EventCall, stop, false},
		"in the turn that refuses a call": {EventRefused, stop, false},
		"in its last words":               {EventExit, stop, false},
		"and comes back":                  {EventCall, func(w *world) { w.desk.Stop(nil) }, true},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, DeskConfig{}, func(w *world) {
				list := tools("shop.buy", "shop.sell")
				lease, err := w.k.Account().Acquire(5000)
				if err != nil {
					t.Fatal(err)
				}
				list.bytes = append(list.bytes, lease)
				s := w.attach(newSource("shop", Ready, list))
				args := []byte(`{"n":1}`)
				kept := w.call(Request{Name: "shop.buy", Key: "k", Arguments: args}) // its key, its result and its schema are kept
				_, q := s.next(t)
				w.answer(q, "bought")
				kept.wait()
				var open []*pendingCall
				for range 3 {
					open = append(open, w.call(Request{Name: "shop.sell", Arguments: args, EndsOnClose: true}))
					_, _ = s.next(t)
				}
				gate, stuck := make(chan struct{}), make(chan struct{})
				var blocked atomic.Bool // the trail is written by the desk and by its release
				w.trail.on = func(e Entry) {
					if e.Event == tc.at && !blocked.Swap(true) {
						close(stuck)
						<-gate
					}
				}
				if tc.at != EventExit {
					name := "shop.buy"
					if tc.at == EventRefused {
						name = "nothing.like.it"
					}
					open = append(open, w.call(Request{Name: name, Arguments: args}))
				}
				old := w.desk
				tc.end(w)
				<-stuck
				select {
				case <-old.Done():
				case <-time.After(time.Hour):
					t.Fatal("it was not given up")
				}
				synctest.Wait()
				if !errors.Is(old.Cause(), kernel.ErrAbandoned) {
					t.Fatalf("it ended with %v", old.Cause())
				}
				if tc.back { // the successor has its names and lists, and calls go on
					time.Sleep(time.Minute)
					w.caller.Desk = w.desk.Current()
					again := w.call(Request{Name: "shop.sell", Arguments: args})
					_, q := s.next(t)
					w.answer(q, "sold")
					if e := again.wait(); e.err != nil {
						t.Error(e.err)
					}
				}
				close(gate)
				synctest.Wait()
				for _, c := range open {
					if e := c.wait(); e.err == nil {
						t.Error("a call had a result")
					}
				}
				if n := w.open.Load(); n != 0 {
					t.Errorf("the pod counts %d calls in flight", n)
				}
				ends := map[uint64]int{}
				for _, e := range w.trail.all() {
					switch e.Event {
					case EventCall:
						ends[e.Call]--
					case EventExit:
						ends[e.Call]++
					}
				}
				for call, n := range ends {
					if n != 0 {
						t.Errorf("call %d has %d records of its end too many", call, n)
					}
				}
				if tc.back {
					if lease.Size() == 0 {
						t.Error("the list that the successor has was given back")
					}
					kerneltest.Do(t, w.parent, func(c *kernel.Ctx) { c.Stop(w.desk.Current(), nil) })
					synctest.Wait()
				}
				if n := w.k.Account().Used(); n != 0 {
					t.Errorf("%d bytes are left", n)
				}
			})
		})
	}
}

// stuckSource holds the turn that attaches it.
type stuckSource struct {
	*fakeSource
	in, gate chan struct{}
}

func (s *stuckSource) Provider() string {
	close(s.in)
	<-s.gate
	return s.fakeSource.Provider()
}

func TestAnAbandonedDeskPublishesNothingOverItsSuccessor(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		w.attach(shop("shop.buy"))
		bank := &stuckSource{newSource("bank", Ready, tools("bank.pay")), make(chan struct{}), make(chan struct{})}
		old := w.desk
		if err := old.Signal(Attach{bank}); err != nil {
			t.Fatal(err)
		}
		<-bank.in
		old.Stop(nil)
		<-old.Done()
		time.Sleep(time.Minute) // its successor has begun
		w.signal(Declared{Names: []string{"later"}})
		now := w.view.Load()
		close(bank.gate)
		synctest.Wait()
		if w.view.Load() != now || len(now.Catalog()) != 1 {
			t.Errorf("the view of the successor was replaced: it has %d capabilities", len(w.view.Load().Catalog()))
		}
	})
}
