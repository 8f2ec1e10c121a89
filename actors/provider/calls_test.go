package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
)

func TestATimeoutEndsItsCallAndTellsTheServerAndNobodyElse(t *testing.T) {
	s := newFakeServer("buy", "slow")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		a := w.call("buy")
		w.pass(30 * time.Second)
		b := w.call("slow")
		w.pass(30 * time.Second)
		if !errors.Is(a.err, capability.ErrTimeout) || b.ended {
			t.Fatalf("%+v, %+v", a, b)
		}
		calls := s.heard("tools/call")
		cancels := s.heard("notifications/cancelled")
		if len(cancels) != 1 || !cancels[0].has(`{"requestId":`+string(calls[0].id.Raw())+`,"reason":"it has taken too long"}`) {
			t.Errorf("%+v", cancels)
		}
		s.last().reply(calls[0], `{"content":[]}`) // too late
		s.last().reply(calls[1], `{"content":[]}`)
		w.pass(0)
		if b.err != nil || w.refused("late_answer") != 1 || a.ends != 1 {
			t.Errorf("%+v, late answers: %d", b, w.refused("late_answer"))
		}
		s.last().say(`{"jsonrpc":"2.0","id":"999","result":{}}`)
		s.last().reply(calls[1], `{"content":[]}`) // twice
		w.pass(0)
		if w.refused("unknown_answer") != 2 {
			t.Errorf("unknown answers: %d", w.refused("unknown_answer"))
		}
	})
}

func TestACancelIsToldToTheServerAndALateAnswerIsDropped(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		o := w.call("buy")
		w.cancel(o)
		calls, cancels := s.heard("tools/call"), s.heard("notifications/cancelled")
		if len(cancels) != 1 || !cancels[0].has(`"requestId":`+string(calls[0].id.Raw())) {
			t.Fatalf("%+v", cancels)
		}
		s.last().reply(calls[0], `{"content":[]}`)
		w.pass(time.Hour)
		if o.ended || w.refused("late_answer") != 1 || w.node("shop").Attrs["breaker"] != "closed" {
			t.Errorf("%+v, %d", o, w.refused("late_answer"))
		}
	})
}

func TestACallThatIsCancelledBeforeTheServerIsThereIsNeverSent(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["initialize"] = true
	play(t, with(s), func(w *world) {
		o := w.call("buy")
		w.cancel(o)
		s.last().usual(s.heard("initialize")[0])
		w.pass(0)
		if w.state() != capability.Ready || len(s.heard("tools/call")) != 0 || len(s.heard("notifications/cancelled")) != 0 {
			t.Errorf("%v, %v", w.state(), s.heard("tools/call"))
		}
	})
}

func TestProgressExtendsACallNeverPastItsLimit(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		var got []string
		o := w.call("buy", func(c *capability.Call) {
			c.Limit = time.Now().Add(5 * time.Minute)
			c.Progress = func(params []byte) { got = append(got, string(params)) }
		})
		id := s.heard("tools/call")[0].id
		for i := range 5 {
			w.pass(50 * time.Second)
			token := strings.Trim(string(id.Raw()), `"`)
			if i%2 == 0 {
				token = `"` + token + `"` // some servers make a string of it
			}
			s.last().say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
		}
		w.pass(49 * time.Second)
		if o.ended || len(got) != 5 || !strings.Contains(got[4], `"progress":4`) {
			t.Fatalf("%+v %q", o, got)
		}
		s.last().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":1}}`)
		w.pass(2 * time.Second)
		if !errors.Is(o.err, capability.ErrTimeout) || w.refused("progress") != 1 {
			t.Errorf("%+v", o)
		}
		if w.node("shop").Attrs["breaker"] != "closed" {
			t.Error("a server that was at work to the end has no fault")
		}
	})
}

func TestAWaitInAQueueHasTheDeadlineOfItsCaller(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["initialize"] = true
	play(t, with(s), func(w *world) {
		o := w.call("buy", func(c *capability.Call) { c.Deadline = time.Now().Add(time.Second) })
		w.pass(time.Second)
		if !errors.Is(unsent(t, o), capability.ErrTimeout) {
			t.Error(o.err)
		}
		o = w.call("buy", func(c *capability.Call) { c.Deadline = time.Now().Add(-time.Second) })
		if !errors.Is(unsent(t, o), capability.ErrTimeout) {
			t.Error(o.err)
		}
	})
}

