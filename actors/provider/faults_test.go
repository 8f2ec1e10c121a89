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
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// unsent is the cause for which a call was never sent.
func unsent(t *testing.T, o *outcome) error {
	t.Helper()
	var n *capability.NotSent
	if !o.ended || !errors.As(o.err, &n) {
		t.Fatalf("%+v, want one that was not sent", o)
	}
	return n.Cause
}

func TestACallWakesAServerOnceAlsoWhileABackoffIsPending(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	s.refuse = errCut
	play(t, with(s), func(w *world) {
		if o := w.call("buy"); !errors.Is(unsent(t, o), capability.ErrDetached) || s.dials() != 1 {
			t.Fatalf("%v after %d attempts", o.err, s.dials())
		}
		if w.state() != capability.Failed || !strings.Contains(w.tools().Reason, "cut") {
			t.Errorf("%v %q", w.state(), w.tools().Reason)
		}
		s.set(func() { s.refuse = nil })
		if o := w.call("buy"); o.err != nil || s.dials() != 2 {
			t.Fatalf("%v after %d attempts", o.err, s.dials())
		}
	})
}

func TestAServerThatDiedIsStartedAgainWithABackoffThatGrows(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	cfg := with(s)
	cfg.Set.IdleTTL = 2 * time.Hour
	play(t, cfg, func(w *world) {
		w.call("buy")
		s.set(func() { s.refuse = errCut })
		s.last().die(errCut)
		w.pass(0)
		if w.state() != capability.Idle || w.tools().List == nil {
			t.Errorf("%v, and what it offered is listed: %v", w.state(), w.tools().List != nil)
		}
		w.pass(499 * time.Millisecond)
		if s.dials() != 1 {
			t.Error("it was started again at once")
		}
		w.pass(time.Millisecond)
		if s.dials() != 2 {
			t.Error("it was not started again")
		}
		w.pass(time.Second) // half of the second backoff's bound
		if s.dials() != 3 {
			t.Errorf("%d attempts", s.dials())
		}
		w.pass(2*time.Second - time.Millisecond)
		if s.dials() != 3 || w.state() != capability.Failed {
			t.Errorf("%d attempts, %v", s.dials(), w.state())
		}
		s.set(func() { s.refuse = nil })
		w.pass(time.Millisecond)
		if s.dials() != 4 || w.state() != capability.Ready {
			t.Errorf("%d attempts, %v", s.dials(), w.state())
		}
		if n := w.node("shop"); n.Attrs["restarts"] != 1 || n.Attrs["breaker"] != "closed" {
			t.Errorf("%v", n.Attrs)
		}
	})
}

func TestNobodyRestartsAServerThatNobodyHasUsed(t *testing.T) {
	s := newFakeServer("buy")
	s.refuse = errCut
	cfg := with(s)
	cfg.Set.IdleTTL = 10 * time.Minute
	play(t, cfg, func(w *world) {
		w.call("buy")
		w.pass(24 * time.Hour)
		if n := s.dials(); n < 4 || n > 20 {
			t.Errorf("%d attempts in a day", n)
		}
		before := s.dials()
		w.pass(24 * time.Hour)
		if s.dials() != before {
			t.Errorf("%d more in the next", s.dials()-before)
		}
	})
}

func TestThreeTimeoutsOpenTheBreakerAndItsProbeHasAConnectionOfItsOwn(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		for range 3 {
			o := w.call("buy")
			w.pass(time.Minute)
			if !errors.Is(o.err, capability.ErrTimeout) {
				t.Fatalf("%+v", o)
			}
		}
		if s.dials() != 1 || s.last().ctx.Err() != nil {
			t.Error("a timeout has ended the connection")
		}
		var open *capability.BreakerError
		if o := w.call("buy"); !errors.As(unsent(t, o), &open) || open.RetryAfter != time.Minute {
			t.Fatalf("%v", o.err)
		}
		if w.state() != capability.Failed {
			t.Error(w.state())
		}
		w.pass(time.Minute)
		s.set(func() { s.silent["initialize"] = true })
		probe := w.call("buy")
		if s.dials() != 2 || s.peak() != 1 {
			t.Errorf("%d connections, %d at a time", s.dials(), s.peak())
		}
		if o := w.call("buy"); !errors.As(unsent(t, o), &open) || open.RetryAfter != time.Second {
			t.Errorf("beside the probe: %v", o.err)
		}
		w.pass(time.Minute)
		if !errors.Is(unsent(t, probe), capability.ErrDetached) {
			t.Errorf("the probe: %v", probe.err)
		}
		if o := w.call("buy"); !errors.As(unsent(t, o), &open) || open.RetryAfter != time.Minute {
			t.Errorf("after a failed probe: %v", o.err)
		}
		s.set(func() { s.silent = map[string]bool{}; s.answer = ok })
		w.pass(time.Minute)
		if o := w.call("buy"); o.err != nil || w.state() != capability.Ready {
			t.Errorf("%v %v", o.err, w.state())
		}
	})
}

