package kernel_test

import (
	"context"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestACancelTakesAQueuedQuestionOutAndTellsOfADeliveredOne(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	cp, ap := kerneltest.NewProbe(), kerneltest.NewProbe()
	callee, asker := kerneltest.Spawn(t, root, cp.Spec("callee")), kerneltest.Spawn(t, root, ap.Spec("asker"))
	var delivered, queued kernel.Ticket
	kerneltest.Do(t, asker, func(c *kernel.Ctx) { delivered, _ = c.Request(callee, "delivered") })
	_, q := kerneltest.AwaitQuestion[string](t, cp)
	if q.ID() != delivered.ID() {
		t.Errorf("ids %d and %d", q.ID(), delivered.ID())
	}
	kerneltest.Do(t, callee, func(*kernel.Ctx) { // nothing is delivered to it meanwhile
		kerneltest.Do(t, asker, func(c *kernel.Ctx) {
			queued, _ = c.Request(callee, "queued")
			c.Cancel(queued)
			c.Cancel(delivered)
			c.Cancel(delivered)
			c.Cancel(kernel.Ticket{})
		})
	})
	if x := kerneltest.Await[kernel.Cancelled](t, cp); x.Question != q {
		t.Errorf("cancelled %v", x)
	}
	l, err := k.Account().Acquire(10)
	if err != nil {
		t.Fatal(err)
	}
	if q.Answer("late", l) || l.Size() != 0 {
		t.Error("a cancelled question was answered")
	}
	for _, r := range []kernel.Ref{callee, asker} {
		kerneltest.Do(t, r, func(*kernel.Ctx) {})
	}
	if cp.Pending()+ap.Pending() != 0 {
		t.Errorf("%d messages to the callee and %d to the asker too many", cp.Pending(), ap.Pending())
	}
	// an answer that is on its way when the asker cancels never arrives
	kerneltest.Do(t, asker, func(c *kernel.Ctx) {
		tk, err := c.Request(callee, "race")
		if err != nil {
			t.Error(err)
			return
		}
		_, q := kerneltest.AwaitQuestion[string](t, cp)
		l, _ := k.Account().Acquire(10)
		if !q.Answer("on its way", l) {
			t.Error("not taken")
		}
		c.Cancel(tk)
	})
	kerneltest.Do(t, asker, func(*kernel.Ctx) {})
	if ap.Pending() != 0 {
		t.Errorf("got %v", ap.Next(t).Msg)
	}
	kerneltest.Eventually(t, "all is given back", func() bool { return k.Account().Used() == 0 })
}

func TestTheEndOfAnAskerCancelsItsRequests(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	cp, ap := kerneltest.NewProbe(), kerneltest.NewProbe()
	callee, asker := kerneltest.Spawn(t, root, cp.Spec("callee")), kerneltest.Spawn(t, root, ap.Spec("asker"))
	kerneltest.Do(t, asker, func(c *kernel.Ctx) { _, _ = c.Request(callee, "q") })
	_, q := kerneltest.AwaitQuestion[string](t, cp)
	asker.Stop(nil)
	if x := kerneltest.Await[kernel.Cancelled](t, cp); x.Question != q {
		t.Errorf("got %v", x)
	}
}

func TestADroppedAskTellsItsCalleeAndFreesALateLease(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	r, p := kerneltest.Root(t, k)
	one, err := r.Ask("one")
	if err != nil {
		t.Fatal(err)
	}
	_, q := kerneltest.AwaitQuestion[string](t, p)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	if _, _, err := one.Wait(ctx); err != errTest {
		t.Errorf("wait: %v", err)
	}
	one.Drop()
	one.Drop()
	if x := kerneltest.Await[kernel.Cancelled](t, p); x.Question != q {
		t.Errorf("got %v", x)
	}
	two, err := r.Ask("two")
	if err != nil {
		t.Fatal(err)
	}
	_, q = kerneltest.AwaitQuestion[string](t, p)
	l, _ := k.Account().Acquire(1000)
	if !q.Answer("x", l) {
		t.Error("not taken")
	}
	two.Drop() // nobody read it
	if l.Size() != 0 {
		t.Errorf("%d bytes left", l.Size())
	}
	three, _ := r.Ask("three")
	_, q = kerneltest.AwaitQuestion[string](t, p)
	l, _ = k.Account().Acquire(1000)
	q.Answer("x", l)
	m, got, err := three.Wait(t.Context())
	three.Drop()
	if m != "x" || got != l || err != nil || l.Size() != 1000 {
		t.Errorf("%v %v %v: the lease is the caller's", m, got, err)
	}
	l.Release()
}
