package kernel

import (
	"context"
	"runtime/pprof"
	"sync"
)

// Scheduler runs what is ready: turns, hooks, releases, owned goroutines. The default starts a goroutine for each; a simulation
// runs one at a time in an order of its own.
type Scheduler interface {
	// Go runs f soon, not on the caller's stack. Kind is that of the actor it works for.
	Go(kind string, f func())
	// Batch is how many messages one turn may handle before it is scheduled anew.
	Batch() int
}

type goScheduler struct{}

func (goScheduler) Batch() int { return 256 }

func (goScheduler) Go(kind string, f func()) {
	go func() {
		// A new goroutine inherits the labels of its creator: without this an actor's CPU is booked to whoever woke it.
		pprof.SetGoroutineLabels(labels(kind))
		grow()
		f()
	}()
}

// grow enlarges the goroutine's stack once, while it is still shallow. The engine's frames and a behavior's need more than
// the first 2 KiB; growing later copies a deeper stack, which is more than half of the cost of a wake-up.
//
//go:noinline
func grow() byte {
	var b [3 << 10]byte
	return sink(&b)
}

//go:noinline
func sink(b *[3 << 10]byte) byte { return b[len(b)-1] }

// kindLabels keeps one label set a kind: there are few kinds, and many wake-ups.
var kindLabels sync.Map // kind → context.Context

func labels(kind string) context.Context {
	if c, ok := kindLabels.Load(kind); ok {
		return c.(context.Context)
	}
	c := pprof.WithLabels(context.Background(), pprof.Labels("actor", kind))
	kindLabels.Store(kind, c)
	return c
}