func TestAProbeWaitsForTheNeighboursOnTheOldConnection(t *testing.T) {
	s := newFakeServer("slow", "buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		slow := w.call("slow")
		request := s.heard("tools/call")[0]
		progress := func() {
			s.last().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}`)
		}
		for range 3 {
			w.call("buy")
			w.pass(30 * time.Second)
			progress()
			w.pass(30 * time.Second)
			progress()
		}
		for range 3 {
			w.pass(30 * time.Second)
			progress()
		}
		w.pass(0)
		var open *capability.BreakerError
		if o := w.call("buy"); !errors.As(unsent(t, o), &open) || slow.ended {
			t.Fatalf("%v, its neighbour has ended: %v", o.err, slow.ended)
		}
		s.last().reply(request, `{"content":[]}`)
		w.pass(0)
		s.set(func() { s.answer = ok })
		if o := w.call("buy"); slow.err != nil || o.err != nil || s.dials() != 1 {
			t.Errorf("a success of a neighbour closes it: %v, %v", slow.err, o.err)
		}
	})
}

func TestErrorsThatServersAnswerWithAreNoFaults(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = func(l *fakeLink, m said) bool {
		if m.method != "tools/call" {
			return false
		}
		l.say(string(jsonrpc.AppendRawError(nil, m.id, []byte(`{"code":-32042,"message":"no","data":{"big":12345678901234567890}}`))))
		return true
	}
	play(t, with(s), func(w *world) {
		for range 10 {
			o := w.call("buy")
			var fault *jsonrpc.Error
			if !errors.As(o.err, &fault) || fault.Code != -32042 || string(fault.RawData) != `{"big":12345678901234567890}` {
				t.Fatalf("%v", o.err)
			}
		}
		if got := w.node("shop").Attrs["breaker"]; got != "closed" {
			t.Error(got)
		}
	})
}

func TestAVariableThatIsNotSetStopsThatServerAloneAndIsNoFault(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = ok
	set := false
	cfg := with(s, func(e *mcpjson.Server) { e.Headers = map[string]string{"Authorization": "Bearer ${env:SHOP_TOKEN}"} })
	cfg.Env = func(name string) (string, bool) { return "a-token-of-somebody", set && name == "SHOP_TOKEN" }
	play(t, cfg, func(w *world) {
		for range 5 {
			o := w.call("buy")
			if cause := unsent(t, o); !errors.Is(cause, capability.ErrDetached) || !strings.Contains(cause.Error(), "SHOP_TOKEN") {
				t.Fatal(cause)
			}
		}
		if s.dials() != 0 || w.node("shop").Attrs["breaker"] != "closed" || w.state() != capability.Failed {
			t.Errorf("%d attempts, %v %q", s.dials(), w.node("shop").Attrs, w.tools().Reason)
		}
		set = true
		if o := w.call("buy"); o.err != nil {
			t.Error(o.err)
		}
	})
}

func TestRefusedCredentialsAreNotTriedAgainUntilTheyChange(t *testing.T) {
	s := newFakeServer("buy")
	s.refuse = &link.AuthError{Status: 401, Scope: "shop.read"}
	token := "the first token"
	cfg := with(s, func(e *mcpjson.Server) { e.Headers = map[string]string{"Authorization": "Bearer ${env:SHOP_TOKEN}"} })
	cfg.Env = func(string) (string, bool) { return token, true }
	play(t, cfg, func(w *world) {
		for range 5 {
			if o := w.call("buy"); !errors.Is(unsent(t, o), capability.ErrNeedsLogin) {
				t.Fatal(o.err)
			}
			w.pass(time.Hour)
		}
		w.discover()
		if s.dials() != 1 || w.state() != capability.LoggedOut || w.node("shop").Attrs["breaker"] != "closed" {
			t.Errorf("%d attempts, %v, %v", s.dials(), w.state(), w.node("shop").Attrs)
		}
		token = "the second token"
		s.set(func() { s.refuse, s.answer = nil, ok })
		if o := w.call("buy"); o.err != nil || w.state() != capability.Ready {
			t.Errorf("%v, %v", o.err, w.state())
		}
	})
}

func TestA401OfOneCallEndsNoNeighbourAndLetsNoOtherGo(t *testing.T) {
	s := newFakeServer("buy", "slow")
	s.answer = func(l *fakeLink, m said) bool {
		if m.tool() == "buy" {
			l.to.Failed(m.id, &link.AuthError{Status: 403})
		}
		return m.method == "tools/call"
	}
	play(t, with(s), func(w *world) {
		slow := w.call("slow")
		if o := w.call("buy"); !errors.Is(unsent(t, o), capability.ErrNeedsLogin) {
			t.Fatal(o.err)
		}
		if o := w.call("slow"); !errors.Is(unsent(t, o), capability.ErrNeedsLogin) || len(s.heard("tools/call")) != 2 {
			t.Fatal(o.err)
		}
		if slow.ended {
			t.Fatal("its neighbour has ended")
		}
		s.last().reply(s.heard("tools/call")[0], `{"content":[]}`)
		w.pass(0)
		if slow.err != nil || s.last().ctx.Err() == nil || w.state() != capability.LoggedOut {
			t.Errorf("%v, %v", slow.err, w.state())
		}
	})
}

func TestALostSessionIsBegunAnewOnceForAllAndOnlyWhatWasNotAcceptedIsSentAgain(t *testing.T) {
	s := newFakeServer("buy", "slow")
	lost := true
	s.answer = func(l *fakeLink, m said) bool {
		l.s.mu.Lock()
		fails := lost
		l.s.mu.Unlock()
		switch {
		case m.tool() == "slow":
			return true
		case m.method == "tools/call" && fails:
			return true
		}
		return ok(l, m)
	}
	play(t, with(s), func(w *world) {
		slow := w.call("slow")
		var calls []*outcome
		for range 5 {
			calls = append(calls, w.call("buy"))
		}
		for _, m := range s.heard("tools/call")[1:4] {
			s.last().to.Failed(m.id, link.ErrSessionLost)
		}
		w.pass(0)
		s.set(func() { lost = false })
		for _, m := range s.heard("tools/call")[4:6] { // these heard of it when the new session had begun
			s.last().to.Failed(m.id, link.ErrSessionLost)
		}
		w.pass(0)
		if n := len(s.heard("initialize")); n != 2 {
			t.Errorf("%d handshakes", n)
		}
		for _, m := range s.heard("tools/call")[6:9] { // the new session is lost, too
			s.last().to.Failed(m.id, link.ErrSessionLost)
		}
		w.pass(0)
		for i, o := range calls {
			switch {
			case i < 3 && !errors.Is(unsent(t, o), link.ErrSessionLost):
				t.Errorf("call %d: %v", i, o.err)
			case i >= 3 && (!o.ended || o.err != nil):
				t.Errorf("call %d: %+v", i, o)
			}
		}
		if n := len(s.heard("tools/call")); n != 11 || slow.ended || s.dials() != 1 {
			t.Errorf("%d calls were sent, the accepted one has ended: %v, %d connections", n, slow.ended, s.dials())
		}
	})
}

func TestADeathFailsWhatIsInFlightAtOnceWithTheEndOfStderr(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	cfg := with(s, func(e *mcpjson.Server) { e.Headers = map[string]string{"X-Key": "tr0ub4dor"} })
	play(t, cfg, func(w *world) {
		a, b := w.call("buy"), w.call("buy")
		s.last().to.(link.Mourner).Down(&link.ExitError{How: "exited with code 3", Stderr: "panic: tr0ub4dor is wrong, password=hunter2"})
		w.pass(0)
		for _, o := range []*outcome{a, b} {
			var n *capability.NotSent
			if !o.ended || errors.As(o.err, &n) || !errors.Is(o.err, capability.ErrDetached) {
				t.Fatalf("%+v", o)
			}
			var exit *link.ExitError
			if text := o.err.Error(); !errors.As(o.err, &exit) || !strings.Contains(text, "exited with code 3") || !strings.Contains(text, "panic: ") || strings.Contains(text, "tr0ub4dor") || strings.Contains(text, "hunter2") {
				t.Error(text)
			}
		}
		if s.last().ctx.Err() == nil || w.state() == capability.Ready {
			t.Error("it counts as connected")
		}
	})
}

func TestAStartThatFailsClosesItsConnection(t *testing.T) {
	for name, c := range map[string]struct {
		method, answer string
		fault          bool
	}{
		"an error of initialize":  {"initialize", `{"error":{"code":-32603,"message":"no"}}`, false},
		"a version nobody speaks": {"initialize", `{"result":{"protocolVersion":"1999-01-01"}}`, false},
		"no object":               {"initialize", `{"result":[]}`, false},
		"an error of tools/list":  {"tools/list", `{"error":{"code":-32603,"message":"no"}}`, false},
		"a list that is none":     {"tools/list", `{"result":{"tools":{}}}`, false},
		"no answer of initialize": {"initialize", "", true},
		"no answer to tools/list": {"tools/list", "", false}, // a server that answers initialize has a transport that works; its backoff grows
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer("buy")
			s.answer = func(l *fakeLink, m said) bool {
				if m.method == c.method && c.answer != "" {
					l.say(`{"jsonrpc":"2.0","id":` + string(m.id.Raw()) + "," + strings.TrimPrefix(c.answer, "{"))
				}
				return m.method == c.method
			}
			play(t, with(s), func(w *world) {
				o := w.call("buy")
				w.pass(time.Minute)
				if cause := unsent(t, o); !errors.Is(cause, capability.ErrDetached) || !strings.Contains(cause.Error(), c.method) {
					t.Error(cause)
				}
				if s.first().ctx.Err() == nil {
					t.Error("its connection is open")
				}
				for range 2 {
					w.call("buy")
					if now := w.tools(); now.State == capability.Ready || !strings.Contains(now.Reason, c.method) {
						t.Errorf("while it is tried again, why it failed is not told: %v %q", now.State, now.Reason)
					}
					w.pass(time.Minute)
				}
				state := w.node("shop").Attrs["breaker"]
				if c.fault == (state == "closed") {
					t.Errorf("the breaker is %v", state)
				}
				if used := w.node("shop").Account.Used; used != 0 && s.running() == 0 {
					t.Errorf("%d bytes are still charged", used)
				}
			})
		})
	}
}

func TestFaultsAreThoseOfATransport(t *testing.T) {
	for err, want := range map[error]bool{
		errCut:                            true,
		&link.ExitError{How: "exited"}:    true,
		&link.StatusError{Status: 502}:    true,
		&jsonrpc.Error{Code: -1}:          false,
		&link.AuthError{Status: 401}:      false,
		&link.TooLargeError{}:             false,
		fmt.Errorf("x: %w", errHandshake): false,
		overloaded(1, 1):                  false,
	} {
		if got := isFault(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
	if isFault(nil) {
		t.Error("no error is one")
	}
}

func TestWhatFailsTogetherIsOneFault(t *testing.T) {
	s := newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		w.discover()
		for range 3 {
			for range 5 {
				w.call("buy")
			}
			calls := s.heard("tools/call")
			if w.node("shop").Attrs["breaker"] != "closed" {
				t.Fatalf("it opened after %d calls, of which five at a time have failed", len(calls)-5)
			}
			for _, m := range calls[len(calls)-5:] {
				s.last().to.Failed(m.id, errCut)
			}
			w.pass(0)
		}
		if w.node("shop").Attrs["breaker"] != "open" {
			t.Error("it did not open after the third time")
		}
	})
	s = newFakeServer("buy")
	s.silent["tools/call"] = true
	play(t, with(s), func(w *world) {
		for range 5 {
			w.call("buy")
		}
		for _, m := range s.heard("tools/call")[:4] { // as a link ends that tells each of its requests first
			s.last().to.Failed(m.id, errCut)
		}
		s.last().die(errCut)
		w.pass(0)
		if got := w.node("shop").Attrs["breaker"]; got != "closed" {
			t.Errorf("one death of a connection: %v", got)
		}
		s.set(func() { s.answer = ok })
		if o := w.call("buy"); o.err != nil {
			t.Error(o.err)
		}
	})
}

func TestAttemptsThatNobodyWaitedForAreNoReasonToRefuseACall(t *testing.T) {
	s := newFakeServer("buy")
	s.refuse = errCut
	cfg := with(s)
	cfg.Set.IdleTTL = time.Hour
	play(t, cfg, func(w *world) {
		w.discover()
		w.pass(10 * time.Minute)
		if n := s.dials(); n < 6 {
			t.Fatalf("%d attempts", n)
		}
		s.set(func() { s.refuse, s.answer = nil, ok })
		if o := w.call("buy"); o.err != nil {
			t.Error(o.err)
		}
	})
}