func TestWhatTheFilterLeavesOutIsRefusedBeforeAnythingIsConnected(t *testing.T) {
	s := newFakeServer("buy", "sell")
	play(t, with(s, func(e *mcpjson.Server) { e.Exclude = []string{"s*"} }), func(w *world) {
		o := w.call("sell")
		unsent(t, o)
		if s.dials() != 0 || w.p.sources[0].Allows("sell") || !w.p.sources[0].Allows("buy") {
			t.Errorf("%d connections", s.dials())
		}
		w.discover()
		if tools := w.tools().List.All(); len(tools) != 1 || tools[0].Name != "buy" {
			t.Errorf("%d tools", len(tools))
		}
	})
}

func TestCallsOfOneToolHaveABoundAndAQueueInOrder(t *testing.T) {
	s := newFakeServer("buy", "sell")
	s.silent["tools/call"] = true
	play(t, with(s, func(e *mcpjson.Server) { e.Concurrency = 2 }), func(w *world) {
		var calls []*outcome
		for range 2 + maxQueue {
			calls = append(calls, w.call("buy", func(c *capability.Call) { c.Arguments = fmt.Appendf(nil, `{"n":%d}`, len(calls)) }))
		}
		var full *kernel.Overloaded
		if o := w.call("buy"); !errors.As(unsent(t, o), &full) || full.Scope != "provider_calls" || full.Limit != maxQueue {
			t.Fatalf("%v", o.err)
		}
		if o := w.call("sell"); o.ended {
			t.Error("another tool has a bound of its own")
		}
		if n := len(s.heard("tools/call")); n != 3 {
			t.Fatalf("%d were sent", n)
		}
		w.cancel(calls[2]) // leaves the queue
		s.last().reply(s.heard("tools/call")[0], `{"content":[]}`)
		w.pass(0)
		sent := s.heard("tools/call")
		if len(sent) != 4 || !sent[3].has(`"arguments":{"n":3}`) || len(s.heard("notifications/cancelled")) != 0 {
			t.Errorf("the first of the queue goes next: %+v", sent[len(sent)-1])
		}
		w.pass(170 * time.Second) // whoever still waits has waited long enough
		for i, o := range calls[4:] {
			if !o.ended {
				t.Errorf("call %d waits", i+4)
			}
		}
	})
}

func TestTheRateOfAToolIsKept(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	play(t, with(s, func(e *mcpjson.Server) { e.Rate = 2 }), func(w *world) {
		for range 10 {
			w.call("buy")
		}
		for second, want := range []int{2, 4, 6, 8, 10, 10} {
			if n := len(s.heard("tools/call")); n != want {
				t.Errorf("after %d s: %d calls", second, n)
			}
			w.pass(time.Second)
		}
		if len(w.node("shop").Refused) != 0 {
			t.Errorf("%v", w.node("shop").Refused)
		}
	})
}

func TestOneAnswerThatIsTooLargeFailsItsCallAlone(t *testing.T) {
	s := newFakeServer("buy", "slow")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		a, b := w.call("buy"), w.call("slow")
		s.last().to.Failed(s.heard("tools/call")[0].id, &link.TooLargeError{Size: 9 << 20, Limit: 8 << 20})
		w.pass(0)
		var big *capability.TooLarge
		if !errors.As(a.err, &big) || big.Size != 9<<20 || big.Limit != 8<<20 || b.ended {
			t.Errorf("%+v %+v", a, b)
		}
		s.last().to.Failed(s.heard("tools/call")[1].id, fmt.Errorf("refused: %w", link.ErrUnsent))
		w.pass(0)
		if !errors.Is(unsent(t, b), capability.ErrDetached) {
			t.Errorf("%v", b.err)
		}
	})
}

func TestALinkThatTakesNothingRefusesTheCallAsUnsent(t *testing.T) {
	s := newFakeServer("buy")
	play(t, with(s), func(w *world) {
		w.discover()
		s.set(func() { s.last0().busy = &kernel.Overloaded{Scope: "stdin of this server"} })
		var full *kernel.Overloaded
		if o := w.call("buy"); !errors.As(unsent(t, o), &full) {
			t.Error(o.err)
		}
		s.set(func() { s.last0().busy = errors.Join(link.ErrUnsent, errCut) })
		if o := w.call("buy"); !errors.Is(unsent(t, o), capability.ErrDetached) {
			t.Error(o.err)
		}
	})
}
