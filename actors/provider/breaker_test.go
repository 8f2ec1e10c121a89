package provider

import (
	"testing"
	"time"
)

func TestTheBreakerOpensAfterThreeFaultsInARowAndAdmitsOneProbe(t *testing.T) {
	now := time.Unix(1000, 0)
	var b breaker
	admits := func(at time.Duration, want bool, after time.Duration) {
		t.Helper()
		ok, in := b.admits(now.Add(at))
		if ok != want || in != after {
			t.Errorf("after %v: %v in %v, want %v in %v", at, ok, in, want, after)
		}
	}
	b.fault(now)
	b.fault(now)
	admits(0, true, 0)
	b.success()
	b.fault(now)
	b.fault(now)
	admits(0, true, 0)
	if b.fault(now); b.state(now) != "open" {
		t.Error(b.state(now))
	}
	admits(0, false, time.Minute)
	admits(59*time.Second+900*time.Millisecond, false, time.Second) // at least a second
	admits(time.Minute, true, 0)
	if got := b.state(now.Add(time.Minute)); got != "half-open" {
		t.Error(got)
	}
	b.probe()
	admits(time.Minute, false, time.Second)
	b.abandon() // it showed nothing
	admits(time.Minute, true, 0)
	b.probe()
	b.fault(now.Add(time.Minute))
	admits(time.Minute, false, time.Minute)
	admits(2*time.Minute, true, 0)
	b.probe()
	b.success()
	if !b.closed() || b.state(now) != "closed" {
		t.Error("a success does not close it")
	}
	admits(0, true, 0)
	if b.probe(); b.probing {
		t.Error("a closed breaker needs no probe")
	}
}

func TestTheBackoffDoublesToItsCapAndIsAnywhereBelowIt(t *testing.T) {
	for n, top := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := backoff(n, 0); got != 0 {
			t.Errorf("failure %d: at least %v", n, got)
		}
		if got := backoff(n, 0.5); got != top/2 {
			t.Errorf("failure %d: %v, want %v", n, got, top/2)
		}
	}
}
