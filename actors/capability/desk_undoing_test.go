package capability

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// slowLedger is a ledger on a disk that takes its time.
type slowLedger struct {
	*memoryLedger
	start, forget time.Duration
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (l slowLedger) Start(ctx context.Context, r KeyRecord) (*KeyRecord, error) {
	wait(ctx, l.start)
	return l.memoryLedger.Start(ctx, r)
}

func (l slowLedger) Forget(ctx context.Context, r KeyRecord) error {
	wait(ctx, l.forget)
	return l.memoryLedger.Forget(ctx, r)
}

func TestARepeatWaitsUntilTheStartOfACallThatWasNotMadeIsTakenBack(t *testing.T) {
	request := Request{Name: "shop.buy", Key: "k", RequestID: "i1"}
	for name, l := range map[string]slowLedger{
		"it ended while its start was written": {start: 100 * time.Millisecond, forget: 600 * time.Millisecond},
		"the taking back takes for ever":       {start: 100 * time.Millisecond, forget: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l.memoryLedger = newMemoryLedger()
			run(t, DeskConfig{Ledger: l}, func(w *world) {
				s := w.attach(shop("shop.buy"))
				first := w.call(request)
				synctest.Wait()
				w.signal(CancelRequest{Token: w.caller.Token, RequestID: "i1"})
				if e := first.wait(); e.code() != CancelledCall {
					t.Fatalf("the first: %v", e.err)
				}
				w.reachedNobody(s)
				repeat := request
				repeat.RequestID = ""
				again, more := w.call(repeat), w.call(repeat)
				if l.forget > SettleTimeout {
					if e := again.wait(); e.code() != CancelledCall || e.after < SettleTimeout || e.after > SettleTimeout+parkTime {
						t.Errorf("after %v: %v", e.after, e.err)
					}
					more.wait()
					return
				}
				_, q := s.next(t)
				w.answer(q, "once")
				for _, c := range []*pendingCall{again, more} {
					if e := c.wait(); e.err != nil || e.after != l.start+l.forget+l.start {
						t.Errorf("after %v: %v", e.after, e.err)
					}
				}
				w.reachedNobody(s)
			})
		})
	}
}

func TestRepeatsThatWaitForATakingBackAreCallsWithinTheirBound(t *testing.T) {
	request := Request{Name: "shop.buy", Key: "k", RequestID: "i1"}
	l := slowLedger{newMemoryLedger(), 100 * time.Millisecond, 600 * time.Millisecond}
	run(t, DeskConfig{Ledger: l, Limits: DeskLimits{Calls: 1}}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		first := w.call(request)
		synctest.Wait()
		w.signal(CancelRequest{Token: w.caller.Token, RequestID: "i1"})
		first.wait()
		repeat := request
		repeat.RequestID = ""
		again := w.call(repeat)
		synctest.Wait()
		if e := w.call(repeat).wait(); e.code() != CancelledCall || e.after != 0 {
			t.Errorf("one more than may be open, after %v: %v", e.after, e.err)
		}
		_, q := s.next(t)
		w.answer(q, "once")
		if e := again.wait(); e.err != nil {
			t.Error(e.err)
		}
	})
}

// TestAKeyWhoseStartIsBeingTakenBackIsNotForgotten: its next call would find that start, and be told of a call that was never made.
func TestAKeyWhoseStartIsBeingTakenBackIsNotForgotten(t *testing.T) {
	l := slowLedger{newMemoryLedger(), 100 * time.Millisecond, time.Second}
	run(t, DeskConfig{Ledger: l, Limits: DeskLimits{Keys: 2}}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		first := w.call(Request{Name: "shop.buy", Key: "k", RequestID: "i1"})
		w.signal(CancelRequest{Token: w.caller.Token, RequestID: "i1"})
		first.wait()
		open := w.call(Request{Name: "shop.buy", Key: "open"})
		time.Sleep(200 * time.Millisecond)
		if e := w.call(Request{Name: "shop.buy", Key: "more"}).wait(); e.code() != TooMuch {
			t.Errorf("a third key: %v", e.err)
		}
		again := w.call(Request{Name: "shop.buy", Key: "k"})
		_, q := s.next(t)
		w.answer(q, "open")
		_, q = s.next(t)
		w.answer(q, "again")
		if e := again.wait(); e.err != nil {
			t.Errorf("the repeat of a call that was not made: %v", e.err)
		}
		open.wait()
	})
}
