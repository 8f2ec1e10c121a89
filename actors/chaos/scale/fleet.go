package scale

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// client is one client of what is measured: of the pod, or of the echo server.
type client interface {
	// call makes the call with that number, which no other has, and returns when it was answered.
	call(ctx context.Context, number int) error
	// leave ends the client in order.
	leave(ctx context.Context) error
	// abandon ends it at once.
	abandon()
	// traffic is how many bytes came in and went out since it began.
	traffic() (in, out int64)
}

// fleet is all clients at once.
type fleet []client

// assemble connects n clients, at most parallel of them at the same time. Each took from its first SYN until it was ready
// what the histogram has. When one fails, all that came end.
func assemble(ctx context.Context, n, parallel int, dial func(ctx context.Context, number int) (client, error), seen func(n int)) (fleet, *Histogram, error) {
	all := make(fleet, n)
	took := make([]Histogram, parallel)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Int64
	each(n, parallel, func(worker, i int) {
		if ctx.Err() != nil {
			return
		}
		begun := time.Now()
		one, err := dial(ctx, i)
		if err != nil {
			cancel(fmt.Errorf("after %d were connected: %w", done.Load(), err))
			return
		}
		took[worker].Add(time.Since(begun))
		all[i] = one
		seen(int(done.Add(1)))
	})
	if err := context.Cause(ctx); err != nil {
		all.abandon()
		return nil, nil, err
	}
	for i := 1; i < parallel; i++ {
		took[0].Merge(&took[i])
	}
	return all, &took[0], nil
}

// disperse lets all leave in order, at most parallel at the same time, and gives the first thing that went wrong.
func (f fleet) disperse(ctx context.Context, parallel int) error {
	var first error
	var once sync.Once
	each(len(f), parallel, func(_, i int) {
		if err := f[i].leave(ctx); err != nil {
			once.Do(func() { first = err })
		}
	})
	return first
}

func (f fleet) abandon() {
	for _, one := range f {
		if one != nil {
			one.abandon()
		}
	}
}

func (f fleet) traffic() (in, out int64) {
	for _, one := range f {
		i, o := one.traffic()
		in, out = in+i, out+o
	}
	return in, out
}

// each does work for 0 to n-1 on so many goroutines.
func each(n, workers int, work func(worker, i int)) {
	var next atomic.Int64
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				work(w, i)
			}
		})
	}
	working.Wait()
}
