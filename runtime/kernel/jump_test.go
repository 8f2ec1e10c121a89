package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// leaping is a clock that stands still and jumps, as that of a machine which sleeps. What has become due in a jump fires all at once.
type leaping struct {
	mu     sync.Mutex
	now    time.Time
	timers []*leap
}

type leap struct {
	at time.Time
	f  func()
}

func (l *leaping) Now() time.Time { l.mu.Lock(); defer l.mu.Unlock(); return l.now }

func (l *leaping) AfterFunc(d time.Duration, f func()) func() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &leap{l.now.Add(d), f}
	l.timers = append(l.timers, t)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := slices.Index(l.timers, t)
		if at >= 0 {
			l.timers = slices.Delete(l.timers, at, at+1)
		}
		return at >= 0
	}
}

// jump fires in an order of chance: after a sleep nobody promises one.
func (l *leaping) jump(d time.Duration, rng *rand.Rand) {
	l.mu.Lock()
	l.now = l.now.Add(d)
	var due, rest []*leap
	for _, t := range l.timers {
		if t.at.After(l.now) {
			rest = append(rest, t)
		} else {
			due = append(due, t)
		}
	}
	l.timers = rest
	l.mu.Unlock()
	rng.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, t := range due {
		t.f()
	}
}

// However the clock jumps, a timer comes once, not before its time, and not at all when it was taken back before.
func TestTimersComeOnceHoweverTheClockJumps(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			clock := &leaping{now: time.Unix(1_700_000_000, 0)}
			k := kerneltest.Start(t, kernel.Options{Clock: clock})
			type came struct{ number int }
			fired := map[int]int{} // by number; in the actor's turn
			early := 0
			due, cancels := map[int]time.Time{}, map[int]func(){}
			taken := map[int]bool{}
			ref, err := k.Root(kernel.Spec{Name: "timed", Kind: "timed", New: func() kernel.Behavior {
				return receive(func(c *kernel.Ctx, m kernel.Msg) error {
					switch m := m.(type) {
					case came:
						fired[m.number]++
						if c.Now().Before(due[m.number]) || taken[m.number] {
							early++
						}
					case func(*kernel.Ctx):
						m(c)
					}
					return nil
				})
			}})
			if err != nil {
				t.Fatal(err)
			}
			turn := func(f func(c *kernel.Ctx)) {
				done := make(chan struct{})
				if err := ref.Tell(func(c *kernel.Ctx) { f(c); close(done) }); err != nil {
					t.Fatal(err)
				}
				<-done
			}
			number := 0
			for range 40 {
				turn(func(c *kernel.Ctx) {
					for range rng.IntN(6) {
						number++
						d := time.Duration(rng.Int64N(int64(20 * time.Second)))
						due[number] = c.Now().Add(d)
						cancels[number] = c.After(d, came{number})
					}
					for n, cancel := range cancels {
						if rng.IntN(20) == 0 {
							cancel()
							taken[n] = fired[n] == 0
							delete(cancels, n)
						}
					}
				})
				clock.jump(time.Duration(rng.Int64N(int64(time.Hour)))>>rng.IntN(16), rng)
			}
			clock.jump(time.Hour, rng)
			kerneltest.Eventually(t, "every timer that was not taken back", func() bool {
				missing := 0
				turn(func(*kernel.Ctx) {
					for n := range due {
						if fired[n] == 0 && !taken[n] {
							missing++
						}
					}
				})
				return missing == 0
			})
			turn(func(*kernel.Ctx) {
				for n, times := range fired {
					if times != 1 {
						t.Errorf("timer %d came %d times", n, times)
					}
				}
				if early > 0 {
					t.Errorf("%d timers came before their time, or after they were taken back", early)
				}
				if len(fired) < 20 {
					t.Errorf("only %d timers came: nothing was tested", len(fired))
				}
			})
		})
	}
}
