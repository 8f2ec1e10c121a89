package scale

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestALateCallCountsFromWhenItWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, rate, pause = 21, 1000, 300 * time.Millisecond
		p := pace(t.Context(), n, rate, 1, time.Sleep, func(_ context.Context, i int) error {
			if i == 0 {
				time.Sleep(pause) // the one caller is busy while all others become due
			}
			return nil
		})
		if p.latency.n != n || len(p.failed) != 0 {
			t.Fatalf("%d of %d calls were answered, %v", p.latency.n, n, p.failed)
		}
		// The last was due after 20 ms, and made when the first was done.
		if least := p.latency.Quantile(0.01); least < pause-20*time.Millisecond || p.latency.max != pause {
			t.Errorf("calls that waited took from %v to %v", least, p.latency.max)
		}
		if p.service.Quantile(0.9) != 0 || p.service.max != pause || p.lateness.max != pause-time.Millisecond {
			t.Errorf("from when they were made they took %v and %v, and were late by %v", p.service.Quantile(0.9), p.service.max, p.lateness.max)
		}
		if p.elapsed != pause {
			t.Errorf("all was over after %v", p.elapsed)
		}
	})
}

func TestCallsAreMadeAtTheirTimeWhateverBecameOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		p := pace(t.Context(), 50, 500, 50, time.Sleep, func(_ context.Context, i int) error {
			if at := time.Since(begun) - 10*time.Millisecond; at != time.Duration(i)*2*time.Millisecond {
				t.Errorf("call %d was made at %v", i, at)
			}
			time.Sleep(callLimit / 2)
			return nil
		})
		if p.latency.n != 50 || p.lateness.max != 0 || p.latency.max != callLimit/2 {
			t.Errorf("%d answered, the latest after %v, late by %v", p.latency.n, p.latency.max, p.lateness.max)
		}
	})
}

func TestFailuresAreCountedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace(t.Context(), 12, 1000, 3, time.Sleep, func(ctx context.Context, i int) error {
			switch i % 4 {
			case 0:
				return &failure{"overloaded", errors.New("full")}
			case 1:
				return errors.New("odd")
			case 2:
				<-ctx.Done() // which comes when nobody answers for long
				return &failure{"transport", ctx.Err()}
			}
			return nil
		})
		if p.latency.n != 3 || p.failed["overloaded"] != (Failures{3, "overloaded: full"}) || p.failed["other"] != (Failures{3, "odd"}) || p.failed["unanswered"].N != 3 {
			t.Errorf("%d answered, failed %v", p.latency.n, p.failed)
		}
	})
}

func TestAnEndStopsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := pace(ctx, 1_000_000, 100, 2, time.Sleep, func(ctx context.Context, i int) error {
			if i == 1 {
				cancel()
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if p.failed["unanswered"].N != 2 || p.latency.n != 0 {
			t.Errorf("%d answered, %v", p.latency.n, p.failed)
		}
	})
}

func TestTheKernelSleepsAsLongAsItIsTold(t *testing.T) {
	begun := time.Now()
	kernelSleep(2 * time.Millisecond)
	if slept := time.Since(begun); slept < 2*time.Millisecond {
		t.Errorf("2 ms took %v", slept)
	}
}
