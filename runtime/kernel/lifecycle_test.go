package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

var quick = kernel.Backoff{Min: time.Millisecond, Max: 2 * time.Millisecond}

var errTest = errors.New("a test's error")

// ending makes a behavior that ends in the way it is told.
func ending() kernel.Behavior {
	return receive(func(c *kernel.Ctx, m kernel.Msg) error {
		switch m {
		case "panic":
			panic("told to")
		case "error":
			return errTest
		case "goexit":
			runtime.Goexit()
		case "done":
			return kernel.ErrDone
		case "wrapped":
			return fmt.Errorf("all said: %w", kernel.ErrDone)
		case "goroutine":
			c.Go("g", func(context.Context) kernel.Msg { panic("told to") })
		case "goexit goroutine":
			c.Go("g", func(context.Context) kernel.Msg { runtime.Goexit(); return nil })
		}
		return nil
	})
}

func TestHowAGenerationEndsAndWhatFollows(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, rp := kerneltest.Root(t, k)
	crash := func(err error) bool { _, ok := errors.AsType[*kernel.Crash](err); return ok }
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	for _, tc := range []struct {
		how   string
		end   func(kernel.Ref)
		cause func(error) bool
		back  map[kernel.Policy]bool
	}{
		{"panic", nil, crash, map[kernel.Policy]bool{kernel.Transient: true, kernel.Permanent: true}},
		{"error", nil, is(errTest), map[kernel.Policy]bool{kernel.Transient: true, kernel.Permanent: true}},
		{"goexit", nil, is(kernel.ErrGoexit), map[kernel.Policy]bool{kernel.Transient: true, kernel.Permanent: true}},
		{"goroutine", nil, crash, map[kernel.Policy]bool{kernel.Transient: true, kernel.Permanent: true}},
		{"goexit goroutine", nil, is(kernel.ErrGoexit), map[kernel.Policy]bool{kernel.Transient: true, kernel.Permanent: true}},
		{"done", nil, is(kernel.ErrDone), map[kernel.Policy]bool{kernel.Permanent: true}},
		{"wrapped", nil, is(kernel.ErrDone), map[kernel.Policy]bool{kernel.Permanent: true}},
		{"Ref.Stop", func(r kernel.Ref) { r.Stop(errTest) }, is(errTest), map[kernel.Policy]bool{kernel.Permanent: true}},
		{"Ref.Stop without a cause", func(r kernel.Ref) { r.Stop(nil) }, is(kernel.ErrStopped), map[kernel.Policy]bool{kernel.Permanent: true}},
		{"Ctx.Stop", func(r kernel.Ref) { kerneltest.Do(t, root, func(c *kernel.Ctx) { c.Stop(r, errTest) }) }, is(errTest), nil},
	} {
		for _, policy := range []kernel.Policy{kernel.Temporary, kernel.Transient, kernel.Permanent} {
			// a supervisor a case: its intensity is its own
			sp := kerneltest.NewProbe()
			sup := kerneltest.Spawn(t, root, sp.Spec("sup"))
			r := kerneltest.Spawn(t, sup, kernel.Spec{Name: "child", Restart: policy, Backoff: quick, New: ending})
			name := fmt.Sprint(policy, " ", tc.how)
			if tc.how == "Ctx.Stop" {
				kerneltest.Do(t, sup, func(c *kernel.Ctx) { c.Stop(r, errTest) })
			} else if tc.end != nil {
				tc.end(r)
			} else if err := r.Tell(tc.how); err != nil {
				t.Fatal(err)
			}
			x := kerneltest.Await[kernel.Exited](t, sp)
			if x.Ref != r || !tc.cause(x.Cause) || !tc.cause(r.Cause()) {
				t.Errorf("%s: exited with %v", name, x.Cause)
			}
			if back := !x.Next.IsZero(); back != tc.back[policy] {
				t.Errorf("%s: comes back: %v", name, back)
			} else if back {
				if err := x.Next.Tell("hello before the backoff is over"); err != nil {
					t.Errorf("%s: the next generation takes nothing: %v", name, err)
				}
				if n := kerneltest.Await[kernel.Restarted](t, sp); n.Old != r || n.New != x.Next || r.Current() != n.New {
					t.Errorf("%s: restarted %v", name, n)
				}
			} else if r.Current() != r {
				t.Errorf("%s: a successor", name)
			}
			kerneltest.Do(t, root, func(c *kernel.Ctx) { c.Stop(sup, nil) })
			if x := kerneltest.Await[kernel.Exited](t, rp); x.Ref != sup {
				t.Errorf("%s: the supervisor's exit: %v", name, x)
			}
		}
	}
}

