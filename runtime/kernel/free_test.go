package kernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// hoarder keeps every lease that it gets in its state, and gives them back in Free only.
type hoarder struct {
	*kerneltest.Probe
	pocket []*kernel.Lease
	frees  int
	cause  error
	gate   chan struct{} // of Free; nil = it does not wait
}

func (h *hoarder) Free(cause error) {
	if h.gate != nil {
		<-h.gate
	}
	h.frees++
	h.cause = cause
	for _, l := range h.pocket {
		l.Release()
	}
}

func (h *hoarder) take(a *kernel.Account, n int64) {
	l, err := a.Acquire(n)
	if err != nil {
		panic(err)
	}
	h.pocket = append(h.pocket, l)
}

func TestWhatAnAbandonedStateHoldsComesBackWhenTheLastOfItHasEnded(t *testing.T) {
	for name, stick := range map[string]func(h *hoarder, gate chan struct{}) (then func(kernel.Ref)){
		"a turn": func(h *hoarder, gate chan struct{}) func(kernel.Ref) {
			h.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) {
				<-gate
				h.take(c.Kernel().Account(), 30) // what it does late counts as well
				return true, nil
			}
			return func(r kernel.Ref) { _ = r.Tell("x") }
		},
		"a Stop hook": func(h *hoarder, gate chan struct{}) func(kernel.Ref) {
			h.OnStop = func(c *kernel.Ctx, _ error) {
				<-gate
				h.take(c.Kernel().Account(), 30)
			}
			return func(kernel.Ref) {}
		},
		"an owned goroutine": func(h *hoarder, gate chan struct{}) func(kernel.Ref) {
			h.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) {
				c.Go("deaf", func(context.Context) kernel.Msg { <-gate; return nil })
				return true, nil
			}
			return func(r kernel.Ref) { _ = r.Tell("x") }
		},
		"a turn that panics at last": func(h *hoarder, gate chan struct{}) func(kernel.Ref) {
			h.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) { <-gate; panic("late") }
			return func(r kernel.Ref) { _ = r.Tell("x") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := kernel.New(kernel.Options{})
				root, _ := kerneltest.Root(t, k)
				h, gate := &hoarder{Probe: kerneltest.NewProbe()}, make(chan struct{})
				h.OnStart = func(c *kernel.Ctx) error { h.take(c.Account(), 1000); return nil }
				then := stick(h, gate)
				r := kerneltest.Spawn(t, root, kernel.Spec{Name: "stuck", Scope: "stuck", Limit: 1 << 20, Grace: time.Second,
					New: func() kernel.Behavior { return h }})
				synctest.Wait()
				then(r)
				synctest.Wait()
				r.Stop(nil)
				<-r.Done()
				synctest.Wait()
				if !errors.Is(r.Cause(), kernel.ErrAbandoned) || h.frees != 0 || k.Account().Used() < 1000 {
					t.Fatalf("cause %v, freed %d times, %d bytes: its state is freed while something of it runs", r.Cause(), h.frees, k.Account().Used())
				}
				close(gate)
				synctest.Wait()
				if h.frees != 1 || !errors.Is(h.cause, kernel.ErrAbandoned) || k.Account().Used() != 0 {
					t.Errorf("freed %d times for %v, %d bytes are left", h.frees, h.cause, k.Account().Used())
				}
				if n := len(k.Tree().Children); n != 0 {
					t.Errorf("%d children are in the tree", n)
				}
				root.Stop(nil)
				<-k.Done()
			})
		})
	}
}

func TestAStateIsFreedBeforeAnOrdinaryExit(t *testing.T) {
	for name, end := range map[string]func(r kernel.Ref){
		"a stop":  func(r kernel.Ref) { r.Stop(nil) },
		"a crash": func(r kernel.Ref) { _ = r.Tell("crash") },
	} {
		t.Run(name, func(t *testing.T) {
			k := kernel.New(kernel.Options{})
			root, _ := kerneltest.Root(t, k)
			h := &hoarder{Probe: kerneltest.NewProbe()}
			h.OnStart = func(c *kernel.Ctx) error { h.take(c.Account(), 1000); return nil }
			h.OnStop = func(*kernel.Ctx, error) { panic("no last words") }
			h.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) { panic(m) }
			r := kerneltest.Spawn(t, root, kernel.Spec{Name: "child", New: func() kernel.Behavior { return h }})
			kerneltest.Do(t, r, func(*kernel.Ctx) {}) // it has begun
			end(r)
			<-r.Done()
			if h.frees != 1 || k.Account().Used() > 2*kernel.MessageBytes { // what the root is told of it
				t.Errorf("freed %d times, %d bytes at its exit", h.frees, k.Account().Used())
			}
		})
	}
}

func TestAFreeThatBlocksIsAbandonedAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(kernel.Options{})
		root, _ := kerneltest.Root(t, k)
		h := &hoarder{Probe: kerneltest.NewProbe(), gate: make(chan struct{})}
		r := kerneltest.Spawn(t, root, kernel.Spec{Name: "slow", Grace: time.Second, New: func() kernel.Behavior { return h }})
		synctest.Wait()
		r.Stop(nil)
		<-r.Done()
		synctest.Wait()
		if left := k.Unstopped(); !errors.Is(r.Cause(), kernel.ErrAbandoned) || len(left) != 1 || left[0].What != "free" {
			t.Errorf("%v; left %v", r.Cause(), left)
		}
		close(h.gate)
		synctest.Wait()
		if len(k.Unstopped()) != 0 {
			t.Errorf("left %v", k.Unstopped())
		}
		root.Stop(nil)
		<-k.Done()
	})
}

func TestADischargeTellsWhetherTheObligationWasStillOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(kernel.Options{})
		root, _ := kerneltest.Root(t, k)
		p, gate := kerneltest.NewProbe(), make(chan struct{})
		open, told := 0, []bool(nil)
		p.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) {
			paid := c.Own("paid in its turn", func(context.Context, error) { t.Error("released although it was discharged") })
			told = append(told, paid.Owed(), paid.Discharge(), paid.Discharge(), paid.Owed(), (*kernel.Obligation)(nil).Moot())
			open++
			o := c.Own("a call", func(context.Context, error) { open-- })
			<-gate
			late := c.Own("late", func(context.Context, error) {})
			if o.Discharge() {
				open--
			}
			told = append(told, o.Owed(), o.Moot(), late.Discharge())
			return true, nil
		}
		s := p.Spec("stuck")
		s.Grace = time.Second
		r := kerneltest.Spawn(t, root, s)
		_ = r.Tell("x")
		synctest.Wait()
		r.Stop(nil)
		<-r.Done()
		synctest.Wait()
		close(gate)
		synctest.Wait()
		want := []bool{true, true, false, false, false, false, false, false}
		for i, w := range want {
			if len(told) != len(want) || told[i] != w {
				t.Fatalf("told %v, want %v", told, want)
			}
		}
		if open != 0 {
			t.Errorf("%d calls are open: release and late turn have both counted, or none", open)
		}
		root.Stop(nil)
		<-k.Done()
	})
}
