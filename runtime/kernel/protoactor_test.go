package kernel_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/runtime/kerneltest"
	"github.com/asynkron/protoactor-go/actor"
)

// The contract with the engine. The first part is what the kernel relies on. The second is faults that made it avoid the rest of
// the engine, asserted as they are: an upgrade that mends or changes one is noticed here, and may change what the kernel does.

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithDeadLetterThrottleCount(0), actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
}

func short(m any) string {
	if s, ok := m.(string); ok {
		return s
	}
	s := fmt.Sprintf("%T", m)
	return s[strings.LastIndex(s, ".")+1:]
}

func gone(s *actor.ActorSystem, pid *actor.PID) bool {
	_, ok := s.ProcessRegistry.GetLocal(pid.Id)
	return !ok
}

// never reports that something did not come in a time in which it would have.
func never(ok func() bool) bool {
	for range 50 {
		if ok() {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
	return true
}

// plainBox is the least mailbox that works: it writes down what the engine does with it.
type plainBox struct {
	j       *journal
	invoker actor.MessageInvoker
}

func (b *plainBox) PostUserMessage(m any) { b.j.add("user:%s", short(m)) }
func (b *plainBox) PostSystemMessage(m any) {
	b.j.add("system:%s", short(m))
	if b.invoker != nil {
		b.invoker.InvokeSystemMessage(m)
	}
}
func (b *plainBox) RegisterHandlers(i actor.MessageInvoker, _ actor.Dispatcher) {
	b.j.add("register")
	b.invoker = i
}
func (b *plainBox) Start()                { b.j.add("start") }
func (b *plainBox) UserMessageCount() int { return 0 }

func TestEngineDrivesAForeignMailbox(t *testing.T) {
	s, j := quietSystem(), &journal{}
	box := &plainBox{j: j}
	pid, err := s.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) { j.add("actor:%s", short(c.Message())) },
		actor.WithMailbox(func() actor.Mailbox { return box })), "one")
	if err != nil {
		t.Fatal(err)
	}
	want := "register system:Started actor:Started start"
	if j.String() != want {
		t.Fatalf("spawn: %s", j)
	}
	box.invoker.InvokeUserMessage("hello")
	want += " actor:hello"
	if j.String() != want {
		t.Fatalf("message: %s", j)
	}
	s.Root.Stop(pid) // on this goroutine: what the cancel-on-stop of the mailbox needs
	want += " system:Stop actor:Stopping actor:Stopped"
	if j.String() != want || !gone(s, pid) {
		t.Fatalf("stop: %s, gone %v", j, gone(s, pid))
	}
	box.invoker.InvokeSystemMessage(&actor.Stop{})
	box.invoker.InvokeUserMessage("late")
	if j.String() != want {
		t.Errorf("after the stop: %s", j)
	}
}

func TestEngineSurvivesAGoexitInAForeignMailbox(t *testing.T) {
	s, j := quietSystem(), &journal{}
	box := &plainBox{j: j}
	pid, err := s.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if c.Message() == "exit" {
			runtime.Goexit()
		}
		j.add("actor:%s", short(c.Message()))
	}, actor.WithMailbox(func() actor.Mailbox { return box })), "one")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); box.invoker.InvokeUserMessage("exit") }()
	<-done
	box.invoker.InvokeUserMessage("hello")
	s.Root.Stop(pid)
	if got := j.String(); !strings.HasSuffix(got, "actor:hello system:Stop actor:Stopping actor:Stopped") {
		t.Errorf("got %s", got)
	}
}

func TestEngineRefusesANameTwice(t *testing.T) {
	s := quietSystem()
	props := actor.PropsFromFunc(func(actor.Context) {})
	a, err := s.Root.SpawnNamed(props, "same")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Root.SpawnNamed(props, "same"); err == nil {
		t.Error("a name was given twice")
	}
	s.Root.Stop(a)
}

// --- faults ---

func TestFaultUserMessagesArriveBetweenStoppingAndStopped(t *testing.T) {
	s, j := quietSystem(), &journal{}
	gate := make(chan struct{})
	child := actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Stopping); ok {
			<-gate
		}
	})
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Started); ok {
			c.Spawn(child)
		}
		j.add("%s", short(c.Message()))
	}))
	s.Root.Stop(pid)
	kerneltest.Eventually(t, "stopping", func() bool { return j.count("Stopping") == 1 })
	s.Root.Send(pid, "late")
	kerneltest.Eventually(t, "late", func() bool { return j.count("late") == 1 })
	close(gate)
	kerneltest.Eventually(t, "gone", func() bool { return j.count("Stopped") == 1 })
	if got := j.String(); got != "Started Stopping late Terminated Stopped" {
		t.Errorf("mended? %s", got)
	}
}

