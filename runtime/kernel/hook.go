package kernel

import (
	"context"
	"runtime"
	"time"
)

// runHook runs the Stop hook, or goes on without one. Under the kernel's lock.
func (k *Kernel) runHook(c *cell) {
	s, ok := c.beh.(Stopper)
	if !ok || !c.life.began {
		c.life.hookDone = true
		k.advance(c)
		return
	}
	k.scheduler.Go(c.slot.spec.Kind, func() {
		defer k.hookOver(c) // also after a Goexit
		if !k.hookBegins(c) {
			return
		}
		c.mb.setDoing("Stop")
		if err := c.runStop(s); err != nil {
			k.log.Error("stop hook panicked", "actor", c.path, "gen", c.gen, "cause", Escape(err.Error(), 300))
		}
	})
}

// hookBegins says whether it is still time for the hook: a machine that is too busy to start it within the grace comes too late.
func (k *Kernel) hookBegins(c *cell) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !c.life.abandoned
}

// runStop has a frame of its own, with the cell in it: by it the stack of a stuck hook is found.
//
//go:noinline
func (c *cell) runStop(s Stopper) error {
	err := c.guard(func() error { s.Stop(&c.view, c.cause()); return nil })
	runtime.KeepAlive(c)
	return err
}

func (k *Kernel) hookOver(c *cell) {
	c.mb.setDoing("")
	k.mu.Lock()
	defer k.unlock()
	c.life.hookDone = true
	k.advance(c)
	k.unstick(c)
}

// free lets a quiet generation give back what its state holds, once. Under the kernel's lock.
func (k *Kernel) free(c *cell) {
	l := &c.life
	if l.freeing || l.freed || !l.quiet() {
		return
	}
	f, ok := Freer(nil), false
	if l.began {
		f, ok = c.beh.(Freer)
	}
	if !ok {
		l.freed = true
		return
	}
	l.freeing = true
	k.scheduler.Go(c.slot.spec.Kind, func() {
		defer k.freeOver(c) // also after a Goexit
		c.mb.setDoing("Free")
		if err := c.runFree(f); err != nil {
			k.log.Error("free panicked", "actor", c.path, "gen", c.gen, "cause", Escape(err.Error(), 300))
		}
	})
}

// runFree has a frame of its own, as runStop has.
//
//go:noinline
func (c *cell) runFree(f Freer) error {
	err := c.guard(func() error { f.Free(c.cause()); return nil })
	runtime.KeepAlive(c)
	return err
}

func (k *Kernel) freeOver(c *cell) {
	c.mb.setDoing("")
	k.mu.Lock()
	defer k.unlock()
	c.life.freed = true
	k.advance(c)
	k.unstick(c)
}

// goroutine is one that a generation owns.
type goroutine struct {
	name  string
	since time.Time
}

// run has a frame of its own, as runStop has.
//
//go:noinline
func (g *goroutine) run(c *cell, f func(context.Context) Msg) (m Msg, err error) {
	err = c.guard(func() error { m = f(c.ctx); return nil })
	runtime.KeepAlive(g)
	return m, err
}

// own runs f on a goroutine of this generation.
func (c *cell) own(name string, f func(ctx context.Context) Msg) {
	k := c.k
	g := &goroutine{name: name, since: k.clock.Now()}
	k.mu.Lock()
	if c.life.phase >= exited || c.life.abandoned {
		k.unlock()
		c.refuse("abandoned")
		return
	}
	if c.life.goroutines == nil {
		c.life.goroutines = map[*goroutine]struct{}{}
	}
	c.life.goroutines[g] = struct{}{}
	k.unlock()
	k.scheduler.Go(c.slot.spec.Kind, func() {
		returned := false
		defer func() {
			if !returned {
				c.crash(ErrGoexit)
			}
			k.goroutineOver(c, g)
		}()
		m, err := g.run(c, f)
		returned = true
		if err != nil {
			c.crash(err)
		} else if m != nil && !c.mb.put(&c.mb.data, item{msg: m, kind: free}) {
			freeLeases(m)
		}
	})
}

func (k *Kernel) goroutineOver(c *cell, g *goroutine) {
	k.mu.Lock()
	defer k.unlock()
	delete(c.life.goroutines, g)
	k.advance(c)
	k.unstick(c)
}
