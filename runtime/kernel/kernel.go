package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// Options of a Kernel; the zero value is usable.
type Options struct {
	Limit     int64          // bytes of the root account, whose scope is "pod_bytes"; 0 = DefaultLimit
	Release   time.Duration  // deadline of one release; 0 = DefaultRelease
	Logger    *slog.Logger   // nil = no log
	Clock     Clock          // nil = the wall clock
	Rand      func() float64 // of backoffs, in [0, 1); nil = math/rand
	Scheduler Scheduler      // nil = a goroutine a turn
	OnExit    func(Exit)     // told of each generation's end, outside all locks; must not block
	OnStart   func(Started)  // told when a generation's Start has returned, as OnExit; may come after OnExit of one that ended at once
}

// Kernel holds one tree of actors, their accounts and the book of what they owe.
type Kernel struct {
	account         *Account
	log             *slog.Logger
	clock           Clock
	random          func() float64
	scheduler       Scheduler
	onExit          func(Exit)
	onStart         func(Started)
	releaseDeadline time.Duration
	done            chan struct{}

	refusals refusals

	gens atomic.Uint64 // generations count in the kernel, so that an id never means two things
	ids  atomic.Uint64 // of questions

	mu      sync.Mutex // the book: lives, obligations, children, watches
	effects []func()   // to be run when mu is free
	busy    int        // goroutines that run effects
	over    bool       // the root has settled, and done is not closed yet
	root    *cell
	cause   error
	orders  uint64
}

// New makes a kernel without an actor.
func New(o Options) *Kernel {
	k := &Kernel{log: o.Logger, clock: o.Clock, random: o.Rand, scheduler: o.Scheduler, onExit: o.OnExit, onStart: o.OnStart,
		releaseDeadline: o.Release, done: make(chan struct{})}
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	k.account = NewAccount("pod_bytes", o.Limit)
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if k.clock == nil {
		k.clock = wallClock{}
	}
	if k.random == nil {
		k.random = rand.Float64
	}
	if k.scheduler == nil {
		k.scheduler = goScheduler{}
	}
	if k.releaseDeadline <= 0 {
		k.releaseDeadline = DefaultRelease
	}
	return k
}

// Account is the root of the byte accounts.
func (k *Kernel) Account() *Account { return k.account }

// Done is closed when the root and all below it have ended and their releases are done or overdue.
func (k *Kernel) Done() <-chan struct{} { return k.done }

// Cause is why the root ended, nil while it lives.
func (k *Kernel) Cause() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cause
}

// Root spawns the one root. Its end is the kernel's: there is nobody to restart it.
func (k *Kernel) Root(s Spec) (Ref, error) {
	k.mu.Lock()
	taken := k.root != nil
	k.mu.Unlock()
	if taken {
		return Ref{}, fmt.Errorf("root %q: %w", s.Name, ErrTaken)
	}
	c, err := k.spawn(nil, s)
	if err != nil {
		return Ref{}, err
	}
	return Ref{c}, nil
}

func (s *Spec) check() error {
	switch {
	case s.New == nil:
		return fmt.Errorf("spec %q has no New: say how its behavior is made", s.Name)
	case s.Name == "" || len(s.Name) > 128 || strings.ContainsFunc(s.Name, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }):
		return fmt.Errorf("spec name %q: use 1 to 128 printable characters without '/'", s.Name)
	case s.Account != nil && s.Account.parent == nil:
		return fmt.Errorf("spec %q has the root account for its own: give it a child of it", s.Name)
	case s.Account != nil && s.Limit != 0:
		return errors.New("spec has both Account and Limit: give one")
	}
	return nil
}

// spawn makes the first generation of a child.
func (k *Kernel) spawn(parent *cell, s Spec) (*cell, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Kind == "" {
		s.Kind = s.Name
	}
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	k.mu.Lock()
	defer k.unlock()
	if parent == nil {
		if k.root != nil {
			return nil, fmt.Errorf("root %q: %w", s.Name, ErrTaken)
		}
	} else {
		if parent.life.phase >= stopping || parent.isEnding() {
			return nil, ErrStopped
		}
		if parent.life.slots[s.Name] != nil {
			return nil, fmt.Errorf("child %q of %s: %w", s.Name, parent.path, ErrTaken)
		}
	}
	k.orders++
	sl := &slot{spec: s, order: k.orders}
	c := k.newCell(parent, sl, s.Account)
	if parent == nil {
		k.root = c
	} else {
		l := &parent.life
		if l.slots == nil {
			l.slots = map[string]*slot{}
			l.kids = map[uint64]*cell{}
			l.table = newSupervision(parent.slot.spec.Intensity, k.random)
		}
		l.slots[s.Name] = sl
		l.table.Add(k.clock.Now(), s.Name, s.Restart, s.Backoff)
		l.kids[c.gen] = c
	}
	k.ignite(c)
	return c, nil
}