func TestFaultQueuedMessagesAreLostSilentlyAtAStop(t *testing.T) {
	s := quietSystem()
	var dead atomic.Int32
	s.EventStream.Subscribe(func(e any) {
		if _, ok := e.(*actor.DeadLetterEvent); ok {
			dead.Add(1)
		}
	})
	gate, started := make(chan struct{}), make(chan struct{})
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if c.Message() == "block" {
			close(started)
			<-gate
		}
	}))
	s.Root.Send(pid, "block")
	<-started
	for range 10 {
		s.Root.Send(pid, "lost")
	}
	s.Root.Stop(pid)
	close(gate)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, pid) })
	if !never(func() bool { return dead.Load() > 0 }) {
		t.Errorf("mended? %d dead letters", dead.Load())
	}
}

func TestFaultARestartSaysNeitherStoppedNorTerminated(t *testing.T) {
	s, j := quietSystem(), &journal{}
	var kid atomic.Pointer[actor.PID]
	child := actor.PropsFromFunc(func(c actor.Context) {
		j.add("%s", short(c.Message()))
		if c.Message() == "boom" {
			panic("boom")
		}
	})
	parent := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			kid.Store(c.Spawn(child))
		case *actor.Terminated:
			j.add("parent-told")
		}
	}))
	kerneltest.Eventually(t, "child", func() bool { return kid.Load() != nil })
	s.Root.Send(kid.Load(), "boom")
	s.Root.Send(kid.Load(), "two")
	kerneltest.Eventually(t, "two", func() bool { return j.count("two") == 1 })
	if got := j.String(); got != "Started boom Restarting Started two" {
		t.Errorf("mended? %s", got)
	}
	s.Root.Stop(parent)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, parent) })
}

func TestFaultAPanicInStoppingBringsTheActorBack(t *testing.T) {
	s, j := quietSystem(), &journal{}
	var kid atomic.Pointer[actor.PID]
	parent := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Started); ok {
			var once atomic.Bool
			kid.Store(c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				j.add("%s", short(c.Message()))
				if _, ok := c.Message().(*actor.Stopping); ok && !once.Swap(true) {
					panic("in stopping")
				}
			})))
		}
	}))
	kerneltest.Eventually(t, "child", func() bool { return kid.Load() != nil })
	s.Root.Stop(kid.Load())
	kerneltest.Eventually(t, "back", func() bool { return j.count("Started") == 2 })
	s.Root.Send(kid.Load(), "alive")
	kerneltest.Eventually(t, "alive", func() bool { return j.count("alive") == 1 })
	s.Root.Stop(parent)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, parent) })
}

func TestFaultAPanicInStoppedHangsTheParent(t *testing.T) {
	s := quietSystem()
	parent := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Started); ok {
			c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().(*actor.Stopped); ok {
					panic("in stopped")
				}
			}))
		}
	}))
	s.Root.Stop(parent)
	if !never(func() bool { return gone(s, parent) }) {
		t.Error("mended? the parent stopped")
	}
}

func TestFaultAChildSpawnedWhileStoppingHangsTheParent(t *testing.T) {
	s := quietSystem()
	var late atomic.Pointer[actor.PID]
	kid := actor.PropsFromFunc(func(actor.Context) {})
	parent := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Spawn(kid)
		case *actor.Terminated:
			late.CompareAndSwap(nil, c.Spawn(kid))
		}
	}))
	s.Root.Stop(parent)
	kerneltest.Eventually(t, "late", func() bool { return late.Load() != nil })
	if !never(func() bool { return gone(s, parent) }) {
		t.Error("mended? the parent stopped")
	}
}

func TestFaultAGoexitWedgesTheStockMailbox(t *testing.T) {
	s := quietSystem()
	exited := make(chan struct{})
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if c.Message() == "exit" {
			close(exited)
			runtime.Goexit()
		}
	}))
	s.Root.Send(pid, "exit")
	<-exited
	s.Root.Stop(pid)
	if !never(func() bool { return gone(s, pid) }) {
		t.Error("mended? it stopped")
	}
}

