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

// Discharge says that the obligation is paid otherwise: the release does not run any more. It reports whether it was still owed: false
// says that the release has run or runs, so what it undoes, answers and counts must not be undone, answered or counted again.
// That is so for a turn or a Stop hook that goes on after its generation was abandoned. Of those who discharge one obligation, and
// its release, exactly one is told true or runs. Safe from any goroutine, also when the generation is gone.
func (o *Obligation) Discharge() (was bool) { return o.strike() }

// Moot says that nothing is owed any more, since what it was owed to is gone. It reports the same as Discharge.
func (o *Obligation) Moot() (was bool) { return o.strike() }

// Owed tells whether it stands in the book still: neither discharged nor released.
func (o *Obligation) Owed() bool {
	if o == nil {
		return false
	}
	o.k.mu.Lock()
	defer o.k.mu.Unlock()
	return o.state == owed
}

func (o *Obligation) strike() bool {
	if o == nil {
		return false
	}
	o.k.mu.Lock()
	defer o.k.unlock()
	if o.state != owed {
		return false
	}
	o.state = paid
	o.c.life.book.cut(o)
	return true
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
