package capability

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// world is one desk under a probe that plays the session.
type world struct {
	t      *testing.T
	k      *kernel.Kernel
	parent kernel.Ref
	probe  *kerneltest.Probe
	desk   kernel.Ref
	view   *atomic.Pointer[View]
	open   *atomic.Int64
	trail  *trail
	caller Caller

	spawned int
}

// run runs a test of a desk in a bubble, where time costs nothing.
func run(t *testing.T, cfg DeskConfig, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, view: new(atomic.Pointer[View]), open: new(atomic.Int64), trail: &trail{}}
		w.k = kerneltest.Start(t, kernel.Options{})
		w.parent, w.probe = kerneltest.Root(t, w.k)
		cfg.View, cfg.Open, cfg.Audit, cfg.Tag = w.view, w.open, w.trail, "#12b9377c"
		if cfg.Grants == nil {
			cfg.Grants = all("shop", "bank")
		}
		w.desk = kerneltest.Spawn(t, w.parent, DeskSpec("desk", cfg))
		w.caller = Caller{Desk: w.desk, View: w.view, Tag: cfg.Tag, Account: w.k.Account(), Token: sha256.Sum256([]byte("token")), Audit: w.trail}
		test(w)
	})
}

// attach spawns a server and makes it part of the session.
func (w *world) attach(s *fakeSource) *fakeSource {
	w.t.Helper()
	w.spawned++
	s.ref = kerneltest.Spawn(w.t, w.parent, s.probe.Spec(fmt.Sprintf("server-%d", w.spawned)))
	w.signal(Attach{s})
	return s
}

func (w *world) signal(m kernel.Msg) {
	w.t.Helper()
	if err := w.desk.Current().Signal(m); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// publish changes what a source says of itself.
func (w *world) publish(s *fakeSource, state State, list *List) {
	s.set.Store(&Toolset{State: state, List: list})
	w.signal(Changed{s})
}

// ending is what came of a call.
type ending struct {
	result Result
	err    error
	after  time.Duration
}

func (e ending) code() Code {
	var r *Refusal
	if errors.As(e.err, &r) {
		return r.Code
	}
	return ""
}

// pendingCall is a call that a caller makes.
type pendingCall struct {
	w    *world
	hang func() // the HTTP request closes
	end  chan ending
}

func (w *world) call(r Request) *pendingCall { return w.callAs(w.caller, r) }

func (w *world) callAs(who Caller, r Request) *pendingCall {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &pendingCall{w, func() { cancel(); synctest.Wait() }, make(chan ending, 1)}
	if len(r.Arguments) > 0 {
		lease, err := w.k.Account().Acquire(int64(len(r.Arguments)))
		if err != nil {
			w.t.Fatal(err)
		}
		r.Bytes = lease
	}
	go func() {
		begun := time.Now()
		var result Result
		d, err := Execute(ctx, who, r)
		if err == nil {
			result.Raw = d.Raw
			d.Done()
		}
		c.end <- ending{result, err, time.Since(begun)}
	}()
	synctest.Wait()
	return c
}

func (c *pendingCall) wait() ending {
	c.w.t.Helper()
	select {
	case e := <-c.end:
		c.hang()
		return e
	case <-time.After(2 * time.Hour):
		c.w.t.Fatal("the call did not end")
		return ending{}
	}
}

func (c *pendingCall) open() bool {
	synctest.Wait()
	select {
	case e := <-c.end:
		c.end <- e
		return false
	default:
		return true
	}
}

// next is the next call that reached a server.
func (s *fakeSource) next(t *testing.T) (Call, *kernel.Question) {
	t.Helper()
	call, q := kerneltest.AwaitQuestion[Call](t, s.probe)
	call.Bytes.Release()
	return call, q
}

// answer answers with a text.
func (w *world) answer(q *kernel.Question, text string) {
	w.t.Helper()
	raw := []byte(`{"content":[{"type":"text","text":"` + text + `"}]}`)
	lease, err := w.k.Account().Acquire(int64(len(raw)))
	if err != nil {
		w.t.Fatal(err)
	}
	q.Answer(Result{Raw: raw}, lease)
	synctest.Wait()
}

// cancelled waits until the server was told to stop that call.
func (s *fakeSource) cancelled(t *testing.T, q *kernel.Question) {
	t.Helper()
	if m := kerneltest.Await[kernel.Cancelled](t, s.probe); m.Question != q {
		t.Fatal("another call was cancelled")
	}
}

func (w *world) reachedNobody(s *fakeSource) {
	w.t.Helper()
	synctest.Wait()
	if n := s.probe.Pending(); n != 0 {
		w.t.Errorf("%d messages reached the server", n)
	}
}

func shop(names ...string) *fakeSource { return newSource("shop", Ready, tools(names...)) }

func TestACallReachesItsServerToTheByteAndItsResultComesBack(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		args := `{ "n" : 9007199254740993 , "s":"\u003c" }`
		c := w.call(Request{Name: "shop.buy", Arguments: []byte(args)})
		call, q := s.next(t)
		if string(call.Arguments) != args || call.Tool != "shop.buy" {
			t.Errorf("got %s %s", call.Tool, call.Arguments)
		}
		if d := time.Until(call.Deadline); d != 170*time.Second || time.Until(call.Limit) != 30*time.Minute {
			t.Errorf("deadline in %v, limit in %v", d, time.Until(call.Limit))
		}
		if w.open.Load() != 1 || !kerneltest.Await[InFlight](t, w.probe).Open {
			t.Error("the call is not counted as open")
		}
		w.answer(q, "done")
		if e := c.wait(); e.err != nil || !strings.Contains(string(e.result.Raw), "done") {
			t.Errorf("got %s, %v", e.result.Raw, e.err)
		}
		if w.open.Load() != 0 || kerneltest.Await[InFlight](t, w.probe).Open {
			t.Error("the call is still counted as open")
		}
	})
}

