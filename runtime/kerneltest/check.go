package kerneltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Check holds one oracle for each of the kernel's invariants I1 to I12. What runs in a simulation tells it what happens; it
// remembers what should not have. Safe from any goroutine.
type Check struct {
	now func() time.Time
	// parallel is set on real goroutines. There a turn or hook may have been let in, and have got no further, when its generation is
	// abandoned: it is what the generation was abandoned for, and no violation.
	parallel bool

	mu       sync.Mutex
	bad      []string
	events   []string // the last few, for a failure's report
	lives    map[uint64]*lived
	leases   map[*kernel.Lease]bool
	owed     map[uint64]*debt
	requests map[uint64]*request
	streams  map[stream]uint64
	restarts map[uint64][]time.Time // by the supervisor's generation
	nextDebt uint64
}

// lived is what is known of one generation.
type lived struct {
	ref     kernel.Ref
	account *kernel.Account
	started int
	hooked  int
	freed   int
	exits   int
	inside  int
	working int // owned goroutines
	exit    kernel.Exit
}

type debt struct {
	gen        uint64
	released   int
	discharged bool
	over       bool // of its generation
}

type request struct {
	asker, callee uint64
	answered      int
	cancelled     bool
}

type stream struct {
	from, to uint64
	lane     string
}

// NewCheck makes a check without any violation.
func NewCheck(now func() time.Time) *Check {
	return &Check{now: now, lives: map[uint64]*lived{}, leases: map[*kernel.Lease]bool{}, owed: map[uint64]*debt{},
		requests: map[uint64]*request{}, streams: map[stream]uint64{}, restarts: map[uint64][]time.Time{}}
}

const keptEvents = 60

// Event keeps something for the report of a failure.
func (c *Check) Event(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event(format, a...)
}

func (c *Check) event(format string, a ...any) {
	if len(c.events) == keptEvents {
		c.events = slices.Delete(c.events, 0, keptEvents/2)
	}
	c.events = append(c.events, fmt.Sprintf(format, a...))
}

// Violate records a violation of an invariant.
func (c *Check) Violate(invariant, format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violate(invariant, format, a...)
}

func (c *Check) violate(invariant, format string, a ...any) {
	if len(c.bad) < 20 {
		c.bad = append(c.bad, invariant+": "+fmt.Sprintf(format, a...))
	}
}

// Bad is what was violated so far.
func (c *Check) Bad() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bad)
}

// Events is the last few events, one a line.
func (c *Check) Events() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.events, "\n")
}

// Generations is how many generations began.
func (c *Check) Generations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lives)
}

func (c *Check) life(gen uint64) *lived {
	l := c.lives[gen]
	if l == nil {
		l = &lived{}
		c.lives[gen] = l
	}
	return l
}

// Began is called in Start (I3).
func (c *Check) Began(x *kernel.Ctx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := x.Self()
	l := c.life(r.Gen())
	if l.started++; l.started > 1 {
		c.violate("I3", "%s: generation %d started twice", r.Path(), r.Gen())
	}
	if l.exits > 0 && !(c.parallel && l.exit.Abandoned) {
		c.violate("I3", "%s: generation %d started after its exit", r.Path(), r.Gen())
	}
	l.ref, l.account = r, x.Account()
	c.event("start %s %d", r.Path(), r.Gen())
}

// Enter is called at the begin of every turn and hook, and its result at the end (I4, I5).
func (c *Check) Enter(x *kernel.Ctx, what string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gen := x.Self().Gen()
	l := c.life(gen)
	if l.inside++; l.inside > 1 {
		c.violate("I5", "%s: two goroutines in generation %d, one in %s", x.Self().Path(), gen, what)
	}
	if (l.hooked > 0 || l.exits > 0) && !(c.parallel && l.exit.Abandoned) {
		c.violate("I4", "%s: %s reached generation %d after its stop", x.Self().Path(), what, gen)
	}
	if l.freed > 0 {
		c.violate("I4", "%s: %s reached generation %d after its state was freed", x.Self().Path(), what, gen)
	}
	return func() {
		c.mu.Lock()
		l.inside--
		c.mu.Unlock()
	}
}

// Working is called at the begin of an owned goroutine, and its result at the end (I3).
func (c *Check) Working(gen uint64) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(gen)
	l.working++
	return func() {
		c.mu.Lock()
		l.working--
		c.mu.Unlock()
	}
}

