package kernel

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// phase of a generation. It only grows.
type phase uint8

const (
	waiting  phase = iota // made, and waiting for its backoff
	starting              // handed to the engine
	running
	stopping
	exited  // over: the parent knows, the releases have begun
	settled // the releases and all below are done; out of the tree, unless something of it is still stuck
)

// life is what the kernel's book knows of a generation. All of it is under the kernel's lock: an end is driven by events (last turn
// over, hook done, a child settled, a release done, grace past), and by whoever reports one, so it needs no turn of the cell.
type life struct {
	phase      phase
	since      time.Time // of the phase
	started    time.Time // when it began to run
	ignited    bool
	stop       func() // the engine's, once ignited
	backoff    func() bool
	grace      func() bool // stops the timer
	follows    *cell       // the generation before, until this one runs
	began      bool        // the behavior exists: Stop is due
	over       bool        // the last turn is over
	hook       bool        // the Stop hook was started
	hookDone   bool
	abandoned  bool
	freeing    bool // Free was started
	freed      bool // … and is over, or there is none
	sweeping   bool // all children were told to stop
	goroutines map[*goroutine]struct{}
	kids       map[uint64]*cell // by generation, until they have settled
	slots      map[string]*slot // living children
	table      *supervision
	watchers   map[*cell]int // who gets Down, how often
	watching   map[*cell]struct{}
	book       obligations
	left       []*cell // settled, but something of them is still stuck
}

func (c *cell) isEnding() bool { return c.exit.Load() != nil }
func (c *cell) isOver() bool   { return c.over.Load() }

// cause is why it ended, nil while it lives.
func (c *cell) cause() error {
	if e := c.exit.Load(); e != nil {
		return e.cause
	}
	return nil
}

// ended is what a returned error means.
func (c *cell) ended(err error) { c.finish(end{cause: err, crashed: !errors.Is(err, ErrDone)}) }

func (c *cell) crash(err error) { c.finish(end{cause: err, crashed: true}) }

// finish begins the end of a generation. The first reason wins; a later word of the parent that it wants the child gone is still heard.
func (c *cell) finish(e end) {
	first := c.exit.CompareAndSwap(nil, &e)
	if !first {
		if e.retired {
			c.k.retire(c)
		}
		return
	}
	c.cancel(e.cause)   // on this goroutine: a receive that waits on its context returns
	c.mb.close(e.cause) // nothing is delivered any more, what was queued is answered
	c.k.stopping(c)
}

// retire notes that the parent wants a child gone for good that is ending already.
func (k *Kernel) retire(c *cell) {
	k.mu.Lock()
	defer k.unlock()
	if c.life.phase < exited {
		e := *c.exit.Load()
		e.retired = true
		c.exit.Store(&e)
		return
	}
	if next := c.slot.current.Load(); next != c && next.parent == c.parent && !next.isEnding() { // its successor waits or runs already
		cause := c.exit.Load().cause
		k.later(func() { next.finish(end{cause: cause, retired: true}) })
	}
}

// started notes that the behavior exists.
func (k *Kernel) started(c *cell) {
	k.mu.Lock()
	defer k.unlock()
	c.life.began = true
	c.life.started = k.clock.Now()
	if p := c.parent; p != nil && p.life.table != nil {
		p.life.table.Started(c.life.started, c.slot.spec.Name)
	}
}

// running notes that Start has returned.
func (k *Kernel) running(c *cell) {
	k.mu.Lock()
	defer k.unlock()
	if c.life.phase != starting {
		return
	}
	k.setPhase(c, running)
	told := Started{Path: c.path, Name: c.slot.spec.Name, Kind: c.slot.spec.Kind, Gen: c.gen}
	if old := c.life.follows; old != nil {
		c.life.follows = nil // the chain of generations is not kept alive
		c.parent.mb.post(Restarted{Ref{old}, Ref{c}})
		told.Follows = old.gen
	}
	if k.onStart != nil {
		k.later(func() { k.onStart(told) })
	}
}

func (k *Kernel) setPhase(c *cell, p phase) { c.life.phase, c.life.since = p, k.clock.Now() }

// stopping is the first event of an end.
func (k *Kernel) stopping(c *cell) {
	k.mu.Lock()
	defer k.unlock()
	if c.life.phase >= stopping {
		return
	}
	k.setPhase(c, stopping)
	if c.life.backoff != nil {
		c.life.backoff()
	}
	if c.life.ignited {
		c.life.stop()
		c.life.grace = k.clock.AfterFunc(c.slot.spec.Grace, func() { k.graceOver(c) })
	} else {
		c.life.over, c.life.hookDone = true, true
	}
	k.advance(c)
}

// turnsOver is the engine's word that no turn of the cell runs or will.
func (k *Kernel) turnsOver(c *cell) {
	k.mu.Lock()
	defer k.unlock()
	c.life.over = true
	k.advance(c)
	k.unstick(c)
}

// graceOver abandons what has not obeyed by now.
func (k *Kernel) graceOver(c *cell) {
	k.mu.Lock()
	defer k.unlock()
	l := &c.life
	if l.abandoned || l.phase >= exited || l.freed {
		return
	}
	l.abandoned = true
	l.since = k.clock.Now()
	e := *c.exit.Load()
	e.cause = &abandoned{e.cause}
	c.over.Store(true) // before it can be seen as abandoned
	c.exit.Store(&e)
	k.advance(c)
}