// newCell makes a generation. Under the lock.
func (k *Kernel) newCell(parent *cell, sl *slot, given *Account) *cell {
	c := &cell{k: k, slot: sl, parent: parent, gen: k.gens.Add(1), path: sl.spec.Name, done: make(chan struct{}), created: k.clock.Now()}
	above := k.account
	if parent != nil {
		c.path, above = parent.path+"/"+sl.spec.Name, parent.acct
	}
	switch {
	case given != nil:
		c.acct, c.ownsAcct = given, true
	case sl.spec.Limit > 0:
		scope := sl.spec.Scope
		if scope == "" {
			scope = sl.spec.Kind
		}
		c.acct, c.ownsAcct = above.Child(scope, sl.spec.Limit), true
	default:
		c.acct = above
	}
	c.view.c = c
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.mb = newMailbox(c, c.acct)
	c.life.since = c.created
	sl.current.Store(c)
	return c
}

// follow makes the generation after c, to start after d. It takes messages at once. Under the lock.
func (k *Kernel) follow(c *cell, d time.Duration) *cell {
	given := c.slot.spec.Account
	if given != nil {
		given = given.parent.Child(given.scope, given.limit)
	}
	n := k.newCell(c.parent, c.slot, given)
	c.slot.restarts++
	c.parent.life.kids[n.gen] = n
	n.life.backoff = k.clock.AfterFunc(d, func() {
		k.mu.Lock()
		defer k.unlock()
		if n.life.phase != waiting || n.isEnding() {
			return
		}
		n.life.follows = c
		k.ignite(n)
	})
	return n
}

// ignite hands a generation to the engine. Under the lock.
func (k *Kernel) ignite(c *cell) {
	stop, err := c.ignite()
	if err != nil { // the engine's names are unique: this is a fault of the engine, and ends like one of the child
		k.later(func() { c.crash(fmt.Errorf("engine: %w", err)) })
		return
	}
	k.setPhase(c, starting)
	c.life.ignited, c.life.stop = true, stop
}

// later keeps what must not run under the lock until it is free.
func (k *Kernel) later(f func()) { k.effects = append(k.effects, f) }

// unlock frees the lock and runs what was kept. The kernel is done when the last of that has run: who waits for Done finds
// every exit reported.
func (k *Kernel) unlock() {
	effects := k.effects
	k.effects = nil
	if len(effects) > 0 {
		k.busy++
		k.mu.Unlock()
		for _, f := range effects {
			f()
		}
		k.mu.Lock()
		k.busy--
	}
	if k.over && k.busy == 0 {
		k.over = false
		close(k.done)
	}
	k.mu.Unlock()
}

// report tells the log and OnExit of an end. Under the lock.
func (k *Kernel) report(x Exit) {
	k.later(func() {
		level, msg, attrs := x.Log()
		k.log.LogAttrs(context.Background(), level, msg, attrs...)
		if k.onExit != nil {
			k.onExit(x)
		}
	})
}

func (k *Kernel) children(c *cell) []Ref {
	k.mu.Lock()
	defer k.mu.Unlock()
	var refs []Ref
	for _, kid := range k.kidsInOrder(c) {
		if kid.slot.current.Load() == kid && kid.life.phase < exited {
			refs = append(refs, Ref{kid})
		}
	}
	return refs
}

func (k *Kernel) child(c *cell, name string) (Ref, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := c.life.slots[name]; s != nil {
		return Ref{s.current.Load()}, true
	}
	return Ref{}, false
}

// watch enters w as a watcher of r's generation.
func (k *Kernel) watch(w *cell, r Ref) {
	if r.c == nil {
		w.mb.post(Down{r, ErrStopped})
		return
	}
	k.mu.Lock()
	defer k.unlock()
	switch {
	case w.life.phase >= stopping:
	case r.c.life.phase >= exited:
		w.mb.post(Down{r, r.c.exit.Load().cause})
	default:
		if r.c.life.watchers == nil {
			r.c.life.watchers = map[*cell]int{}
		}
		if w.life.watching == nil {
			w.life.watching = map[*cell]struct{}{}
		}
		r.c.life.watchers[w]++
		w.life.watching[r.c] = struct{}{}
	}
}
