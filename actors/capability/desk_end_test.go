package capability

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestEachEndFromAboveStopsTheCallDownToItsServer(t *testing.T) {
	token := sha256.Sum256([]byte("token"))
	for what, end := range map[string]func(w *world){
		"the turn is cancelled":   func(w *world) { w.signal(EndCalls{Reason: EndCancel}) },
		"the turn ends":           func(w *world) { w.signal(EndCalls{Reason: EndTurn}) },
		"the token is revoked":    func(w *world) { w.signal(EndCalls{Reason: EndToken, Token: token}) },
		"the caller cancels":      func(w *world) { w.signal(CancelRequest{Token: token, RequestID: "i7"}) },
		"the session's desk ends": func(w *world) { w.desk.Stop(nil) },
	} {
		for tool, want := range map[string]Code{"shop.read!": CancelledCall, "shop.buy": OutcomeUnknown} {
			run(t, DeskConfig{}, func(w *world) {
				s := w.attach(newSource("shop", Ready, tools(tool)))
				c := w.call(Request{Name: strings.TrimSuffix(tool, "!"), RequestID: "i7"})
				_, q := s.next(t)
				end(w)
				s.cancelled(t, q)
				if e := c.wait(); e.code() != want || e.after != 0 {
					t.Errorf("%s, %s: got %v after %v, want %s at once", what, tool, e.err, e.after, want)
				}
				last := w.trail.all()[len(w.trail.all())-1]
				if last.Event != EventExit || last.Outcome != string(want) {
					t.Errorf("%s, %s: the audit ends with %+v", what, tool, last)
				}
				w.answer(q, "late") // is dropped, its bytes are freed
			})
		}
	}
}

func TestAnEndTouchesNoOtherTokenAndNoOtherRequest(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		other := sha256.Sum256([]byte("other"))
		c := w.call(Request{Name: "shop.buy", RequestID: "i7"})
		_, q := s.next(t)
		w.signal(EndCalls{Reason: EndToken, Token: other})
		w.signal(CancelRequest{Token: other, RequestID: "i7"})
		w.signal(CancelRequest{Token: w.caller.Token, RequestID: "s7"})
		w.signal(CancelRequest{RequestID: "i7"}) // anonymous callers cannot
		if !c.open() {
			t.Fatal("the call was ended by somebody else's word")
		}
		w.answer(q, "ok")
		c.wait()
	})
}

func TestACallThatArrivesAfterItsTokenWasRevokedIsNotMade(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		w.signal(EndCalls{Reason: EndToken, Token: w.caller.Token})
		if e := w.call(Request{Name: "shop.buy"}).wait(); e.code() != Unknown {
			t.Errorf("got %v", e.err)
		}
		w.reachedNobody(s)
		who := w.caller
		who.Token = sha256.Sum256([]byte("successor"))
		c := w.callAs(who, Request{Name: "shop.buy"})
		_, q := s.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Error(e.err)
		}
	})
}

func TestACallThatWaitsForItsServerEndsAsNotSent(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		w.attach(newSource("shop", Connecting, nil))
		c := w.call(Request{Name: "shop.buy"})
		w.signal(EndCalls{Reason: EndCancel})
		if e := c.wait(); e.code() != CancelledCall {
			t.Errorf("got %v", e.err)
		}
	})
}

func TestAClosedRequestEndsAReadingCallAtOnceAndLeavesAWritingOneRunning(t *testing.T) {
	for _, tc := range []struct {
		what, tool  string
		endsOnClose bool
		runsOn      time.Duration
	}{
		{"reads only", "shop.read!", false, 0},
		{"writes", "shop.buy", false, 30 * time.Second},
		{"writes, and closing cancels in its protocol", "shop.buy", true, 0},
	} {
		run(t, DeskConfig{}, func(w *world) {
			s := w.attach(newSource("shop", Ready, tools(tc.tool)))
			c := w.call(Request{Name: strings.TrimSuffix(tc.tool, "!"), EndsOnClose: tc.endsOnClose})
			_, q := s.next(t)
			c.hang()
			if tc.runsOn > 0 {
				time.Sleep(tc.runsOn - time.Second)
				w.reachedNobody(s)
				time.Sleep(time.Second)
			}
			begun := time.Now()
			s.cancelled(t, q)
			if late := time.Since(begun); late != 0 {
				t.Errorf("%s: ran on for %v more than %v", tc.what, late, tc.runsOn)
			}
			synctest.Wait()
			last := w.trail.all()[len(w.trail.all())-1]
			if last.Event != EventExit {
				t.Errorf("%s: the audit ends with %+v", tc.what, last)
			}
		})
	}
}