// advance takes an end as far as it can go now. It is called after every event.
func (k *Kernel) advance(c *cell) {
	l := &c.life
	if l.phase < stopping {
		return
	}
	k.free(c)
	if l.phase == settled {
		return
	}
	if l.phase == stopping {
		if !l.abandoned {
			if !l.over {
				return
			}
			if !l.hook && !l.hookDone {
				l.hook = true
				k.runHook(c)
				return
			}
			if !l.hookDone {
				return
			}
		}
		if !l.sweeping || c.slot.spec.Ordered {
			k.sweep(c)
		}
		if len(l.kids) > 0 || !l.freed && !l.abandoned {
			return
		}
		k.exit(c)
	}
	if l.book.running > 0 {
		return
	}
	k.settle(c)
}

// sweep ends what the generation leaves open: its questions, its requests, and its children.
func (k *Kernel) sweep(c *cell) {
	l := &c.life
	cause := c.exit.Load().cause
	if !l.sweeping {
		l.sweeping = true
		c.mb.failOpen(cause)
		c.mb.cancelAll()
	}
	kids := k.kidsInOrder(c)
	for _, kid := range slices.Backward(kids) {
		if !kid.isEnding() {
			k.later(func() { kid.finish(end{cause: inherited(c.path, cause)}) })
		}
		if c.slot.spec.Ordered {
			return // the next one when this one has settled
		}
	}
}

// kidsInOrder lists the children that have not settled, in the order of their spawning.
func (k *Kernel) kidsInOrder(c *cell) []*cell {
	kids := slices.AppendSeq(make([]*cell, 0, len(c.life.kids)), maps.Values(c.life.kids))
	sortBySpawn(kids)
	return kids
}

// sortBySpawn needs no lock.
func sortBySpawn(kids []*cell) {
	slices.SortFunc(kids, func(a, b *cell) int {
		return cmp.Or(compare(a.slot.order, b.slot.order), compare(a.gen, b.gen))
	})
}

// exit is the moment at which a generation is over: its releases begin, and then all who care are told.
func (k *Kernel) exit(c *cell) {
	l := &c.life
	now := k.clock.Now()
	if l.grace != nil {
		l.grace()
	}
	lived := now.Sub(c.created)
	k.setPhase(c, exited)
	c.over.Store(true)
	e := *c.exit.Load()
	if c.ownsAcct {
		c.acct.Close()
	}
	k.release(c, e.cause)
	for w := range l.watching {
		delete(w.life.watchers, c)
	}
	for _, w := range cellsInOrder(l.watchers) {
		for range l.watchers[w] {
			w.mb.post(Down{Ref{c}, e.cause})
		}
		delete(w.life.watching, c)
	}
	l.watchers, l.watching = nil, nil
	x := Exit{Path: c.path, Name: c.slot.spec.Name, Kind: c.slot.spec.Kind, Gen: c.gen, Cause: e.cause, Crashed: e.crashed,
		Abandoned: l.abandoned, Lived: lived}
	if c.parent != nil {
		x.Parent = c.parent.gen
		k.supervise(c, e, now, &x)
	} else {
		k.cause = e.cause
	}
	close(c.done)
	k.report(x)
}

// supervise carries out what the parent's table decides.
func (k *Kernel) supervise(c *cell, e end, now time.Time, x *Exit) {
	p, name := c.parent, c.slot.spec.Name
	gone := true
	if p.life.phase < stopping && !p.isEnding() && p.life.table != nil {
		for _, a := range p.life.table.Exited(now, name, e) {
			switch a.Op {
			case Restart:
				gone = false
				n := k.follow(c, a.After)
				x.Next, x.Delay = n.gen, a.After
			case Escalate:
				k.later(func() { p.crash(a.Cause) })
			}
		}
	}
	if !gone {
		p.mb.post(Exited{Ref{c}, e.cause, Ref{c.slot.current.Load()}})
		return
	}
	if p.life.slots[name] == c.slot {
		delete(p.life.slots, name)
	}
	p.mb.post(Exited{Ref: Ref{c}, Cause: e.cause})
}

// settle takes a generation out of the tree, with all that it owed.
func (k *Kernel) settle(c *cell) {
	k.setPhase(c, settled)
	p := c.parent
	if p == nil {
		k.over = true
		return
	}
	delete(p.life.kids, c.gen)
	c.life.follows = nil
	if k.stuck(c) || len(c.life.left) > 0 {
		p.life.left = append(p.life.left, c)
	} else {
		c.beh = nil // a Ref that somebody kept does not keep the behavior's state
	}
	k.advance(p)
}

// quiet tells whether nothing of the behavior's own runs any more, nor will.
func (l *life) quiet() bool {
	return l.over && (l.hookDone || l.abandoned && !l.hook) && len(l.goroutines) == 0
}

// stuck tells whether something of a generation still runs that should not.
func (k *Kernel) stuck(c *cell) bool {
	l := &c.life
	return !l.freed || l.book.running > 0 || len(l.book.overdue) > 0
}

// unstick forgets a settled generation once the last of what was stuck in it has really ended.
func (k *Kernel) unstick(c *cell) {
	for c.life.phase == settled && !k.stuck(c) && len(c.life.left) == 0 && c.parent != nil {
		p := c.parent
		i := slices.Index(p.life.left, c)
		if i < 0 {
			return
		}
		c.beh = nil
		p.life.left = slices.Delete(p.life.left, i, i+1)
		c = p
	}
}