func TestFaultTheNameIsFreeBeforeStoppedHasRun(t *testing.T) {
	s := quietSystem()
	gate, stopped := make(chan struct{}), make(chan struct{})
	one, err := s.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Stopped); ok {
			close(stopped)
			<-gate
		}
	}), "session")
	if err != nil {
		t.Fatal(err)
	}
	s.Root.Stop(one)
	<-stopped
	two, err := s.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "session")
	if err != nil {
		t.Errorf("mended? %v", err)
	} else {
		s.Root.Stop(two)
	}
	close(gate)
}

func TestFaultAWatchingParentIsToldTwice(t *testing.T) {
	s, j := quietSystem(), &journal{}
	var kid atomic.Pointer[actor.PID]
	parent := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			k := c.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			c.Watch(k)
			kid.Store(k)
		case *actor.Terminated:
			j.add("terminated")
		}
	}))
	kerneltest.Eventually(t, "child", func() bool { return kid.Load() != nil })
	s.Root.Stop(kid.Load())
	kerneltest.Eventually(t, "told twice", func() bool { return j.count("terminated") == 2 })
	s.Root.Stop(parent)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, parent) })
}

func TestFaultIntensityIsPerChildAndTheSupervisorLivesOn(t *testing.T) {
	s, j := quietSystem(), &journal{}
	var kid atomic.Pointer[actor.PID]
	parent := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			kid.Store(c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if c.Message() == "boom" {
					panic("boom")
				}
			})))
		case *actor.Terminated:
			j.add("terminated")
		}
	}, actor.WithSupervisor(actor.NewOneForOneStrategy(1, time.Minute, actor.DefaultDecider))))
	kerneltest.Eventually(t, "child", func() bool { return kid.Load() != nil })
	s.Root.Send(kid.Load(), "boom")
	s.Root.Send(kid.Load(), "boom")
	kerneltest.Eventually(t, "child stopped for good", func() bool { return j.count("terminated") == 1 })
	if !never(func() bool { return gone(s, parent) }) {
		t.Error("mended? the supervisor ended")
	}
	s.Root.Stop(parent)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, parent) })
}

type batch []any

func (b batch) GetMessages() []any { return b }

func TestFaultABatchIsDeliveredInPartsAndWhole(t *testing.T) {
	s, j := quietSystem(), &journal{}
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) { j.add("%T", c.Message()) }))
	s.Root.Send(pid, batch{1, "two"})
	kerneltest.Eventually(t, "whole", func() bool { return j.count("kernel_test.batch") == 1 })
	if j.count("int") != 1 || j.count("string") != 1 {
		t.Errorf("mended? %s", j)
	}
	s.Root.Stop(pid)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, pid) })
}

type counting struct{ posted, received atomic.Int32 }

func (m *counting) MailboxStarted()     {}
func (m *counting) MessagePosted(any)   { m.posted.Add(1) }
func (m *counting) MessageReceived(any) { m.received.Add(1) }
func (m *counting) MailboxEmpty()       {}

func TestFaultMailboxMiddlewareMissesPanickedMessages(t *testing.T) {
	s, m := quietSystem(), &counting{}
	var handled atomic.Int32
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if c.Message() == "boom" {
			defer handled.Add(1)
			panic("boom")
		}
	}, actor.WithMailbox(actor.Unbounded(m))))
	for range 3 {
		s.Root.Send(pid, "boom")
	}
	kerneltest.Eventually(t, "handled", func() bool { return handled.Load() == 3 })
	if !never(func() bool { return m.received.Load() >= m.posted.Load() }) {
		t.Error("mended? every posted message was received")
	}
	s.Root.Stop(pid)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, pid) })
}

type noInvoker struct{}

func (noInvoker) InvokeSystemMessage(any)  {}
func (noInvoker) InvokeUserMessage(any)    {}
func (noInvoker) EscalateFailure(any, any) {}

type lazy struct{ run []func() }

func (l *lazy) Schedule(f func()) { l.run = append(l.run, f) }
func (l *lazy) Throughput() int   { return 1 }

func TestFaultADroppingMailboxNeverForgetsWhatItDropped(t *testing.T) {
	box := actor.BoundedDropping(2)()
	box.RegisterHandlers(noInvoker{}, &lazy{})
	box.Start()
	for i := range 10 {
		box.PostUserMessage(i)
	}
	if n := box.UserMessageCount(); n != 10 { // and it spins for the other eight, for ever
		t.Errorf("mended? %d messages counted", n)
	}
}