// Hook is called in Stop (I3).
func (c *Check) Hook(x *kernel.Ctx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(x.Self().Gen())
	if l.hooked++; l.hooked > 1 {
		c.violate("I3", "%s: stop hook of generation %d ran twice", x.Self().Path(), x.Self().Gen())
	}
	c.event("hook %s %d", x.Self().Path(), x.Self().Gen())
}

// Freed is called in Free (I3, I5): it is alone with the state.
func (c *Check) Freed(gen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(gen)
	if l.freed++; l.freed > 1 {
		c.violate("I3", "generation %d was freed twice", gen)
	}
	if l.inside > 0 || l.working > 0 {
		c.violate("I5", "generation %d was freed while it was in a turn, a hook or a goroutine", gen)
	}
	c.event("free %d", gen)
}

// Exit is the kernel's OnExit (I3, I9).
func (c *Check) Exit(x kernel.Exit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.life(x.Gen)
	if l.exits++; l.exits > 1 {
		c.violate("I3", "%s: generation %d exited twice", x.Path, x.Gen)
	}
	if x.Cause == nil {
		c.violate("I3", "%s: generation %d ended without a cause", x.Path, x.Gen)
	}
	if l.started > 0 && l.freed == 0 && !x.Abandoned {
		c.violate("I3", "%s: generation %d ended before its state was freed", x.Path, x.Gen)
	}
	if l.working > 0 && !x.Abandoned {
		c.violate("I3", "%s: generation %d ended before %d of its goroutines", x.Path, x.Gen, l.working)
	}
	l.exit = x
	if x.Next != 0 {
		if x.Next <= x.Gen {
			c.violate("I3", "%s: generation %d follows %d", x.Path, x.Next, x.Gen)
		}
		c.restarts[x.Parent] = append(c.restarts[x.Parent], c.now())
	}
	for _, d := range c.owed {
		if d.gen == x.Gen {
			d.over = true
		}
	}
	c.event("exit %s %d (%v) crashed=%v abandoned=%v next=%d", x.Path, x.Gen, x.Cause, x.Crashed, x.Abandoned, x.Next)
}

// Intensity checks the restarts that were ordered (I9).
func (c *Check) Intensity(i kernel.Intensity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gen, at := range c.restarts {
		for n := range at {
			if n >= i.Max && at[n].Sub(at[n-i.Max]) < i.Window {
				c.violate("I9", "generation %d ordered more than %d restarts within %v", gen, i.Max, i.Window)
				break
			}
		}
	}
}

// Owe registers an obligation that must be paid once (I3).
func (c *Check) Owe(gen uint64) (id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextDebt++
	c.owed[c.nextDebt] = &debt{gen: gen}
	return c.nextDebt
}

// Released is called in the release of an obligation.
func (c *Check) Released(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.owed[id]; d != nil {
		if d.released++; d.released > 1 {
			c.violate("I3", "an obligation of generation %d was released twice", d.gen)
		}
		if d.discharged {
			c.violate("I3", "an obligation of generation %d was released after whoever discharged it was told that it was owed", d.gen)
		}
	}
}

// Discharged is called with what the discharge of an obligation reported: who is told that it was owed pays it.
func (c *Check) Discharged(id uint64, was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.owed[id]
	switch {
	case d == nil:
	case was && (d.released > 0 || d.discharged):
		c.violate("I3", "an obligation of generation %d was owed still when it had been paid", d.gen)
	case was:
		d.discharged = true
	}
}

// Lease makes the check count a lease (I1).
func (c *Check) Lease(l *kernel.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases[l] = true
}

// Requested, Answered and Cancelled follow one request (I7).
func (c *Check) Requested(t kernel.Ticket, asker, callee uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[t.ID()] = &request{asker: asker, callee: callee}
}

// Answered is called when an Answer is delivered.
func (c *Check) Answered(t kernel.Ticket, gen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r := c.requests[t.ID()]; {
	case r == nil:
		c.violate("I7", "an answer to nothing asked reached generation %d", gen)
	case r.asker != gen:
		c.violate("I7", "an answer for generation %d reached generation %d", r.asker, gen)
	case r.cancelled:
		c.violate("I7", "an answer to a cancelled request reached generation %d", gen)
	default:
		if r.answered++; r.answered > 1 {
			c.violate("I7", "generation %d got two answers to one request", gen)
		}
	}
}

