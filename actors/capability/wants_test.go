package capability

import (
	"strings"
	"testing"
	"time"
)

func TestAServerIsToldWhetherItIsSearchedOrCalledAndACallWaitsForItsOwnAnswer(t *testing.T) {
	late := newServer("late", Idle, nil)
	runWith(t, DeskConfig{}, []*fakeServer{late}, func(w *world) {
		search := w.search(Query{})
		searched, want := late.wanted(t)
		if want != Searched {
			t.Errorf("a search wants %v", want)
		}
		plain := w.call(Request{Name: "echo"})
		guessed, want := late.wanted(t)
		if want != Guessed {
			t.Errorf("a plain name wants %v", want)
		}
		call := w.call(Request{Name: "late.echo"})
		meant, want := late.wanted(t)
		if want != Meant {
			t.Errorf("a qualified name wants %v", want)
		}
		late.fails("it did not start")
		found(searched)
		if f := <-search; f.after != 0 || !strings.Contains(f.text, "it did not start") {
			t.Errorf("after %v: %s", f.after, f.text)
		}
		found(guessed)
		other := w.call(Request{Name: "late.other"})
		if e := plain.wait(); e.code() != Unknown {
			t.Errorf("%+v", e)
		}
		late.lists("echo")
		found(meant)
		_, q := late.next(t)
		w.answer(q, "ok")
		if e := other.wait(); e.code() != Unknown {
			t.Errorf("it waits for the question that is open: %+v", e)
		}
		if n := late.discovers.Load(); n != 3 {
			t.Errorf("%d questions", n)
		}
		if e := call.wait(); e.err != nil {
			t.Errorf("what was answered to a search ended a call: %v", e.err)
		}
	})
}

func TestAServerThatHasFailedBeforeHoldsUpASearchForAMoment(t *testing.T) {
	hangs, well := newServer("hangs", Failed, nil), newServer("well", Ready, tools("go"))
	hangs.fails("no answer")
	runWith(t, DeskConfig{}, []*fakeServer{hangs, well}, func(w *world) {
		for _, wait := range []time.Duration{RetryTimeout, 0} {
			if f := <-w.search(Query{}); f.after != wait || !strings.Contains(f.text, "hangs failed: no answer") || !strings.Contains(f.text, `"name":"go"`) {
				t.Errorf("after %v, want %v: %s", f.after, wait, f.text)
			}
		}
		hangs.fails("no answer again") // the next attempt at it has failed, too, and took its time
		if f := <-w.search(Query{}); f.after != 0 {
			t.Errorf("a search waited once more: %v", f.after)
		}
		if e := w.call(Request{Name: "nope"}).wait(); e.after != 0 || e.code() != Unknown {
			t.Errorf("a name that it may have, after %v: %v", e.after, e.err)
		}
		if e := w.call(Request{Name: "hangs.x"}).wait(); e.after != SettleTimeout || e.code() != NotAttached {
			t.Errorf("its own name, after %v: %v", e.after, e.err)
		}
		hangs.lists("come")
		for range 3 {
			found(hangs.asked(t))
		}
		if f := <-w.search(Query{}); f.after != 0 || !strings.Contains(f.text, `"name":"come"`) {
			t.Errorf("it is back: after %v %s", f.after, f.text)
		}
		hangs.become(Toolset{State: Failed, Reason: "it died"}) // and with it a list that was too large to be kept
		if f := <-w.search(Query{}); f.after != RetryTimeout {
			t.Errorf("it has been back since: after %v %s", f.after, f.text)
		}
	})
}

func TestASearchWaitsForAServerThatComesBackAtOnce(t *testing.T) {
	late := newServer("late", Failed, nil)
	late.fails("exited with code 7")
	runWith(t, DeskConfig{}, []*fakeServer{late}, func(w *world) {
		for range 3 { // it fails at once, which tells nothing about the next time
			search := w.search(Query{})
			q := late.asked(t)
			late.become(Toolset{State: Connecting, Reason: "exited with code 7"})
			time.Sleep(time.Second)
			late.fails("exited with code 7")
			found(q)
			if f := <-search; f.after != time.Second || !strings.Contains(f.text, "late failed: exited with code 7") {
				t.Errorf("after %v %s", f.after, f.text)
			}
		}
		search := w.search(Query{})
		q := late.asked(t)
		time.Sleep(time.Second)
		late.lists("come")
		found(q)
		if f := <-search; f.after != time.Second || !strings.Contains(f.text, `"name":"come"`) {
			t.Errorf("it is back: after %v %s", f.after, f.text)
		}
	})
}

func TestAPlainNameWaitsAMomentForAServerThatHasFailedBefore(t *testing.T) {
	late := newServer("late", Failed, nil)
	late.fails("no answer")
	runWith(t, DeskConfig{}, []*fakeServer{late}, func(w *world) {
		for _, wait := range []time.Duration{RetryTimeout, 0} {
			if e := w.call(Request{Name: "echo"}).wait(); e.after != wait || e.code() != Unknown {
				t.Errorf("after %v, want %v: %v", e.after, wait, e.err)
			}
		}
	})
}
