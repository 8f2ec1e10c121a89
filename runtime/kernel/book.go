package kernel

import (
	"context"
	"runtime"
	"time"
)

// Obligation is something that a generation owes when it ends. It stands in the kernel's book, not in the cell: it is paid
// whatever way the generation ends, also when its cell is stuck.
type Obligation struct {
	k       *Kernel
	c       *cell
	name    string
	since   time.Time
	release func(ctx context.Context, cause error)
	state   obligationState
	prev    *Obligation
	next    *Obligation
}

type obligationState uint8

const (
	owed obligationState = iota
	paying
	paid
)

// obligations of one generation, in the order in which they arose. Under the kernel's lock.
type obligations struct {
	first, last *Obligation
	running     int // releases that the end waits for
	overdue     map[*Obligation]struct{}
}

// own registers an obligation.
func (k *Kernel) own(c *cell, name string, release func(context.Context, error)) *Obligation {
	o := &Obligation{k: k, c: c, name: name, since: k.clock.Now(), release: release}
	k.mu.Lock()
	defer k.unlock()
	b := &c.life.book
	if o.prev = b.last; b.last != nil {
		b.last.next = o
	} else {
		b.first = o
	}
	b.last = o
	if c.life.phase >= exited { // what an ended generation still brings about is undone at once
		c.refuse("abandoned")
		b.running++
		k.pay(o, c.exit.Load().cause)
	}
	return o
}

// Discharge says that the obligation was paid otherwise: the release does not run any more. One that runs already is not stopped.
// Safe from any goroutine, also when the generation is gone.
func (o *Obligation) Discharge() { o.strike() }

// Moot says that nothing is owed any more, since what it was owed to is gone.
func (o *Obligation) Moot() { o.strike() }

func (o *Obligation) strike() {
	if o == nil {
		return
	}
	o.k.mu.Lock()
	defer o.k.unlock()
	if o.state == owed {
		o.state = paid
		o.c.life.book.cut(o)
	}
}

func (b *obligations) cut(o *Obligation) {
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		b.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		b.last = o.prev
	}
	o.prev, o.next = nil, nil
}

// release begins all releases of a generation, side by side.
func (k *Kernel) release(c *cell, cause error) {
	for o := c.life.book.first; o != nil; o = o.next {
		c.life.book.running++
		k.pay(o, cause)
	}
}

// pay runs one release on a goroutine of its own, with a deadline after which nobody waits for it any more.
func (k *Kernel) pay(o *Obligation, cause error) {
	o.state = paying
	ctx, cancel := context.WithCancelCause(context.Background())
	counted := true // by book.running
	late := k.clock.AfterFunc(k.releaseDeadline, func() {
		cancel(context.DeadlineExceeded)
		k.mu.Lock()
		defer k.unlock()
		if o.state != paying || !counted {
			return
		}
		counted = false
		b := &o.c.life.book
		if b.overdue == nil {
			b.overdue = map[*Obligation]struct{}{}
		}
		b.overdue[o] = struct{}{}
		b.running--
		k.advance(o.c)
	})
	k.scheduler.Go(o.c.slot.spec.Kind, func() {
		defer func() { // also after a panic or a Goexit
			if r := recover(); r != nil {
				k.log.Error("release panicked", "actor", o.c.path, "gen", o.c.gen, "owed", o.name, "cause", (&Crash{Value: r}).Error())
			}
			late()
			cancel(context.Canceled)
			k.mu.Lock()
			defer k.unlock()
			o.state = paid
			b := &o.c.life.book
			b.cut(o)
			delete(b.overdue, o)
			if counted {
				counted = false
				b.running--
			}
			k.advance(o.c)
			k.unstick(o.c)
		}()
		o.run(ctx, cause)
	})
}

// run has a frame of its own, with the obligation in it: by it the stack of an overdue release is found.
//
//go:noinline
func (o *Obligation) run(ctx context.Context, cause error) {
	o.release(ctx, cause)
	runtime.KeepAlive(o)
}