// Cancelled is called when the asker has cancelled.
func (c *Check) Cancelled(t kernel.Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.requests[t.ID()]; r != nil {
		r.cancelled = true
	}
}

// Arrived checks the order of one sender's messages in one lane (I6). seq grows with each accepted message.
func (c *Check) Arrived(from, to uint64, lane string, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := stream{from, to, lane}
	if last := c.streams[k]; seq <= last {
		c.violate("I6", "from %d to generation %d, %s lane: %d came after %d", from, to, lane, seq, last)
	}
	c.streams[k] = seq
}

// Sums compares every account with what is charged to it: messages queued and in turn, answers to come, leases (I1), and with its limit (I2). It is exact
// only while nothing runs, as between the steps of a Sim. More is what the caller knows to be charged besides, by account.
func (c *Check) Sums(k *kernel.Kernel, more map[*kernel.Account]int64) {
	want := maps.Clone(more)
	if want == nil {
		want = map[*kernel.Account]int64{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	accounts := map[*kernel.Account]bool{k.Account(): true}
	for l := range c.leases {
		if a := l.Account(); a != nil {
			want[a] += l.Size()
		} else {
			delete(c.leases, l)
		}
	}
	var walk func(n kernel.Node)
	walk = func(n kernel.Node) {
		if l := c.lives[n.Gen]; l != nil && l.account != nil {
			want[l.account] += n.Queue.Bytes - n.Queue.Control + n.Queue.Turn + n.Queue.Answers
		} else if b := n.Queue.Bytes - n.Queue.Control + n.Queue.Turn + n.Queue.Answers; b != 0 && n.Account.Scope != "" {
			want[nil] += b // not begun, so its account is not known here: the root's sum still is
		}
		for _, kid := range n.Children {
			walk(kid)
		}
	}
	walk(k.Tree())
	for _, l := range c.lives {
		if l.account != nil {
			accounts[l.account] = true
		}
	}
	sums := map[*kernel.Account]int64{}
	for a, n := range want {
		if a == nil {
			sums[k.Account()] += n
			continue
		}
		for x := a; x != nil; x = x.Parent() {
			sums[x] += n
		}
	}
	for a := range accounts {
		used := a.Used()
		if used < 0 || used > a.Limit() {
			c.violate("I2", "account %s: %d used of %d", a.Scope(), used, a.Limit())
		}
		if want[nil] == 0 && used != sums[a] || a == k.Account() && used != sums[a] {
			c.violate("I1", "account %s: %d used, %d accounted for", a.Scope(), used, sums[a])
		}
	}
}

// Quiet checks what holds once nothing is under way any more: nobody waits for a generation that has ended (I7).
func (c *Check) Quiet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.requests {
		asker, callee := c.life(r.asker), c.life(r.callee)
		if r.answered == 0 && !r.cancelled && asker.ref.Cause() == nil && !asker.ref.IsZero() && callee.exits > 0 {
			c.violate("I7", "generation %d waits on question %d for generation %d, which has ended", r.asker, id, r.callee)
		}
	}
}

// Rest checks what holds after the kernel's end, when also what was stuck has ended (I1, I3, I12).
func (c *Check) Rest(k *kernel.Kernel) {
	if n := k.Account().Used(); n != 0 {
		c.Violate("I1", "%d bytes are charged at rest", n)
	}
	if n := k.Tree(); n.Gen != 0 {
		c.Violate("I12", "the tree is not empty at rest: %v", n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, gen := range slices.Sorted(maps.Keys(c.lives)) {
		l := c.lives[gen]
		if l.exits != 1 {
			c.violate("I3", "generation %d exited %d times", gen, l.exits)
		}
		if l.started == 1 && l.hooked != 1 && !l.exit.Abandoned {
			c.violate("I3", "generation %d (%s) had %d stop hooks", gen, l.exit.Path, l.hooked)
		}
		if l.started == 1 && l.freed != 1 {
			c.violate("I3", "generation %d (%s) was freed %d times", gen, l.exit.Path, l.freed)
		}
		if l.inside != 0 || l.working != 0 {
			c.violate("I12", "generation %d is still in a turn or has goroutines", gen)
		}
	}
	for id, d := range c.owed {
		if d.released == 0 && !d.discharged {
			c.violate("I3", "obligation %d of generation %d was never released", id, d.gen)
		}
	}
	for l := range c.leases {
		if l.Size() != 0 {
			c.violate("I1", "a lease of %d bytes was never released", l.Size())
		}
	}
}