func TestAnIdenticalCallJoinsAnOrphanOrGetsItsResult(t *testing.T) {
	request := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
	run(t, DeskConfig{}, func(w *world) { // while it runs
		s := w.attach(shop("shop.buy"))
		w.call(request).hang()
		_, q := s.next(t)
		time.Sleep(20 * time.Second)
		again := w.call(request)
		time.Sleep(40 * time.Second) // it is no orphan any more
		w.answer(q, "once")
		if e := again.wait(); !strings.Contains(string(e.result.Raw), "once") {
			t.Errorf("got %v", e)
		}
		w.reachedNobody(s)
	})
	run(t, DeskConfig{}, func(w *world) { // after it ended
		s := w.attach(shop("shop.buy"))
		w.call(request).hang()
		_, q := s.next(t)
		w.answer(q, "once")
		if e := w.call(request).wait(); !strings.Contains(string(e.result.Raw), "once") {
			t.Errorf("got %v", e)
		}
		w.reachedNobody(s)
		third := w.call(request) // the result was given away: this is a new call
		_, q = s.next(t)
		w.answer(q, "twice")
		third.wait()
	})
	run(t, DeskConfig{}, func(w *world) { // after the window
		s := w.attach(shop("shop.buy"))
		w.call(request).hang()
		_, q := s.next(t)
		w.answer(q, "once")
		time.Sleep(31 * time.Second)
		again := w.call(request)
		_, q = s.next(t)
		w.answer(q, "twice")
		again.wait()
	})
}

func TestOnlyTheSameTokenNameAndBytesJoin(t *testing.T) {
	for what, change := range map[string]func(who *Caller, r *Request){
		"another token":     func(who *Caller, _ *Request) { who.Token = sha256.Sum256([]byte("other")) },
		"another spelling":  func(_ *Caller, r *Request) { r.Arguments = []byte(`{ "n":1}`) },
		"another name":      func(_ *Caller, r *Request) { r.Name = "shop.shop.buy" },
		"a key of its own":  func(_ *Caller, r *Request) { r.Key = "k" },
		"an anonymous call": func(who *Caller, _ *Request) { who.Token = [32]byte{} },
	} {
		run(t, DeskConfig{}, func(w *world) {
			s := w.attach(shop("shop.buy"))
			r := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
			w.call(r).hang()
			_, first := s.next(t)
			who := w.caller
			change(&who, &r)
			c := w.callAs(who, r)
			_, second := s.next(t) // it was sent on its own
			w.answer(second, "own")
			if e := c.wait(); !strings.Contains(string(e.result.Raw), "own") {
				t.Errorf("%s: got %v", what, e)
			}
			w.answer(first, "orphan")
		})
	}
}

