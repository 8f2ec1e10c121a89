package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Secret stands in every payload that monkeys send. It must never be seen in a log or a tree (I11).
const Secret = "s3cr3t-payload"

// Zoo is what the monkeys of one run share.
type Zoo struct {
	Check *Check
	Rand  *rand.Rand
	Sleep func(time.Duration) // a turn that blocks
	Long  time.Duration       // longer than any grace and any release deadline
	Grace time.Duration
	Peers func() kernel.Ref // somebody, alive or not
	Meet  func(kernel.Ref)  // somebody new
	Bank  *kernel.Account   // of the kernel
	Spend func() bool       // false: the zoo is tired, no more mischief
}

// Monkey is a behavior that does all that a behavior may do, and all that it must not, at random.
type Monkey struct {
	z     *Zoo
	depth int

	seq       uint64
	questions []*kernel.Question
	tickets   []kernel.Ticket
	held      []*holding
	pocket    []*kernel.Lease // nothing but Free gives them back
	gen       uint64
	timers    []func()
}

// holding is a lease, or something else that must be undone, with its obligation.
type holding struct {
	id    uint64
	lease *kernel.Lease
	owed  *kernel.Obligation
}

// Blob is a message with a payload.
type Blob struct {
	From, Seq uint64
	Lane      string
	Bytes     int
	Text      string
}

// Size implements kernel.Sized.
func (b *Blob) Size() int { return b.Bytes }

// Parcel is a message that brings its own lease.
type Parcel struct{ L *kernel.Lease }

// Lease implements kernel.Leased.
func (p *Parcel) Lease() *kernel.Lease { return p.L }

// Size implements kernel.Sized: a mailbox must not charge it, the lease does already.
func (p *Parcel) Size() int { return int(p.L.Size()) }

type ping struct{ Text string }

var errMonkey = errors.New("monkey's error")

// zooIntensity is that of all monkeys, so that Check can look for it.
var zooIntensity = kernel.Intensity{Max: 5, Window: 3 * time.Second}

// Spec makes a random child that is a monkey.
func (z *Zoo) Spec(name string, depth int) kernel.Spec {
	s := kernel.Spec{Name: name, Kind: fmt.Sprintf("monkey%d", depth), Restart: kernel.Policy(z.Rand.IntN(3)), Ordered: z.Rand.IntN(2) == 0,
		Grace: z.Grace, Backoff: kernel.Backoff{Min: 10 * time.Millisecond, Max: 300 * time.Millisecond},
		Intensity: zooIntensity}
	if z.Rand.IntN(3) > 0 {
		s.Limit = int64(8+z.Rand.IntN(40)) << 10
	}
	s.New = func() kernel.Behavior {
		if depth > 0 && z.Spend() && z.Rand.IntN(40) == 0 {
			panic("monkey in New")
		}
		return &Monkey{z: z, depth: depth}
	}
	return s
}

// Start implements kernel.Starter.
func (m *Monkey) Start(c *kernel.Ctx) error {
	m.z.Check.Began(c)
	m.gen = c.Self().Gen()
	defer m.z.Check.Enter(c, "Start")()
	m.z.Meet(c.Self())
	if m.depth < 2 {
		for i := range 1 + m.z.Rand.IntN(3) {
			m.spawn(c, fmt.Sprint("m", i))
		}
	}
	if m.depth == 0 {
		return nil // the root lives until it is stopped or its children are restarted too often
	}
	return m.mischief(c, 60)
}

// Receive implements kernel.Behavior.
func (m *Monkey) Receive(c *kernel.Ctx, msg kernel.Msg) error {
	defer m.z.Check.Enter(c, "Receive")()
	switch x := msg.(type) {
	case *Blob:
		m.z.Check.Arrived(x.From, c.Self().Gen(), x.Lane, x.Seq)
	case *Parcel:
		if m.z.Rand.IntN(2) == 0 {
			_ = x.L.Move(c.Account())
			m.take(c, x.L)
		} else {
			x.L.Release()
		}
	case kernel.Answer:
		m.z.Check.Answered(x.Ticket, c.Self().Gen())
		x.Lease.Release()
		if p, ok := x.Msg.(*Parcel); ok {
			m.take(c, p.L)
		}
	case kernel.Exited:
		if x.Cause == nil || x.Ref.Cause() == nil {
			m.z.Check.Violate("I3", "exited without a cause")
		}
	case kernel.Down:
		if x.Cause == nil {
			m.z.Check.Violate("I3", "down without a cause")
		}
	}
	if q := c.Question(); q != nil {
		m.questions = append(m.questions, q)
	}
	if m.depth == 0 && m.z.Rand.IntN(60) > 0 {
		m.play(c)
		return nil
	}
	if err := m.mischief(c, 24); err != nil {
		return err
	}
	m.play(c)
	return nil
}

