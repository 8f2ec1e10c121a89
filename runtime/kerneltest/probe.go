package kerneltest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Got is one message as a Probe received it.
type Got struct {
	Msg      kernel.Msg
	Question *kernel.Question // not nil: somebody waits for an answer
	Self     kernel.Ref
}

// Probe is a behavior that hands what it receives to the test, in order. One probe may serve several generations and actors.
// What is Leased is the test's to release.
type Probe struct {
	// On, when set before the actor starts, is asked first; true: handled, the test does not see the message.
	On func(c *kernel.Ctx, m kernel.Msg) (handled bool, err error)
	// OnStart and OnStop are the actor's hooks, when set before it starts.
	OnStart func(c *kernel.Ctx) error
	OnStop  func(c *kernel.Ctx, cause error)

	mu   sync.Mutex
	got  []Got
	more chan struct{} // closed and replaced at each arrival
}

// NewProbe makes a probe that hands over everything.
func NewProbe() *Probe { return &Probe{more: make(chan struct{})} }

// Spec is a Temporary child that runs the probe; change what the test needs.
func (p *Probe) Spec(name string) kernel.Spec {
	return kernel.Spec{Name: name, Kind: "probe", New: func() kernel.Behavior { return p }}
}

// do is a function that runs in a turn of the actor.
type do struct {
	f    func(c *kernel.Ctx)
	done chan struct{}
}

// Do runs f in a turn of an actor that runs a Probe, and waits for it.
func Do(t testing.TB, r kernel.Ref, f func(c *kernel.Ctx)) {
	t.Helper()
	d := do{f, make(chan struct{})}
	if err := r.Tell(d); err != nil {
		t.Fatalf("do in %s: %v", r.Path(), err)
	}
	select {
	case <-d.done:
	case <-r.Done():
		select {
		case <-d.done:
		default:
			t.Fatalf("do in %s: it ended: %v", r.Path(), r.Cause())
		}
	case <-time.After(Deadline):
		t.Fatalf("do in %s: no turn within %v", r.Path(), Deadline)
	}
}

// Start implements kernel.Starter.
func (p *Probe) Start(c *kernel.Ctx) error {
	if p.OnStart != nil {
		return p.OnStart(c)
	}
	return nil
}

// Stop implements kernel.Stopper.
func (p *Probe) Stop(c *kernel.Ctx, cause error) {
	if p.OnStop != nil {
		p.OnStop(c, cause)
	}
}

// Receive implements kernel.Behavior.
func (p *Probe) Receive(c *kernel.Ctx, m kernel.Msg) error {
	if d, ok := m.(do); ok {
		defer close(d.done)
		d.f(c)
		return nil
	}
	if p.On != nil {
		if handled, err := p.On(c, m); handled || err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.got = append(p.got, Got{m, c.Question(), c.Self()})
	close(p.more)
	p.more = make(chan struct{})
	p.mu.Unlock()
	return nil
}

// take removes the first message that ok accepts.
func (p *Probe) take(ctx context.Context, ok func(Got) bool) (Got, bool) {
	for {
		p.mu.Lock()
		for i, g := range p.got {
			if ok(g) {
				p.got = append(p.got[:i:i], p.got[i+1:]...)
				p.mu.Unlock()
				return g, true
			}
		}
		more := p.more
		p.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return Got{}, false
		}
	}
}

// Next waits for the next message, whatever it is.
func (p *Probe) Next(t testing.TB) Got {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	g, ok := p.take(ctx, func(Got) bool { return true })
	if !ok {
		t.Fatalf("no message within %v", Deadline)
	}
	return g
}

// Await waits for the next message of type M; others stay for later.
func Await[M any](t testing.TB, p *Probe) M {
	t.Helper()
	m, _ := AwaitQuestion[M](t, p)
	return m
}

// AwaitQuestion is Await with the question that the message asks, nil when it asks none.
func AwaitQuestion[M any](t testing.TB, p *Probe) (M, *kernel.Question) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	g, ok := p.take(ctx, func(g Got) bool { _, ok := g.Msg.(M); return ok })
	if !ok {
		var zero M
		t.Fatalf("no %T within %v; there is: %s", &zero, Deadline, p.types())
	}
	return g.Msg.(M), g.Question
}

func (p *Probe) types() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := "nothing"
	for i, g := range p.got {
		if i == 0 {
			s = ""
		}
		s += fmt.Sprintf("%T ", g.Msg)
	}
	return s
}

// Pending is how many messages nobody took yet.
func (p *Probe) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got)
}

// Eventually polls for what no message tells, with the package's deadline. Under testing/synctest it costs no real time.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Deadline); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Deadline, what)
		}
	}
}