func TestARepeatThatIsFasterThanTheNewsOfItsFirstSocketJoins(t *testing.T) {
	r := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		first := w.call(r)
		_, q := s.next(t)
		again := w.call(r)
		time.Sleep(parkTime / 2)
		first.hang()
		w.answer(q, "once")
		if e := again.wait(); !strings.Contains(string(e.result.Raw), "once") {
			t.Errorf("got %s, %v", e.result.Raw, e.err)
		}
		w.reachedNobody(s)
	})
	run(t, DeskConfig{}, func(w *world) { // its first caller gets the result: this is another call
		s := w.attach(shop("shop.buy"))
		first := w.call(r)
		_, q := s.next(t)
		again := w.call(r)
		w.reachedNobody(s)
		w.answer(q, "first")
		first.wait()
		time.Sleep(parkTime)
		_, q = s.next(t)
		w.answer(q, "second")
		if e := again.wait(); !strings.Contains(string(e.result.Raw), "second") || e.after != parkTime {
			t.Errorf("got %s, %v after %v", e.result.Raw, e.err, e.after)
		}
	})
	run(t, DeskConfig{}, func(w *world) { // its result comes back from a socket that had closed
		s := w.attach(shop("shop.buy"))
		first := w.call(r)
		_, q := s.next(t)
		again := w.call(r)
		w.answer(q, "once")
		e := first.wait()
		w.publish(s, Detached, s.Tools().List) // which takes no result back
		repeated := r
		repeated.Token, repeated.sha = w.caller.Token, r.digest()
		(&Delivery{Raw: e.result.Raw, who: w.caller, call: repeated}).Missed()
		if e := again.wait(); !strings.Contains(string(e.result.Raw), "once") || e.after != 0 {
			t.Errorf("got %s, %v after %v", e.result.Raw, e.err, e.after)
		}
		w.reachedNobody(s)
	})
	run(t, DeskConfig{}, func(w *world) { // the turn ends: both do, once
		s := w.attach(shop("shop.buy"))
		first, again := w.call(r), w.call(r)
		s.next(t)
		w.signal(EndCalls{Reason: EndTurn})
		if a, b := first.wait(), again.wait(); a.code() != OutcomeUnknown || b.code() != CancelledCall {
			t.Errorf("got %v and %v", a.err, b.err)
		}
		if n := len(w.trail.all()); n != 3 {
			t.Errorf("%d records: %+v", n, w.trail.all())
		}
	})
}

func TestTwoPresentCallersNeverJoin(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		r := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
		a, b := w.call(r), w.call(r)
		_, first := s.next(t)
		_, second := s.next(t) // both are there, and both are sent
		w.answer(first, "first")
		w.answer(second, "second")
		if x, y := a.wait(), b.wait(); string(x.result.Raw) == string(y.result.Raw) {
			t.Errorf("both got %s", x.result.Raw)
		}
	})
}