func TestTheFirstCauseWins(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	r := kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("child"))
	if r.Cause() != nil {
		t.Errorf("a living actor has a cause: %v", r.Cause())
	}
	r.Stop(errTest)
	r.Stop(kernel.ErrDone)
	if err := ended(t, r); err != errTest {
		t.Errorf("cause %v", err)
	}
}

func TestStartIsFirstAndItsErrorIsACrash(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, rp := kerneltest.Root(t, k)
	p, gate := kerneltest.NewProbe(), make(chan struct{})
	p.OnStart = func(*kernel.Ctx) error { <-gate; return errTest }
	r := kerneltest.Spawn(t, root, p.Spec("child"))
	if err := r.Tell("too early"); err != nil {
		t.Errorf("a mailbox queues until Start has returned: %v", err)
	}
	close(gate)
	if err := ended(t, r); !errors.Is(err, errTest) || p.Pending() != 0 {
		t.Errorf("cause %v, %d messages", err, p.Pending())
	}
	kerneltest.Await[kernel.Exited](t, rp)
	bad := kerneltest.Spawn(t, root, kernel.Spec{Name: "child", New: func() kernel.Behavior { panic("in New") }})
	if _, ok := errors.AsType[*kernel.Crash](ended(t, bad)); !ok {
		t.Errorf("a panic in New: %v", bad.Cause())
	}
}

func TestIntensityEndsTheSupervisorAndAtLastTheKernel(t *testing.T) {
	k := kernel.New(kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	sup := kerneltest.NewProbe()
	ss := sup.Spec("sup")
	ss.Restart, ss.Intensity, ss.Backoff = kernel.Transient, kernel.Intensity{Max: 2, Window: time.Minute}, quick
	starts := 0
	sup.OnStart = func(c *kernel.Ctx) error {
		starts++
		_, err := c.Spawn(kernel.Spec{Name: "loop", Restart: kernel.Permanent, Backoff: quick, New: func() kernel.Behavior {
			p := kerneltest.NewProbe()
			p.OnStart = func(*kernel.Ctx) error { return errTest }
			return p
		}})
		return err
	}
	kerneltest.Spawn(t, root, ss)
	select {
	case <-k.Done():
	case <-time.After(kerneltest.Deadline):
		t.Fatal("the kernel did not end")
	}
	cause := k.Cause()
	outer, ok := errors.AsType[*kernel.IntensityError](cause)
	if !ok || outer.Child != "sup" || !errors.Is(cause, errTest) {
		t.Fatalf("cause %v", cause)
	}
	if inner, ok := errors.AsType[*kernel.IntensityError](outer.Cause); !ok || inner.Child != "loop" || inner.Restarts != 2 {
		t.Errorf("inner cause %v", outer.Cause)
	}
	if starts != 6 { // the default intensity of the root allows five restarts
		t.Errorf("the supervisor started %d times", starts)
	}
	if r := k.Shutdown(within(t)); !r.Empty() {
		t.Error(r)
	}
}

func TestSpawnSaysWhatIsWrong(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	make := func() kernel.Behavior { return kerneltest.NewProbe() }
	kerneltest.Spawn(t, root, kernel.Spec{Name: "taken", New: make})
	kerneltest.Do(t, root, func(c *kernel.Ctx) {
		for what, s := range map[string]kernel.Spec{
			"taken by a living sibling": {Name: "taken", New: make},
			"1 to 128 printable":        {Name: "a/b", New: make},
			"printable characters":      {Name: "a\nb", New: make},
			"no New":                    {Name: "x"},
			"both Account and Limit":    {Name: "x", New: make, Limit: 1, Account: c.Account().Child("x", 1)},
			"the root account":          {Name: "x", New: make, Account: k.Account()},
		} {
			if _, err := c.Spawn(s); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%q: %v", what, err)
			}
		}
		if _, err := c.Spawn(kernel.Spec{Name: "taken", New: make}); !errors.Is(err, kernel.ErrTaken) {
			t.Errorf("got %v", err)
		}
	})
	if _, err := k.Root(kernel.Spec{Name: "second", New: make}); !errors.Is(err, kernel.ErrTaken) {
		t.Errorf("a second root: %v", err)
	}
}

