package kernel_test

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The same work by the engine alone, with its stock mailbox: what the benchmarks stand beside.

func tellStock(n int) time.Duration {
	done := make(chan struct{})
	s := quietSystem()
	left := n
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(string); ok {
			if left--; left == 0 {
				close(done)
			}
		}
	}))
	t0 := time.Now()
	for range n {
		s.Root.Send(pid, benchMsg)
	}
	<-done
	d := time.Since(t0)
	s.Root.Stop(pid)
	return d
}

func wakeStock(n int) time.Duration {
	done := make(chan struct{})
	s := quietSystem()
	pids := make([]*actor.PID, ringSize)
	for i := range pids {
		pids[i] = s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if t, ok := c.Message().(*token); ok {
				if t.left == 0 {
					close(done)
				} else {
					t.left--
					c.Send(pids[(i+1)%ringSize], t)
				}
			}
		}))
	}
	t0 := time.Now()
	s.Root.Send(pids[0], &token{n})
	<-done
	d := time.Since(t0)
	for _, p := range pids {
		s.Root.Stop(p)
	}
	return d
}