func TestAbsentAndNullArgumentsAreTheEmptyObject(t *testing.T) {
	for _, raw := range []string{"", "null"} {
		run(t, DeskConfig{}, func(w *world) {
			s := w.attach(shop("shop.buy"))
			c := w.call(Request{Name: "shop.buy", Arguments: []byte(raw)})
			call, q := s.next(t)
			if string(call.Arguments) != "{}" {
				t.Errorf("got %s", call.Arguments)
			}
			w.answer(q, "ok")
			c.wait()
			if sum := w.trail.all()[0].ArgsSHA; sum[0] != 0x44 || sum[1] != 0x13 {
				t.Errorf("the hash is not that of {}: %x", sum)
			}
		})
	}
}

func TestEveryCallAndEveryRefusalIsInTheAudit(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy", "shop.fail", "shop.error"))
		w.call(Request{Name: "shop.nope"}).wait()
		ok := w.call(Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)})
		_, q := s.next(t)
		time.Sleep(3 * time.Second)
		w.answer(q, "x")
		ok.wait()
		bad := w.call(Request{Name: "shop.fail"})
		_, q = s.next(t)
		q.Answer(Result{Raw: []byte(`{"content":[],"isError":true}`)}, nil)
		bad.wait()
		fault := w.call(Request{Name: "shop.error"})
		_, q = s.next(t)
		q.Fail(&jsonrpc.Error{Code: -32602, Message: "no such page"})
		e := fault.wait()
		if e.err != nil || !strings.Contains(string(e.result.Raw), "no such page") || !strings.Contains(string(e.result.Raw), `"isError":true`) || strings.Contains(string(e.result.Raw), "refusal") {
			t.Errorf("a server's error came as %s, %v", e.result.Raw, e.err)
		}
		type line struct {
			event    Event
			provider string
			tool     string
			outcome  string
			isError  bool
		}
		want := []line{
			{EventRefused, "-", "shop.nope", "unknown", true},
			{EventCall, BrowserProvider, "shop.buy", "", false}, {EventExit, BrowserProvider, "shop.buy", "ok", false},
			{EventCall, BrowserProvider, "shop.fail", "", false}, {EventExit, BrowserProvider, "shop.fail", "ok", true},
			{EventCall, BrowserProvider, "shop.error", "", false}, {EventExit, BrowserProvider, "shop.error", "error", true},
		}
		got := w.trail.all()
		if len(got) != len(want) {
			t.Fatalf("%d records, want %d: %+v", len(got), len(want), got)
		}
		for i, e := range got {
			if l := (line{e.Event, e.Provider, e.Tool, e.Outcome, e.IsError}); l != want[i] {
				t.Errorf("record %d: got %+v, want %+v", i, l, want[i])
			}
			if e.Session != "#12b9377c" || e.Time.IsZero() {
				t.Errorf("record %d: %+v", i, e)
			}
		}
		if got[2].Duration != 3*time.Second || got[2].Bytes == 0 || got[1].Call != got[2].Call || got[1].ArgsSHA != sha256.Sum256([]byte(`{"n":1}`)) {
			t.Errorf("the exit says %+v", got[2])
		}
	})
}

