package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// journal is what happened, in order.
type journal struct {
	mu sync.Mutex
	s  []string
}

func (j *journal) add(format string, a ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.s = append(j.s, fmt.Sprintf(format, a...))
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.s, " ")
}

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, s := range j.s {
		if s == what {
			n++
		}
	}
	return n
}

type parcel struct {
	l *kernel.Lease
}

func (p parcel) Lease() *kernel.Lease { return p.l }

type sized int

func (s sized) Size() int { return int(s) }

// blocker is a behavior whose turn waits for a gate, whatever its context says.
type blocker struct{ gate chan struct{} }

func (b blocker) Receive(*kernel.Ctx, kernel.Msg) error { <-b.gate; return nil }

func TestControlOvertakesDataAndDoesNotStarveIt(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	gate, order := make(chan struct{}), make(chan string, 1000)
	r, err := k.Root(kernel.Spec{Name: "root", New: func() kernel.Behavior {
		return receive(func(_ *kernel.Ctx, m kernel.Msg) error {
			if m == "gate" {
				<-gate
				return nil
			}
			order <- m.(string)
			return nil
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	tell := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	tell(r.Tell("gate"))
	kerneltest.Eventually(t, "the gate is in its turn", func() bool { return k.Tree().Queue.Turn > 0 })
	for range 20 {
		tell(r.Tell("d"))
	}
	for range 200 {
		tell(r.Signal("c"))
	}
	close(gate)
	var got strings.Builder
	for range 220 {
		got.WriteString(<-order)
	}
	want := strings.Repeat(strings.Repeat("c", 16)+"d", 12) + strings.Repeat("c", 200-12*16) + strings.Repeat("d", 8)
	if got.String() != want {
		t.Errorf("order %s\nwant  %s", got.String(), want)
	}
}

func TestControlHasAReserveOfItsOwn(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{Limit: 64 << 10})
	gate := make(chan struct{})
	r, err := k.Root(kernel.Spec{Name: "root", New: func() kernel.Behavior { return blocker{gate} }})
	if err != nil {
		t.Fatal(err)
	}
	defer close(gate)
	for r.Tell(sized(1000)) == nil {
	}
	if o, ok := errors.AsType[*kernel.Overloaded](r.Tell(sized(1000))); !ok || o.Scope != "pod_bytes" {
		t.Fatalf("data: %v", o)
	}
	if err := r.Signal("cancel"); err != nil {
		t.Fatalf("a full account keeps a signal out: %v", err)
	}
	var refused error
	for refused == nil {
		refused = r.Signal(sized(4000))
	}
	if o, ok := errors.AsType[*kernel.Overloaded](refused); !ok || o.Scope != "control" || o.Limit != kernel.ControlBytes {
		t.Errorf("the reserve has no bound: %v", refused)
	}
	kerneltest.Eventually(t, "both refusals show in the tree", func() bool {
		n := k.Tree()
		return n.Refused["pod_bytes"] > 0 && n.Refused["control"] == 1
	})
}

func TestAnAnswerFitsAFullAccount(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	asker, callee := kerneltest.NewProbe(), kerneltest.NewProbe()
	sa := asker.Spec("asker")
	sa.Scope, sa.Limit = "asker", 64<<10
	a, c := kerneltest.Spawn(t, root, sa), kerneltest.Spawn(t, root, callee.Spec("callee"))
	var small, large kernel.Ticket
	kerneltest.Do(t, a, func(x *kernel.Ctx) {
		small, _ = x.Request(c, "small")
		large, _ = x.Request(c, "large")
	})
	_, qs := kerneltest.AwaitQuestion[string](t, callee)
	_, ql := kerneltest.AwaitQuestion[string](t, callee)
	if n := k.Tree().Children[0].Queue.Answers; n != 2*kernel.AnswerBytes {
		t.Errorf("%d bytes reserved for two answers", n)
	}
	kerneltest.Eventually(t, "only the reserves are charged", func() bool { return a.Account().Used() == 2*kernel.AnswerBytes })
	hog, err := a.Account().Acquire(64<<10 - 2*kernel.AnswerBytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, full := errors.AsType[*kernel.Overloaded](a.Tell("x")); !full {
		t.Fatal("the account is not full")
	}
	if !qs.Answer(sized(4000), nil) || !ql.Answer(sized(10_000), nil) {
		t.Error("an answer was not taken")
	}
	if got := kerneltest.Await[kernel.Answer](t, asker); got.Ticket != small || got.Msg != sized(4000) || got.Err != nil {
		t.Errorf("small: %+v", got)
	}
	got := kerneltest.Await[kernel.Answer](t, asker)
	if _, full := errors.AsType[*kernel.Overloaded](got.Err); got.Ticket != large || !full || got.Msg != nil {
		t.Errorf("an answer that does not fit must arrive as the refusal: %+v", got)
	}
	hog.Release()
	kerneltest.Eventually(t, "the reserves are given back", func() bool { return a.Account().Used() == 0 })
}

func TestARequestIsRefusedWhenItsAnswerCouldNotBePaid(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	s := kerneltest.NewProbe().Spec("poor")
	s.Scope, s.Limit = "poor", 2000
	poor, other := kerneltest.Spawn(t, root, s), kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("other"))
	kerneltest.Do(t, poor, func(c *kernel.Ctx) {
		tk, err := c.Request(other, "q")
		if o, ok := errors.AsType[*kernel.Overloaded](err); !ok || o.Scope != "poor" || !tk.IsZero() {
			t.Errorf("got %v", err)
		}
	})
	if used := poor.Account().Used(); used > 200 {
		t.Errorf("a refused request left %d bytes charged", used)
	}
}

func TestALeaseOutlivesItsActorAndIsFreedLate(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	conn, desk := kerneltest.NewProbe(), kerneltest.NewProbe()
	sc, sd := conn.Spec("conn"), desk.Spec("desk")
	sc.Scope, sc.Limit, sd.Scope, sd.Limit = "conn", 1<<20, "desk", 1<<20
	c, d := kerneltest.Spawn(t, root, sc), kerneltest.Spawn(t, root, sd)
	kerneltest.Do(t, d, func(x *kernel.Ctx) { _, _ = x.Request(c, "call") })
	_, q := kerneltest.AwaitQuestion[string](t, conn)
	frame, err := c.Account().Acquire(100_000)
	if err != nil {
		t.Fatal(err)
	}
	q.Answer("frame", frame)
	c.Stop(nil)
	ended(t, c)
	got := kerneltest.Await[kernel.Answer](t, desk)
	kerneltest.Eventually(t, "only the frame is charged", func() bool { return k.Account().Used() == 100_000 })
	if c.Account().Used() != 100_000 {
		t.Errorf("the ended connection's account shows %d", c.Account().Used())
	}
	if _, err := c.Account().Acquire(1); !errors.Is(err, kernel.ErrStopped) {
		t.Errorf("the ended connection's account admits: %v", err)
	}
	if err := got.Lease.Move(d.Account()); err != nil {
		t.Fatal(err)
	}
	if c.Account().Used() != 0 || d.Account().Used() < 100_000 {
		t.Error("the desk does not pay")
	}
	d.Stop(nil)
	ended(t, d)
	got.Lease.Release() // the slow client has read at last
}

func TestMessagesThatNobodyHandledAreReleased(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	for name, end := range map[string]func(*kernel.Ctx) error{
		"queued at a stop":   func(c *kernel.Ctx) error { c.Self().Stop(nil); return nil },
		"queued at a crash":  func(*kernel.Ctx) error { return errors.New("crash") },
		"in a panicked turn": nil,
	} {
		gate := make(chan struct{})
		r := kerneltest.Spawn(t, root, kernel.Spec{Name: name, New: func() kernel.Behavior {
			return receive(func(c *kernel.Ctx, m kernel.Msg) error {
				if m == "gate" {
					<-gate
					if end != nil {
						return end(c)
					}
					return nil
				}
				panic("handled")
			})
		}})
		_ = r.Tell("gate")
		l, err := k.Account().Acquire(5000)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Tell(parcel{l}); err != nil {
			t.Fatal(err)
		}
		p, err := r.Ask("question")
		if err != nil {
			t.Fatal(err)
		}
		close(gate)
		cause := ended(t, r)
		if _, _, err := p.Wait(within(t)); err == nil || !errors.Is(err, cause) {
			t.Errorf("%s: the question was answered with %v, the exit cause is %v", name, err, cause)
		}
		p.Drop()
		kerneltest.Eventually(t, name+": the lease is released", func() bool { return l.Size() == 0 })
		late, err := k.Account().Acquire(10)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Tell(parcel{late}); !errors.Is(err, kernel.ErrStopped) || late.Size() != 0 {
			t.Errorf("%s: refused afterwards: %v, %d bytes left", name, err, late.Size())
		}
	}
}

func TestAStaleResultNeverReachesTheSuccessor(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, rp := kerneltest.Root(t, k)
	gate := make(chan struct{})
	p := kerneltest.NewProbe()
	s := p.Spec("worker")
	s.Restart, s.Grace, s.Backoff = kernel.Transient, 20*time.Millisecond, kernel.Backoff{Min: time.Millisecond, Max: time.Millisecond}
	first := kerneltest.Spawn(t, root, s)
	l, err := k.Account().Acquire(500)
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Do(t, first, func(c *kernel.Ctx) {
		c.Go("ignores its context", func(context.Context) kernel.Msg { <-gate; return parcel{l} })
		c.Go("panics", func(ctx context.Context) kernel.Msg { panic("in the goroutine") })
	})
	x := kerneltest.Await[kernel.Exited](t, rp)
	if _, ok := errors.AsType[*kernel.Crash](x.Cause); !ok || !errors.Is(x.Cause, kernel.ErrAbandoned) {
		t.Errorf("cause %v", x.Cause)
	}
	second := kerneltest.Await[kernel.Restarted](t, rp).New
	if second.Gen() <= first.Gen() || x.Next != second || first.Current() != second || x.Ref != first {
		t.Errorf("generations %d, %d, announced %d", first.Gen(), second.Gen(), x.Next.Gen())
	}
	close(gate)
	kerneltest.Eventually(t, "the stale result's lease is freed", func() bool { return l.Size() == 0 })
	_ = second.Tell("sentinel")
	for {
		g := p.Next(t)
		if g.Msg == "sentinel" {
			break
		}
		t.Errorf("the successor got %T", g.Msg)
	}
}

func TestResultsAndAnswersKeepTheOrderOfTheirSender(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	owner, agent := kerneltest.NewProbe(), kerneltest.NewProbe()
	o := kerneltest.Spawn(t, root, owner.Spec("owner"))
	a := kerneltest.Spawn(t, root, agent.Spec("agent"))
	kerneltest.Do(t, o, func(c *kernel.Ctx) { _, _ = c.Request(a, "prompt") })
	_, q := kerneltest.AwaitQuestion[string](t, agent)
	kerneltest.Do(t, a, func(*kernel.Ctx) {
		for i := range 50 {
			_ = o.Tell(i)
		}
		q.Answer("end_turn", nil)
	})
	for i := range 50 {
		if g := owner.Next(t); g.Msg != i {
			t.Fatalf("at %d: %v", i, g.Msg)
		}
	}
	if g, ok := owner.Next(t).Msg.(kernel.Answer); !ok || g.Msg != "end_turn" {
		t.Errorf("got %v", g)
	}
	kerneltest.Do(t, o, func(c *kernel.Ctx) {
		self := c.Self()
		c.Go("pump", func(context.Context) kernel.Msg {
			for i := range 50 {
				_ = self.Tell(i)
			}
			return "eof"
		})
	})
	for i := range 50 {
		if g := owner.Next(t); g.Msg != i {
			t.Fatalf("at %d: %v", i, g.Msg)
		}
	}
	if g := owner.Next(t); g.Msg != "eof" {
		t.Errorf("got %v", g.Msg)
	}
}

func TestAnOrderedParentStopsOneChildAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.Start(t, kernel.Options{})
		j := &journal{}
		spec := func(name string, kids ...kernel.Spec) kernel.Spec {
			p := kerneltest.NewProbe()
			p.OnStart = func(c *kernel.Ctx) error {
				c.Own("thing", func(context.Context, error) { time.Sleep(time.Second); j.add("%s:released", name) })
				for _, s := range kids {
					if _, err := c.Spawn(s); err != nil {
						return err
					}
				}
				return nil
			}
			p.OnStop = func(c *kernel.Ctx, cause error) {
				if n := len(c.Children()); n != len(kids) {
					t.Errorf("%s: %d children live in the Stop hook, want %d", name, n, len(kids))
				}
				j.add("%s:stop", name)
			}
			s := p.Spec(name)
			s.Ordered = true
			return s
		}
		if _, err := k.Root(spec("root", spec("a", spec("a1"), spec("a2")), spec("b"), spec("c", spec("c1")))); err != nil {
			t.Fatal(err)
		}
		kerneltest.Eventually(t, "the tree stands", func() bool {
			return len(k.Tree().Children) == 3 && len(k.Tree().Children[0].Children) == 2 && len(k.Tree().Children[2].Children) == 1
		})
		if r := k.Shutdown(t.Context()); !r.Empty() {
			t.Fatal(r)
		}
		want := "root:stop c:stop c1:stop c1:released c:released b:stop b:released a:stop a2:stop a2:released a1:stop a1:released a:released root:released"
		if got := j.String(); got != want {
			t.Errorf("order\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAStuckSupervisorDoesNotKeepItsSubtree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 5 * time.Second
		k := kernel.New(kernel.Options{})
		gate := make(chan struct{})
		j := &journal{}
		var live []kernel.Ref
		owing := func(name string, kids ...kernel.Spec) kernel.Spec {
			return kernel.Spec{Name: name, Grace: grace, New: func() kernel.Behavior {
				p := kerneltest.NewProbe()
				p.OnStart = func(c *kernel.Ctx) error {
					live = append(live, c.Self())
					for _, s := range kids {
						if _, err := c.Spawn(s); err != nil {
							return err
						}
					}
					c.Own("thing", func(_ context.Context, cause error) { j.add("%s", name) })
					return nil
				}
				p.On = func(_ *kernel.Ctx, m kernel.Msg) (bool, error) {
					if m == "hang" {
						<-gate
					}
					return true, nil
				}
				return p
			}}
		}
		root, err := k.Root(owing("root", owing("sup", owing("mid", owing("leaf1"), owing("leaf2")), owing("other"))))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, r := range live {
			if r.Name() == "sup" || r.Name() == "mid" {
				if err := r.Tell(sized(1000)); err != nil { // in its turn when it hangs
					t.Fatal(err)
				}
				synctest.Wait()
				_ = r.Tell("hang")
			}
		}
		synctest.Wait()
		t0 := time.Now()
		root.Stop(kernel.ErrShutdown)
		<-k.Done()
		const depth = 4
		if d := time.Since(t0); d > depth*grace || d < grace {
			t.Errorf("it took %v, the bound is %v", d, depth*grace)
		}
		order := j.String()
		for _, s := range []string{"leaf1", "leaf2", "mid", "other", "sup", "root"} {
			if j.count(s) != 1 {
				t.Errorf("%s released %d times", s, j.count(s))
			}
		}
		at := func(s string) int { return slices.Index(strings.Fields(order), s) }
		if at("mid") < at("leaf1") || at("mid") < at("leaf2") || at("sup") < at("mid") || at("sup") < at("other") || at("root") < at("sup") {
			t.Errorf("not leaves first: %s", order)
		}
		left := k.Unstopped()
		if len(left) != 2 || left[0].Path != "root/sup/mid" || left[1].Path != "root/sup" {
			t.Fatalf("left: %+v", left)
		}
		for _, u := range left {
			if u.What != "turn" || !errors.Is(u.Cause, kernel.ErrAbandoned) || !errors.Is(u.Cause, kernel.ErrShutdown) || !strings.Contains(u.Stack, "proofs_test.go") {
				t.Errorf("%s: %s, %v\n%s", u.Path, u.What, u.Cause, u.Stack)
			}
		}
		if n := k.Account().Used(); n != 2*kernel.MessageBytes {
			t.Errorf("two stuck turns hold %d bytes", n)
		}
		if n := k.Tree(); n.Children[0].State != "abandoned" || n.Children[0].Doing == nil || n.Children[0].Doing.Type != "string" {
			t.Errorf("the tree does not show the stuck turn: %+v", n)
		}
		close(gate)
		synctest.Wait()
		if n := k.Account().Used(); n != 0 || len(k.Unstopped()) != 0 || k.Tree().Gen != 0 {
			t.Errorf("after the turns ended: %d bytes, left %v", n, k.Unstopped())
		}
	})
}

func TestWhatAnAbandonedGenerationDoesIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(kernel.Options{})
		root, _ := kerneltest.Root(t, k)
		p := kerneltest.NewProbe()
		gate, released := make(chan struct{}), make(chan struct{})
		p.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) {
			q := c.Question()
			<-gate
			l, _ := k.Account().Acquire(100)
			if q.Answer("late", l) || l.Size() != 0 {
				t.Error("a late answer was taken")
			}
			_, e1 := c.Spawn(kerneltest.NewProbe().Spec("x"))
			_, e2 := c.Request(root, "q")
			_, e3 := c.Account().Acquire(1)
			for i, err := range []error{e1, e2, e3, c.Tell(root, 1), c.Self().Tell(1)} {
				if !errors.Is(err, kernel.ErrStopped) {
					t.Errorf("%d: %v", i, err)
				}
			}
			c.Go("late", func(context.Context) kernel.Msg { t.Error("a late goroutine runs"); return nil })
			c.After(time.Second, "late")()
			c.Own("late", func(context.Context, error) { close(released) })
			return true, nil
		}
		s := p.Spec("stuck")
		s.Grace, s.Scope, s.Limit = time.Second, "stuck", 1<<20
		r := kerneltest.Spawn(t, root, s)
		ask, err := r.Ask("q")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.Stop(nil)
		if _, _, err := ask.Wait(t.Context()); !errors.Is(err, kernel.ErrAbandoned) {
			t.Errorf("the question was answered with %v", err)
		}
		ask.Drop()
		<-r.Done()
		if n := k.Tree().Children[0]; n.State != "abandoned" || n.Queue.Turn != kernel.MessageBytes {
			t.Errorf("%+v", n)
		}
		close(gate)
		<-released
		synctest.Wait()
		if n := k.Tree(); len(n.Children) != 0 || k.Account().Used() != 0 {
			t.Errorf("%d bytes; %+v", k.Account().Used(), n)
		}
		root.Stop(nil)
		<-k.Done()
	})
}