func TestANameIsFreeAgainWhenItsGenerationHasEnded(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, rp := kerneltest.Root(t, k)
	release := make(chan struct{})
	p := kerneltest.NewProbe()
	p.OnStart = func(c *kernel.Ctx) error {
		c.Own("never answers", func(ctx context.Context, _ error) { <-release })
		return nil
	}
	one := kerneltest.Spawn(t, root, p.Spec("tunnel"))
	kerneltest.Do(t, one, func(*kernel.Ctx) {})
	one.Stop(nil)
	kerneltest.Await[kernel.Exited](t, rp)
	two := kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("tunnel")) // nobody waits for the predecessor's release
	if two.Gen() <= one.Gen() {
		t.Errorf("generations %d and %d", one.Gen(), two.Gen())
	}
	n := k.Tree()
	if len(n.Children) != 2 || n.Children[0].State != "stopping" || len(n.Children[0].Owes) != 1 || n.Children[0].Owes[0].Name != "never answers" {
		t.Errorf("the tree does not show what is still owed: %+v", n.Children)
	}
	kerneltest.Do(t, root, func(c *kernel.Ctx) {
		if kids := c.Children(); len(kids) != 1 || kids[0] != two {
			t.Errorf("children %v", kids)
		}
		if got, ok := c.Child("tunnel"); !ok || got != two {
			t.Errorf("child %v", got)
		}
		if _, ok := c.Child("other"); ok {
			t.Error("a child that is none")
		}
	})
	close(release)
	kerneltest.Eventually(t, "the old one is gone", func() bool { return len(k.Tree().Children) == 1 })
}

func TestAStopCancelsTheContextOnTheStoppersGoroutine(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	p := kerneltest.NewProbe()
	entered := make(chan context.Context, 1)
	p.On = func(c *kernel.Ctx, _ kernel.Msg) (bool, error) {
		entered <- c.Context()
		<-c.Context().Done() // a receive that waits on its context
		return true, nil
	}
	r := kerneltest.Spawn(t, root, p.Spec("waits"))
	_ = r.Tell("go")
	ctx := <-entered
	r.Stop(errTest)
	if ctx.Err() == nil || context.Cause(ctx) != errTest {
		t.Errorf("after Stop has returned: %v", context.Cause(ctx))
	}
	if err := ended(t, r); errors.Is(err, kernel.ErrAbandoned) {
		t.Error("abandoned although it obeyed")
	}
}

func TestAChildsContextOutlivesItsParentsStopHook(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	var child kernel.Ref
	var ctx context.Context
	cp, rp := kerneltest.NewProbe(), kerneltest.NewProbe()
	cp.OnStart = func(c *kernel.Ctx) error { ctx = c.Context(); return nil }
	rp.OnStart = func(c *kernel.Ctx) (err error) { child, err = c.Spawn(cp.Spec("child")); return err }
	rp.OnStop = func(c *kernel.Ctx, cause error) {
		if ctx.Err() != nil || child.Cause() != nil {
			t.Error("the child was stopped before the parent's last words")
		}
		if err := child.Tell("last words"); err != nil {
			t.Errorf("last words: %v", err)
		}
	}
	r, err := k.Root(rp.Spec("root"))
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Eventually(t, "child runs", func() bool { n := k.Tree(); return len(n.Children) == 1 && n.Children[0].State == "running" })
	r.Stop(kernel.ErrShutdown)
	ended(t, r)
	if ctx.Err() == nil || child.Cause() != kernel.ErrShutdown {
		t.Errorf("child's cause %v", child.Cause())
	}
}