// Stop implements kernel.Stopper.
func (m *Monkey) Stop(c *kernel.Ctx, cause error) {
	leave := m.z.Check.Enter(c, "Stop")
	m.z.Check.Hook(c)
	defer leave()
	if cause == nil {
		m.z.Check.Violate("I3", "stop hook without a cause")
	}
	if _, err := c.Spawn(m.z.Spec("late", 3)); !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I4", "a stopping actor could spawn: %v", err)
	}
	if _, err := c.Request(c.Self(), &ping{Secret}); !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I4", "a stopping actor could request: %v", err)
	}
	m.answer()
	_ = m.mischief(c, 12)
}

// Free implements kernel.Freer.
func (m *Monkey) Free(cause error) {
	if m.gen == 0 { // its Start was never reached
		return
	}
	m.z.Check.Freed(m.gen)
	if cause == nil {
		m.z.Check.Violate("I3", "a free without a cause")
	}
	for _, l := range m.pocket {
		l.Release()
	}
}

// mischief is what a behavior must not do: once in n.
func (m *Monkey) mischief(c *kernel.Ctx, n int) error {
	z := m.z
	if z.Rand.IntN(n) > 0 || !z.Spend() {
		return nil
	}
	switch z.Rand.IntN(9) {
	case 0:
		panic("monkey")
	case 1:
		return errMonkey
	case 2:
		runtime.Goexit()
	case 3:
		return kernel.ErrDone
	case 4:
		return fmt.Errorf("had enough: %w", kernel.ErrDone)
	case 5: // slow
		z.Sleep(z.Long / 20)
	case 6: // ignores its context
		z.Sleep(z.Long)
		if c.Self().Cause() != nil && errors.Is(c.Self().Cause(), kernel.ErrAbandoned) {
			m.undead(c)
		}
	case 7: // slow, and obedient
		for range 20 {
			if c.Context().Err() != nil {
				break
			}
			z.Sleep(z.Long / 20)
		}
	case 8: // closes itself
		c.Self().Stop(errMonkey)
	}
	return nil
}

// undead tries all from a generation that was abandoned: everything is refused.
func (m *Monkey) undead(c *kernel.Ctx) {
	if _, err := c.Spawn(m.z.Spec("undead", 3)); !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I4", "an abandoned generation could spawn: %v", err)
	}
	if _, err := c.Request(m.z.Peers(), &ping{Secret}); !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I4", "an abandoned generation could request: %v", err)
	}
	if err := c.Tell(m.z.Peers(), &ping{Secret}); !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I4", "an abandoned generation could tell: %v", err)
	}
	if err := c.Self().Tell(&ping{Secret}); !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I4", "an abandoned generation took a message: %v", err)
	}
	m.owe(c)
	if l, err := m.z.Bank.Acquire(int64(m.z.Rand.IntN(4000))); err == nil { // of an account that does not end with it
		m.z.Check.Lease(l)
		m.pocket = append(m.pocket, l)
	}
	for len(m.held) > 0 { // its releases have begun
		m.discharge()
	}
	m.play(c)
}

// play does a few of the things that a behavior may do.
func (m *Monkey) play(c *kernel.Ctx) {
	for range m.z.Rand.IntN(3) {
		if m.z.Spend() {
			m.move(c)
		}
	}
}

func (m *Monkey) move(c *kernel.Ctx) {
	z := m.z
	switch z.Rand.IntN(20) {
	case 0: // flood
		to := z.Peers()
		for range 30 {
			m.tell(c, to)
		}
	case 1, 2, 3:
		m.tell(c, z.Peers())
	case 4:
		m.seq++
		_ = z.Peers().Signal(&Blob{c.Self().Gen(), m.seq, "control", z.Rand.IntN(2000), Secret})
	case 5, 6:
		to := z.Peers()
		if t, err := c.Request(to, &ping{Secret}); err == nil {
			z.Check.Requested(t, c.Self().Gen(), to.Gen())
			m.tickets = append(m.tickets, t)
		}
	case 7:
		if n := len(m.tickets); n > 0 {
			t := m.tickets[z.Rand.IntN(n)]
			c.Cancel(t)
			z.Check.Cancelled(t)
		}
	case 8, 9:
		m.answer()
	case 10:
		m.owe(c)
	case 11:
		if len(m.held) > 0 {
			m.discharge()
		}
	case 12:
		if l, err := c.Account().Acquire(int64(z.Rand.IntN(4000))); err == nil {
			z.Check.Lease(l)
			if z.Rand.IntN(2) == 0 {
				_ = z.Peers().Tell(&Parcel{l})
			} else {
				m.take(c, l)
			}
		}
	case 13:
		if n := len(m.held); n > 0 {
			l := m.held[z.Rand.IntN(n)].lease
			if a := z.Peers().Account(); a != nil && z.Rand.IntN(2) == 0 {
				_ = l.Move(a)
			} else {
				l.Shrink(l.Size() / 2)
			}
		}
	case 14:
		m.work(c)
	case 15:
		m.timers = append(m.timers, c.After(time.Duration(z.Rand.IntN(500))*time.Millisecond, &ping{Secret}))
	case 16:
		if n := len(m.timers); n > 0 {
			m.timers[n-1]()
			m.timers = m.timers[:n-1]
		}
	case 17:
		c.Watch(z.Peers())
	case 18: // stop a child, or replace it
		if kids := c.Children(); len(kids) > 0 {
			kid := kids[z.Rand.IntN(len(kids))]
			if z.Rand.IntN(2) == 0 {
				kid.Stop(kernel.ErrDone)
			} else {
				c.Stop(kid, errMonkey)
			}
			if z.Rand.IntN(2) == 0 {
				m.spawn(c, kid.Name())
			}
		}
	case 19:
		m.spawn(c, fmt.Sprint("m", z.Rand.IntN(5)))
		c.Attr("mood", "curious")
		c.Refuse("banana")
	}
}