func TestArgumentsThatDoNotFitNeverReachTheServer(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		for _, args := range []string{`{"n":"x"}`, `[]`, `"x"`, `7`, `true`, `"{"`, `{"n":1,"n":2}`, `{"n":1,"N":2}`} {
			if e := w.call(Request{Name: "shop.buy", Arguments: []byte(args)}).wait(); e.code() != BadArguments {
				t.Errorf("%s: got %v", args, e.err)
			}
		}
		w.reachedNobody(s)
	})
}

func TestTwoServersWithOneToolNameAreBothFoundAndEachCallLandsAtItsOwn(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		a, b := w.attach(newSource("shop", Ready, tools("search"))), w.attach(newSource("bank", Ready, tools("search")))
		var names []string
		for _, c := range w.view.Load().Catalog() {
			names = append(names, c.Name)
		}
		if len(names) != 2 || names[0] != "bank.search" || names[1] != "search" {
			t.Fatalf("got %q: shop was there first", names)
		}
		for name, s := range map[string]*fakeSource{"search": a, "shop.search": a, "bank.search": b} {
			c := w.call(Request{Name: name})
			_, q := s.next(t)
			w.answer(q, "here")
			if e := c.wait(); e.err != nil {
				t.Errorf("%s: %v", name, e.err)
			}
		}
		w.reachedNobody(a)
		w.reachedNobody(b)
	})
}

func TestAnUnknownNameWaitsForAServerThatConnects(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(newSource("shop", Connecting, nil))
		c := w.call(Request{Name: "shop.buy"})
		time.Sleep(4 * time.Second)
		if !c.open() {
			t.Fatal("it did not wait")
		}
		w.publish(s, Ready, tools("shop.buy"))
		_, q := s.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil || e.after != 4*time.Second {
			t.Errorf("got %v after %v", e.err, e.after)
		}
	})
}

func TestTheWaitForAServerEndsAfterTenSeconds(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(newSource("shop", Connecting, nil))
		own, other := w.call(Request{Name: "shop.buy"}), w.call(Request{Name: "thing"})
		if e := own.wait(); e.code() != NotAttached || e.after != SettleTimeout {
			t.Errorf("with the server's prefix: %v after %v", e.err, e.after)
		}
		if e := other.wait(); e.code() != Unknown {
			t.Errorf("without it: %v", e.err)
		}
		w.reachedNobody(s)
	})
}

func TestASearchWaitsForServersUnlessTheyListedEarly(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(newSource("shop", Connecting, nil))
		type found struct {
			text  string
			after time.Duration
		}
		search := func() found {
			begun := time.Now()
			text, lease, err := Search(context.Background(), w.caller, Query{})
			lease.Release()
			if err != nil {
				t.Error(err)
			}
			return found{string(text), time.Since(begun)}
		}
		if f := search(); f.after != SettleTimeout || !strings.Contains(f.text, `"pending":["shop"]`) {
			t.Errorf("a server that does not come: %+v", f)
		}
		go func() {
			time.Sleep(2 * time.Second)
			s.set.Store(&Toolset{State: Ready, List: tools("shop.buy")})
			_ = w.desk.Signal(Changed{s})
		}()
		if f := search(); f.after != 2*time.Second || !strings.Contains(f.text, `"shop.buy"`) || !strings.Contains(f.text, `"pending":[]`) {
			t.Errorf("a server that comes: %+v", f)
		}
		w.attach(newSource("bank", Connecting, listOf(true, "bank.pay")))
		if f := search(); f.after != 0 || !strings.Contains(f.text, `"bank.pay"`) || !strings.Contains(f.text, `"pending":["bank"]`) {
			t.Errorf("an early list: %+v", f)
		}
	})
}