func TestFaultABoundedMailboxBlocksItsSender(t *testing.T) {
	box, l := actor.Bounded(2)(), &lazy{}
	box.RegisterHandlers(noInvoker{}, l)
	box.Start()
	box.PostUserMessage(1)
	box.PostUserMessage(2)
	done := make(chan struct{})
	go func() { defer close(done); box.PostUserMessage(3) }()
	if !never(func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}) {
		t.Error("mended? the sender did not wait")
	}
	l.run[0]()
	<-done
}

func TestFaultAContinuationRunsInTheNextIncarnation(t *testing.T) {
	s, j := quietSystem(), &journal{}
	gate := make(chan struct{})
	slow := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if c.Message() == "q" {
			<-gate
			c.Respond("answer")
		}
	}))
	var incarnation atomic.Int32
	pid := s.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		me := incarnation.Add(1)
		return actor.ReceiveFunc(func(c actor.Context) {
			switch c.Message() {
			case "ask":
				c.ReenterAfter(c.RequestFuture(slow, "q", 10*time.Second), func(any, error) { j.add("closure-of-%d-in-%d", me, incarnation.Load()) })
			case "boom":
				panic("boom")
			case "after":
				j.add("after")
			}
		})
	}))
	for _, m := range []string{"ask", "boom", "after"} {
		s.Root.Send(pid, m)
	}
	kerneltest.Eventually(t, "second incarnation", func() bool { return j.count("after") == 1 })
	close(gate)
	kerneltest.Eventually(t, "continuation", func() bool { return strings.Contains(j.String(), "closure") })
	if j.count("closure-of-1-in-2") != 1 {
		t.Errorf("mended? %s", j)
	}
	for _, p := range []*actor.PID{pid, slow} {
		s.Root.Stop(p)
		kerneltest.Eventually(t, "gone", func() bool { return gone(s, p) })
	}
}

func TestFaultAStashComesBackReversed(t *testing.T) {
	s, j := quietSystem(), &journal{}
	n := 0
	pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case int:
			if n++; n <= 3 {
				c.Stash()
				return
			}
			j.add("%d", m)
		case string:
			panic("restart")
		}
	}))
	for i := range 3 {
		s.Root.Send(pid, i+1)
	}
	s.Root.Send(pid, "restart")
	kerneltest.Eventually(t, "unstashed", func() bool { return len(strings.Fields(j.String())) == 3 })
	if got := j.String(); got != "3 2 1" {
		t.Errorf("mended? %s", got)
	}
	s.Root.Stop(pid)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, pid) })
}

func TestFaultShutdownStopsNothingAndPanicsTheSecondTime(t *testing.T) {
	s := quietSystem()
	pid := s.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	s.Shutdown()
	if gone(s, pid) {
		t.Error("mended? it stopped something")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("mended? no panic")
			}
		}()
		s.Shutdown()
	}()
	s.Root.Stop(pid)
	kerneltest.Eventually(t, "gone", func() bool { return gone(s, pid) })
}

func TestFaultAnEventSubscriberPanicsTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quietSystem()
		s.EventStream.Subscribe(func(e any) {
			if _, ok := e.(*actor.DeadLetterEvent); ok {
				panic("subscriber")
			}
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("mended? no panic")
				}
			}()
			s.Root.Send(actor.NewPID("nonhost", "nobody"), 1)
		}()
		time.Sleep(3 * time.Second) // the throttle's goroutine ends
		synctest.Wait()
	})
}

func TestFaultDeadLettersLogThePayloadUnlessSilenced(t *testing.T) {
	type credential struct{ Token string }
	for count, want := range map[int32]bool{3: true, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			var buf bytes.Buffer
			s := actor.NewActorSystem(actor.WithDeadLetterThrottleCount(count), actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
				return slog.New(slog.NewTextHandler(&buf, nil))
			}))
			s.Root.Send(actor.NewPID("nonhost", "nobody"), &credential{"s3cr3t"})
			time.Sleep(3 * time.Second) // the throttle's goroutine ends
			synctest.Wait()
			if got := strings.Contains(buf.String(), "s3cr3t"); got != want {
				t.Errorf("throttle %d: the payload is in the log: %v", count, got)
			}
		})
	}
}