// discharge undoes the last thing that is held.
func (m *Monkey) discharge() {
	n := len(m.held)
	h := m.held[n-1]
	m.held = m.held[:n-1]
	var was bool
	if m.z.Rand.IntN(2) == 0 {
		was = h.owed.Discharge()
	} else {
		was = h.owed.Moot()
	}
	m.z.Check.Discharged(h.id, was)
	if was {
		h.lease.Release()
	}
}

func (m *Monkey) spawn(c *kernel.Ctx, name string) {
	if m.depth >= 3 {
		return
	}
	s := m.z.Spec(name, m.depth+1)
	if s.Limit > 0 && m.z.Rand.IntN(2) == 0 {
		s.Account, s.Limit = c.Account().Child("made before", s.Limit), 0
	}
	if _, err := c.Spawn(s); err != nil && !errors.Is(err, kernel.ErrTaken) && !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I3", "spawn: %v", err)
	}
}

func (m *Monkey) tell(c *kernel.Ctx, to kernel.Ref) {
	m.seq++
	err := to.Tell(&Blob{c.Self().Gen(), m.seq, "data", m.z.Rand.IntN(3000), Secret})
	if err == nil {
		return
	}
	if _, full := errors.AsType[*kernel.Overloaded](err); !full && !errors.Is(err, kernel.ErrStopped) {
		m.z.Check.Violate("I7", "tell: %v", err)
	}
}

func (m *Monkey) answer() {
	if len(m.questions) == 0 {
		return
	}
	q := m.questions[0]
	m.questions = m.questions[1:]
	switch m.z.Rand.IntN(4) {
	case 0:
		q.Fail(errMonkey)
	case 1:
		q.Answer(&Blob{Bytes: m.z.Rand.IntN(9000), Text: Secret}, nil)
	default:
		q.Answer(&ping{Secret}, nil)
	}
}

// owe registers an obligation; its release may be anything.
func (m *Monkey) owe(c *kernel.Ctx) { m.hold(c, nil) }

// take keeps a lease: with an obligation, or in the state alone.
func (m *Monkey) take(c *kernel.Ctx, l *kernel.Lease) {
	if m.z.Rand.IntN(2) == 0 {
		m.hold(c, l)
		return
	}
	m.pocket = append(m.pocket, l)
}

// hold keeps a lease until the generation ends or something discharges it.
func (m *Monkey) hold(c *kernel.Ctx, l *kernel.Lease) {
	z := m.z
	h := &holding{id: z.Check.Owe(c.Self().Gen()), lease: l}
	how := z.Rand.IntN(12)
	h.owed = c.Own("thing", func(ctx context.Context, cause error) {
		z.Check.Released(h.id)
		if cause == nil {
			z.Check.Violate("I3", "a release without a cause")
		}
		l.Release()
		switch how {
		case 0:
			panic("monkey in a release")
		case 1:
			runtime.Goexit()
		case 2:
			z.Sleep(z.Long / 20)
		case 3:
			z.Sleep(3 * z.Long)
		}
	})
	m.held = append(m.held, h)
}

// work owns a goroutine.
func (m *Monkey) work(c *kernel.Ctx) {
	z, how, self := m.z, m.z.Rand.IntN(12), c.Self()
	if m.depth == 0 {
		how = max(how, 2) // a zoo whose root dies at once shows little
	}
	c.Go("work", func(ctx context.Context) kernel.Msg {
		defer z.Check.Working(self.Gen())()
		switch how {
		case 0:
			panic("monkey in a goroutine")
		case 1:
			runtime.Goexit()
		case 2:
			z.Sleep(z.Long)
		case 3, 4:
			z.Sleep(z.Long / 30)
		case 5, 6:
			return nil
		case 7:
			if l, err := self.Account().Acquire(100); err == nil {
				z.Check.Lease(l)
				return &Parcel{l}
			}
		}
		return &ping{Secret}
	})
}
