package scale

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// callLimit is when a call that was not answered counts as an error.
const callLimit = 30 * time.Second

// failure is a call that went wrong, of a kind that is counted.
type failure struct {
	kind string
	err  error
}

func (f *failure) Error() string { return f.kind + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Failures are the calls of one kind that went wrong.
type Failures struct {
	N       int    `json:"n"`
	Example string `json:"example"` // the first that was seen
}

// paced is what came of a number of calls.
type paced struct {
	latency  Histogram // from the time at which the call was due
	service  Histogram // from the time at which it was made
	lateness Histogram // between the two
	failed   map[string]Failures
	elapsed  time.Duration // until the last was answered
}

func (p *paced) merge(o *paced) {
	p.latency.Merge(&o.latency)
	p.service.Merge(&o.service)
	p.lateness.Merge(&o.lateness)
	for kind, failed := range o.failed {
		p.count(kind, failed.N, failed.Example)
	}
}

func (p *paced) count(kind string, n int, example string) {
	if p.failed == nil {
		p.failed = map[string]Failures{}
	}
	all := p.failed[kind]
	if all.N += n; all.Example == "" {
		all.Example = example
	}
	p.failed[kind] = all
}

// pace makes n calls, rate of them each second, from so many callers. A caller that is still at one call takes the next when it is
// done, and that one is late: its latency counts from when it was due. Latencies are those of calls that were answered.
func pace(ctx context.Context, n, rate, callers int, sleep func(time.Duration), call func(ctx context.Context, i int) error) *paced {
	due := make(chan int, n)
	begin := time.Now().Add(10 * time.Millisecond)
	at := func(i int) time.Time { return begin.Add(time.Duration(int64(i) * 1e9 / int64(rate))) }
	parts := make([]paced, callers)
	var working sync.WaitGroup
	for c := range callers {
		part := &parts[c]
		working.Go(func() {
			for i := range due {
				one(ctx, part, at(i), i, call)
			}
		})
	}
	tick(ctx, n, at, due, sleep)
	close(due)
	working.Wait()
	whole := &paced{elapsed: time.Since(begin)}
	for i := range parts {
		whole.merge(&parts[i])
	}
	return whole
}

// tick sends each number when it is due, from a thread of its own.
func tick(ctx context.Context, n int, at func(int) time.Time, due chan<- int, sleep func(time.Duration)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range n {
		for wait := time.Until(at(i)); wait > 0 && ctx.Err() == nil; wait = time.Until(at(i)) {
			sleep(min(wait, 100*time.Millisecond))
		}
		if ctx.Err() != nil {
			return
		}
		due <- i
	}
}

// kernelSleep sleeps in the kernel: the runtime's timers may be a millisecond late when nothing else happens.
func kernelSleep(d time.Duration) {
	rest := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&rest, nil) // cut short by a signal it is called again
}

func one(ctx context.Context, part *paced, due time.Time, i int, call func(ctx context.Context, i int) error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	begun := time.Now()
	err := call(ctx, i)
	ended := time.Now()
	part.lateness.Add(begun.Sub(due))
	if err == nil {
		part.latency.Add(ended.Sub(due))
		part.service.Add(ended.Sub(begun))
		return
	}
	kind := "other"
	if failed, ok := errors.AsType[*failure](err); ok {
		kind = failed.kind
	}
	if ctx.Err() != nil {
		kind = "unanswered"
	}
	part.count(kind, 1, err.Error())
}