func TestAResultThatItsCallerMissedByAMomentIsKeptForTheRepeat(t *testing.T) {
	request := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`)}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		p, err := w.desk.Ask(Request{Name: request.Name, Arguments: request.Arguments, Token: w.caller.Token})
		if err != nil {
			t.Fatal(err)
		}
		_, q := s.next(t)
		w.trail.on = func(e Entry) { // in the turn that delivers, before it does
			if e.Event == EventExit {
				p.Drop()
			}
		}
		w.answer(q, "once")
		if e := w.call(request).wait(); !strings.Contains(string(e.result.Raw), "once") {
			t.Errorf("got %s, %v", e.result.Raw, e.err)
		}
		w.reachedNobody(s)
	})
}

func TestAnOrphanEndsWithItsCallersCancelOrTurn(t *testing.T) {
	for what, end := range map[string]func(w *world){
		"cancel": func(w *world) { w.signal(CancelRequest{Token: w.caller.Token, RequestID: "i1"}) },
		"turn":   func(w *world) { w.signal(EndCalls{Reason: EndTurn}) },
	} {
		run(t, DeskConfig{}, func(w *world) {
			s := w.attach(shop("shop.buy"))
			w.call(Request{Name: "shop.buy", RequestID: "i1"}).hang()
			_, q := s.next(t)
			synctest.Wait()
			begun := time.Now()
			end(w)
			s.cancelled(t, q)
			if took := time.Since(begun); took != 0 {
				t.Errorf("%s: after %v", what, took)
			}
		})
	}
}

func TestAKeyRunsItsCallOnce(t *testing.T) {
	request := Request{Name: "shop.buy", Arguments: []byte(`{"n":1}`), Key: "order-7"}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy", "shop.other"))
		a, b := w.call(request), w.call(request)
		_, q := s.next(t)
		w.reachedNobody(s)
		other := request
		other.Arguments = []byte(`{"n":2}`)
		if e := w.call(other).wait(); e.code() != BadArguments {
			t.Errorf("other arguments, while it runs: %v", e.err)
		}
		w.answer(q, "once")
		for _, c := range []*pendingCall{a, b, w.call(request)} {
			if e := c.wait(); !strings.Contains(string(e.result.Raw), "once") {
				t.Errorf("got %v", e)
			}
		}
		if e := w.call(other).wait(); e.code() != BadArguments {
			t.Errorf("other arguments, after it ended: %v", e.err)
		}
		w.reachedNobody(s)
		elsewhere := request
		elsewhere.Name = "shop.other" // a key belongs to one capability
		c := w.call(elsewhere)
		_, q = s.next(t)
		w.answer(q, "other")
		c.wait()
		time.Sleep(11 * time.Minute)
		if e := w.call(request).wait(); e.code() != OutcomeUnknown {
			t.Errorf("when the result is no longer kept: %v", e.err)
		}
		w.reachedNobody(s)
	})
}

func TestAKeyWhoseCallWasNotMadeCanBeUsedAgain(t *testing.T) {
	request := Request{Name: "shop.buy", Key: "k"}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		bad := request
		bad.Arguments = []byte(`{"n":"x"}`)
		if e := w.call(bad).wait(); e.code() != BadArguments {
			t.Fatal(e.err)
		}
		c := w.call(request)
		_, q := s.next(t)
		q.Fail(&NotSent{ErrDetached})
		if e := c.wait(); e.code() != NotAttached {
			t.Fatal(e.err)
		}
		synctest.Wait()
		c = w.call(request)
		_, q = s.next(t)
		w.answer(q, "made")
		if e := c.wait(); e.err != nil {
			t.Error(e.err)
		}
	})
}

func TestAKeyWhoseOutcomeIsUnknownIsNotRepeated(t *testing.T) {
	request := Request{Name: "shop.buy", Key: "k"}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		c := w.call(request)
		_, q := s.next(t)
		q.Fail(ErrTimeout)
		if e := c.wait(); e.code() != OutcomeUnknown {
			t.Fatal(e.err)
		}
		if e := w.call(request).wait(); e.code() != OutcomeUnknown {
			t.Error(e.err)
		}
		w.reachedNobody(s)
	})
	run(t, DeskConfig{}, func(w *world) { // and a crash of the desk forgets no key
		s := w.attach(shop("shop.buy"))
		c := w.call(request)
		s.next(t)
		if err := w.desk.Signal(Attach{nil}); err != nil {
			t.Fatal(err)
		}
		c.wait()
		time.Sleep(time.Minute)
		if e := w.call(request).wait(); e.code() != OutcomeUnknown {
			t.Error(e.err)
		}
		other := request
		other.Arguments = []byte(`{"n":2}`)
		if e := w.call(other).wait(); e.code() != BadArguments && e.code() != OutcomeUnknown {
			t.Error(e.err)
		}
	})
}

func TestAnonymousCallersJoinByKeyAlone(t *testing.T) {
	request := Request{Name: "shop.buy", Key: "k"}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		who := w.caller
		who.Token = [32]byte{}
		w.callAs(who, request).hang()
		_, q := s.next(t)
		again := w.callAs(who, request)
		time.Sleep(time.Minute)
		w.answer(q, "once")
		if e := again.wait(); !strings.Contains(string(e.result.Raw), "once") {
			t.Errorf("got %v", e)
		}
		w.reachedNobody(s)
	})
}

func TestOneOfTwoCallersOfAKeyMayLeave(t *testing.T) {
	request := Request{Name: "shop.buy", Key: "k", RequestID: "i1"}
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		a := w.call(request)
		_, q := s.next(t)
		second := request
		second.RequestID = "i2"
		b := w.call(second)
		w.signal(CancelRequest{Token: w.caller.Token, RequestID: "i1"})
		if e := a.wait(); e.code() != OutcomeUnknown {
			t.Errorf("got %v", e.err)
		}
		w.answer(q, "ok")
		if e := b.wait(); e.err != nil {
			t.Error(e.err)
		}
	})
}

func TestKeysAndKeptResultsAreBounded(t *testing.T) {
	run(t, DeskConfig{Limits: DeskLimits{Keys: 2, KeptBytes: 64}}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		idle := int64(0)
		for i, key := range []string{"", "a", "b", "c"} {
			c := w.call(Request{Name: "shop.buy", Key: key})
			_, q := s.next(t)
			w.answer(q, strings.Repeat("x", i*5))
			c.wait()
			if key == "" {
				idle = w.k.Account().Used()
			}
		}
		if kept := w.k.Account().Used() - idle - 2*keyBytes; kept == 0 || kept > 64 {
			t.Errorf("%d bytes are kept", kept)
		}
		if e := w.call(Request{Name: "shop.buy", Key: "b"}).wait(); e.code() != OutcomeUnknown && e.err != nil {
			t.Errorf("a key whose result was let go: %v", e.err)
		}
	})
}

// TestAResultThatIsTooLargeIsRefusedAndCounted: a reading call is told so; one that was sent and may have had an effect ends unknown.
func TestAResultThatIsTooLargeIsRefusedAndCounted(t *testing.T) {
	run(t, DeskConfig{Limits: DeskLimits{ResultBytes: 100}}, func(w *world) {
		s := w.attach(shop("shop.buy", "shop.look!"))
		w.publish(s, Ready, s.Tools().List)
		largest := strings.Repeat("x", 100-len(`{"content":[{"type":"text","text":""}]}`))
		for _, row := range []struct {
			name, key, text string
			code            Code
		}{
			{"shop.look", "", largest, ""},
			{"shop.look", "", largest + "x", TooMuch},
			{"shop.buy", "", largest, ""},
			{"shop.buy", "k", largest + "x", OutcomeUnknown},
		} {
			c := w.call(Request{Name: row.name, Key: row.key})
			_, q := s.next(t)
			w.answer(q, row.text)
			e := c.wait()
			if e.code() != row.code || (row.code == "") != (e.err == nil) {
				t.Errorf("%s with %d bytes: %v", row.name, len(row.text), e.err)
			}
			if row.code != "" && !strings.Contains(e.err.Error(), "result_bytes allows 100") {
				t.Errorf("%s: the text does not say why: %v", row.name, e.err)
			}
			last := w.trail.all()[len(w.trail.all())-1]
			if row.code != "" && (last.Event != EventExit || last.Outcome != string(row.code) || !last.IsError) {
				t.Errorf("%s: the audit has %+v", row.name, last)
			}
		}
		if e := w.call(Request{Name: "shop.buy", Key: "k"}).wait(); e.code() != OutcomeUnknown || !strings.Contains(e.err.Error(), "result_bytes") {
			t.Errorf("the key again: %v", e.err)
		}
		w.reachedNobody(s)
		if n := w.refused()["result_bytes"]; n != 2 {
			t.Errorf("%d were counted", n)
		}
	})
}

// TestASessionsServersAreBounded: a client that declares ever new names is not remembered for ever.
func TestASessionsServersAreBounded(t *testing.T) {
	run(t, DeskConfig{Grants: NewGrants([]Grant{{Name: "*", Tools: []string{"*"}}}), Limits: DeskLimits{Servers: 3}}, func(w *world) {
		w.signal(Declared{Names: []string{"a", "b", "b", "a", "c", "d", "e"}})
		s := w.attach(newSource("f", Ready, tools("f.x")))
		if e := w.call(Request{Name: "f.x"}).wait(); e.code() != Unknown {
			t.Errorf("a server beyond the bound: %v", e.err)
		}
		w.reachedNobody(s)
		a := w.attach(newSource("a", Ready, tools("a.x")))
		c := w.call(Request{Name: "a.x"})
		_, q := a.next(t)
		w.answer(q, "ok")
		if e := c.wait(); e.err != nil {
			t.Error(e.err)
		}
		if n := w.refused()["servers"]; n != 3 {
			t.Errorf("%d were counted", n)
		}
	})
}

// refused is what the desk has counted.
func (w *world) refused() map[string]int64 {
	w.t.Helper()
	for _, n := range w.k.Tree().Children {
		if n.Name == "desk" {
			return n.Refused
		}
	}
	w.t.Fatal("there is no desk")
	return nil
}

// TestWhatWasNeverSentIsNoAnswerOfTheServer: also when the way to it says so with an error of JSON-RPC.
func TestWhatWasNeverSentIsNoAnswerOfTheServer(t *testing.T) {
	run(t, DeskConfig{}, func(w *world) {
		s := w.attach(shop("shop.buy"))
		c := w.call(Request{Name: "shop.buy"})
		_, q := s.next(t)
		q.Fail(&NotSent{fmt.Errorf("%w: %w", ErrDetached, &jsonrpc.Error{Code: -33001, Message: "not there"})})
		if e := c.wait(); e.code() != NotAttached {
			t.Errorf("got %s, %v", e.result.Raw, e.err)
		}
	})
}