func TestAServerThatGoesStaysListedAsDetachedAndComesBackUnderItsNames(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("buy"))
		w.signal(Detach{s})
		if c := w.view.Load().Catalog(); len(c) != 1 || c[0].Availability != Unreachable {
			t.Fatalf("got %+v", c)
		}
		if e := w.call(Request{Name: "buy"}).wait(); e.code() != NotAttached {
			t.Errorf("got %v", e.err)
		}
		other := w.attach(newSource("bank", Ready, tools("buy")))
		again := w.attach(shop("buy"))
		c := w.call(Request{Name: "buy"})
		_, q := again.next(t)
		w.answer(q, "ok")
		c.wait()
		w.reachedNobody(other)
	})
}

func TestAReadySourceServesUntilItsSuccessorIsReady(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		old := w.attach(shop("buy"))
		next := w.attach(newSource("shop", Connecting, nil))
		c := w.call(Request{Name: "buy"})
		_, q := old.next(t)
		w.answer(q, "old")
		c.wait()
		w.publish(next, Ready, tools("buy"))
		c = w.call(Request{Name: "buy"})
		_, q = next.next(t)
		w.answer(q, "new")
		c.wait()
		w.signal(Detach{old})
		if got := w.view.Load().Catalog(); len(got) != 1 || got[0].Availability != Available {
			t.Errorf("got %+v", got)
		}
	})
}

func TestADeskThatCrashesComesBackWithItsServersAndNames(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		a := w.attach(newSource("shop", Ready, tools("search")))
		w.attach(newSource("bank", Ready, tools("search")))
		late := w.attach(newSource("shop", Connecting, nil))
		c := w.call(Request{Name: "search"})
		a.next(t)
		if err := w.desk.Signal(Attach{nil}); err != nil { // a fault of our own
			t.Fatal(err)
		}
		if e := c.wait(); e.code() != OutcomeUnknown {
			t.Errorf("the call in flight ended with %v", e.err)
		}
		time.Sleep(time.Minute)
		if n := w.open.Load(); n != 0 {
			t.Errorf("%d calls are counted as open", n)
		}
		c = w.call(Request{Name: "search"})
		_, q := a.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Errorf("after the crash: %v", e.err)
		}
		w.publish(late, Ready, tools("search"))
		c = w.call(Request{Name: "search"})
		_, q = late.next(t)
		w.answer(q, "ok")
		c.wait()
	})
}

func TestTooManyOpenCallsAreRefused(t *testing.T) {
	run(t, DeskConfig{Limits: DeskLimits{Calls: 2}}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		first, second := w.call(Request{Name: "shop.buy"}), w.call(Request{Name: "shop.buy"})
		if e := w.call(Request{Name: "shop.buy"}).wait(); e.code() != TooMuch {
			t.Errorf("got %v", e.err)
		}
		for range 2 {
			_, q := s.next(t)
			w.answer(q, "ok")
		}
		first.wait()
		second.wait()
	})
}

func TestACallWithoutADeskIsUnknownAndAudited(t *testing.T) {
	tr := &trail{}
	_, err := Execute(context.Background(), Caller{Audit: tr, Tag: "-"}, Request{Name: "a.b"})
	var r *Refusal
	if !errors.As(err, &r) || r.Code != Unknown || len(tr.all()) != 1 || tr.all()[0].Event != EventRefused {
		t.Errorf("got %v, %+v", err, tr.all())
	}
}