// A token table, as a session's supervisor keeps one: a release must revoke its own generation's token and no other.
func TestAReleaseThatRunsLateLeavesTheSuccessorAlone(t *testing.T) {
	before, after := 0, 0
	for seed := uint64(1); seed <= 1000; seed++ {
		sim := kerneltest.NewSim(seed)
		k := kernel.New(kernel.Options{Scheduler: sim, Clock: sim, Rand: sim.Rand().Float64})
		tokens := map[uint64]bool{}
		var order []string
		mint := func() kernel.Behavior {
			p := kerneltest.NewProbe()
			p.OnStart = func(c *kernel.Ctx) error {
				gen := c.Self().Gen()
				c.Own("token", func(context.Context, error) {
					sim.Sleep(time.Duration(sim.Rand().IntN(40)) * time.Millisecond)
					order = append(order, fmt.Sprint("revoke", gen))
					delete(tokens, gen)
				})
				tokens[gen] = true
				order = append(order, fmt.Sprint("mint", gen))
				return nil
			}
			p.On = func(*kernel.Ctx, kernel.Msg) (bool, error) { panic("crash") }
			return p
		}
		var child kernel.Ref
		root := kerneltest.NewProbe()
		root.OnStart = func(c *kernel.Ctx) (err error) {
			child, err = c.Spawn(kernel.Spec{Name: "session", Restart: kernel.Transient, New: mint, Backoff: kernel.Backoff{Min: 40 * time.Millisecond, Max: 40 * time.Millisecond}})
			return err
		}
		r, err := k.Root(root.Spec("root"))
		if err != nil {
			t.Fatal(err)
		}
		sim.Run(10_000)
		_ = child.Tell("crash")
		sim.Run(10_000)
		second := child.Current()
		if second == child || len(tokens) != 1 || !tokens[second.Gen()] {
			t.Fatalf("seed %d: tokens %v after %v", seed, tokens, order)
		}
		if slices.Index(order, fmt.Sprint("revoke", child.Gen())) < slices.Index(order, fmt.Sprint("mint", second.Gen())) {
			before++
		} else {
			after++
		}
		r.Stop(kernel.ErrShutdown)
		sim.Run(10_000)
		if len(tokens) != 0 {
			t.Fatalf("seed %d: tokens %v at rest", seed, tokens)
		}
	}
	if before < 100 || after < 100 {
		t.Errorf("the release came %d times before its successor's start and %d times after it: both must be tried", before, after)
	}
}