func TestWatchersAreToldOnce(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	wp := kerneltest.NewProbe()
	w := kerneltest.Spawn(t, root, wp.Spec("watcher"))
	r := kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("watched"))
	kerneltest.Do(t, w, func(c *kernel.Ctx) { c.Watch(r) })
	r.Stop(errTest)
	if d := kerneltest.Await[kernel.Down](t, wp); d.Ref != r || d.Cause != errTest {
		t.Errorf("got %+v", d)
	}
	kerneltest.Do(t, w, func(c *kernel.Ctx) { c.Watch(r); c.Watch(kernel.Ref{}) })
	if d := kerneltest.Await[kernel.Down](t, wp); d.Ref != r || d.Cause != errTest {
		t.Errorf("already gone: %+v", d)
	}
	if d := kerneltest.Await[kernel.Down](t, wp); !d.Ref.IsZero() || d.Cause != kernel.ErrStopped {
		t.Errorf("the zero Ref: %+v", d)
	}
	kerneltest.Do(t, w, func(*kernel.Ctx) {})
	if wp.Pending() != 0 {
		t.Errorf("%d more messages", wp.Pending())
	}
}

func TestTimersComeInTimeAndCanBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.Start(t, kernel.Options{})
		r, p := kerneltest.Root(t, k)
		var cancel func()
		kerneltest.Do(t, r, func(c *kernel.Ctx) {
			c.After(2*time.Second, "second")
			c.After(time.Second, "first")
			cancel = c.After(1500*time.Millisecond, "never")
			c.After(15*time.Second, "after the end")
		})
		t0 := time.Now()
		if g := p.Next(t); g.Msg != "first" || time.Since(t0) != time.Second {
			t.Errorf("%v after %v", g.Msg, time.Since(t0))
		}
		cancel()
		cancel()
		if g := p.Next(t); g.Msg != "second" || time.Since(t0) != 2*time.Second {
			t.Errorf("%v after %v", g.Msg, time.Since(t0))
		}
		// one that is in the lane already is taken back as well
		kerneltest.Do(t, r, func(c *kernel.Ctx) {
			cancel := c.After(0, "in the lane")
			time.Sleep(time.Millisecond)
			cancel()
		})
		kerneltest.Do(t, r, func(*kernel.Ctx) {})
		if p.Pending() != 0 {
			t.Errorf("got %v", p.Next(t).Msg)
		}
	})
}

func TestTimersEndWithTheirActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.Start(t, kernel.Options{})
		root, _ := kerneltest.Root(t, k)
		r := kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("child"))
		l, err := k.Account().Acquire(700)
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.Do(t, r, func(c *kernel.Ctx) {
			c.After(time.Hour, parcel{l})
			taken, _ := k.Account().Acquire(50)
			c.After(time.Hour, parcel{taken})()
			if taken.Size() != 0 {
				t.Error("a timer that was taken back keeps its lease")
			}
		})
		r.Stop(nil)
		<-r.Done()
		if l.Size() != 0 {
			t.Error("a timer outlives its actor, and keeps its lease")
		}
	})
}

func TestACtxKnowsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.Start(t, kernel.Options{})
		root, _ := kerneltest.Root(t, k)
		r := kerneltest.Spawn(t, root, kerneltest.NewProbe().Spec("child"))
		kerneltest.Do(t, r, func(c *kernel.Ctx) {
			if c.Self() != r || c.Parent() != root || c.Kernel() != k || !c.Now().Equal(time.Now()) || c.Account() != k.Account() || r.Name() != "child" || r.Path() != "test/child" {
				t.Errorf("self %v, parent %v, %v", c.Self().Path(), c.Parent().Path(), c.Now())
			}
			if err := c.Tell(root, "x"); err != nil {
				t.Error(err)
			}
			l, _ := k.Account().Acquire(5)
			if _, err := c.Request(kernel.Ref{}, parcel{l}); !errors.Is(err, kernel.ErrStopped) || l.Size() != 0 {
				t.Errorf("a request to nobody: %v", err)
			}
			c.Stop(kernel.Ref{}, nil)
		})
		kerneltest.Do(t, root, func(c *kernel.Ctx) {
			if !c.Parent().IsZero() {
				t.Error("the root has a parent")
			}
		})
	})
}

func TestAParentMayRetireASuccessorThatWaits(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	root, rp := kerneltest.Root(t, k)
	slow := kernel.Backoff{Min: time.Hour, Max: time.Hour}
	for _, which := range []string{"the old one", "the new one"} {
		r := kerneltest.Spawn(t, root, kernel.Spec{Name: "child", Restart: kernel.Permanent, Backoff: slow, New: ending})
		_ = r.Tell("panic")
		x := kerneltest.Await[kernel.Exited](t, rp)
		if x.Next.IsZero() {
			t.Fatal("no successor")
		}
		p, err := x.Next.Ask("before it runs")
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.Do(t, root, func(c *kernel.Ctx) {
			if which == "the old one" {
				c.Stop(r, errTest)
			} else {
				c.Stop(x.Next, errTest)
			}
		})
		if gone := kerneltest.Await[kernel.Exited](t, rp); gone.Ref != x.Next || !gone.Next.IsZero() {
			t.Errorf("%s: %+v", which, gone)
		}
		if _, _, err := p.Wait(within(t)); err == nil {
			t.Errorf("%s: a question to one that never ran was answered", which)
		}
		p.Drop()
	}
}

func TestObligationsArePaidOnceWhateverTheEnd(t *testing.T) {
	for _, how := range []string{"panic", "error", "goexit", "done", "stop"} {
		k := kerneltest.Start(t, kernel.Options{})
		root, _ := kerneltest.Root(t, k)
		j := &journal{}
		r := kerneltest.Spawn(t, root, kernel.Spec{Name: "child", New: func() kernel.Behavior {
			p := kerneltest.NewProbe()
			p.OnStart = func(c *kernel.Ctx) error {
				for _, name := range []string{"a", "b"} {
					c.Own(name, func(_ context.Context, cause error) { j.add("%s", name); _ = cause.Error() })
				}
				c.Own("panics", func(context.Context, error) { j.add("panics"); panic("in a release") })
				c.Own("exits", func(context.Context, error) { j.add("exits"); runtime.Goexit() })
				c.Own("paid", func(context.Context, error) { j.add("paid") }).Discharge()
				o := c.Own("moot", func(context.Context, error) { j.add("moot") })
				o.Moot()
				o.Discharge()
				return nil
			}
			p.On = func(c *kernel.Ctx, m kernel.Msg) (bool, error) { return true, ending().Receive(c, m) }
			return p
		}})
		kerneltest.Do(t, r, func(*kernel.Ctx) {})
		if how == "stop" {
			r.Stop(nil)
		} else {
			_ = r.Tell(how)
		}
		ended(t, r)
		kerneltest.Eventually(t, "settled", func() bool { return len(k.Tree().Children) == 0 })
		for _, s := range []string{"a", "b", "panics", "exits"} {
			if j.count(s) != 1 {
				t.Errorf("%s: %s ran %d times", how, s, j.count(s))
			}
		}
		if j.count("paid")+j.count("moot") != 0 {
			t.Errorf("%s: %s", how, j)
		}
	}
}

func TestAReleaseHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(kernel.Options{Release: 3 * time.Second})
		gate := make(chan struct{})
		p := kerneltest.NewProbe()
		p.OnStart = func(c *kernel.Ctx) error {
			c.Own("obeys", func(ctx context.Context, _ error) {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
			})
			c.Own("hangs", func(context.Context, error) { <-gate })
			return nil
		}
		r, err := k.Root(p.Spec("root"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		t0 := time.Now()
		report := k.Shutdown(t.Context())
		if d := time.Since(t0); d != 3*time.Second {
			t.Errorf("it took %v", d)
		}
		synctest.Wait()
		left := k.Unstopped()
		if len(report.Left) == 0 || len(left) != 1 || left[0].What != "release hangs" || !strings.Contains(report.String(), "release hangs") {
			t.Errorf("report %v, left %v", report, left)
		}
		if len(left) == 1 && !strings.Contains(left[0].Stack, "lifecycle_test.go") {
			t.Errorf("stack: %s", left[0].Stack)
		}
		if n := k.Tree(); n.State != "abandoned" || len(n.Owes) != 1 || n.Gen != r.Gen() {
			t.Errorf("tree %+v", n)
		}
		close(gate)
		synctest.Wait()
		if k.Tree().Gen != 0 || len(k.Unstopped()) != 0 {
			t.Error("not forgotten when it has ended")
		}
	})
}

func TestAStuckStopHookIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(kernel.Options{})
		gate := make(chan struct{})
		p := kerneltest.NewProbe()
		p.OnStop = func(*kernel.Ctx, error) { <-gate }
		s := p.Spec("root")
		s.Grace = 2 * time.Second
		if _, err := k.Root(s); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		t0 := time.Now()
		report := k.Shutdown(t.Context())
		if d := time.Since(t0); d != 2*time.Second || len(report.Left) != 1 || report.Left[0].What != "stop hook" {
			t.Errorf("%v, %v", d, report)
		}
		if !strings.Contains(report.Left[0].Stack, "lifecycle_test.go") {
			t.Errorf("stack: %s", report.Left[0].Stack)
		}
		close(gate)
		synctest.Wait()
		if len(k.Unstopped()) != 0 {
			t.Errorf("left %v", k.Unstopped())
		}
	})
}

func TestShutdownSaysWhoIsLeftWhenItsContextEnds(t *testing.T) {
	k := kernel.New(kernel.Options{})
	root, _ := kerneltest.Root(t, k)
	gate := make(chan struct{})
	r := kerneltest.Spawn(t, root, kernel.Spec{Name: "stuck", Kind: "thing", Grace: time.Hour, New: func() kernel.Behavior { return blocker{gate} }})
	_ = r.Tell("x")
	kerneltest.Eventually(t, "in its turn", func() bool { // it is in Start before
		doing := k.Tree().Children[0].Doing
		return doing != nil && doing.Type == "string"
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	report := k.Shutdown(ctx)
	if len(report.Left) != 1 || report.Left[0].Path != "test/stuck" || report.Left[0].Kind != "thing" || report.Left[0].What != "turn" || !errors.Is(report.Left[0].Cause, kernel.ErrShutdown) {
		t.Errorf("report %v", report)
	}
	close(gate)
	if report := k.Shutdown(within(t)); !report.Empty() || !strings.Contains(report.String(), "all stopped") {
		t.Errorf("report %v", report)
	}
	if k.Cause() != kernel.ErrShutdown {
		t.Errorf("cause %v", k.Cause())
	}
}

func TestAKernelWithoutARootIsAtRest(t *testing.T) {
	k := kernel.New(kernel.Options{})
	if r := k.Shutdown(t.Context()); !r.Empty() || k.Tree().Gen != 0 || k.Unstopped() != nil || k.Cause() != nil {
		t.Errorf("%v", r)
	}
	if k.Account().Limit() != kernel.DefaultLimit || k.Account().Scope() != "pod_bytes" {
		t.Errorf("account %s of %d", k.Account().Scope(), k.Account().Limit())
	}
}
