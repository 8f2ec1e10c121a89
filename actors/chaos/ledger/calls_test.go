package ledger

import (
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// A history of one call, told as its parties would, and the promise that it breaks; none for one that is as it should be.
func TestAHistoryThatBreaksAPromiseNamesIt(t *testing.T) {
	arguments := []byte(`{"n":1}`)
	call := Call{Number: 1, Session: 7, Sum: Sum(arguments), Place: "sess-1"}
	reading := call
	reading.ReadOnly = true
	signed := func(s Signature) *Signature { return &s }
	for _, test := range []struct {
		name    string
		history func(*Calls)
		breaks  invariant.Name
	}{
		{"a call is executed and answered", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Result, Signed: signed(l.Execute(1, 7, arguments))})
		}, ""},
		{"a call is executed by another session's client", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 8, arguments)
		}, invariant.OwnClient},
		{"a call is executed twice", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.Execute(1, 7, arguments)
		}, invariant.ExecutedOnce},
		{"a call is executed again after its answer", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Result, Signed: signed(l.Execute(1, 7, arguments))})
			l.Execute(1, 7, arguments)
		}, invariant.ExecutedOnce},
		{"something is executed that nobody asked for", func(l *Calls) { l.Execute(1, 7, arguments) }, invariant.ExecutedOnce},
		{"a call comes with other arguments", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, []byte(`{"n": 1}`))
		}, invariant.OutcomeTrue},
		{"a call is answered twice", func(l *Calls) {
			l.Begin(call)
			s := l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Result, Signed: &s})
			l.End(1, Answer{End: Result, Signed: &s})
		}, invariant.AnsweredOnce},
		{"an answer comes to no call", func(l *Calls) { l.End(1, Answer{End: Unavailable}) }, invariant.AnsweredOnce},
		{"a call is never answered", func(l *Calls) {
			l.Begin(call)
			l.Close()
		}, invariant.AnsweredOnce},
		{"a connection ends instead of an answer", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Lost})
		}, invariant.AnsweredOnce},
		{"a connection ends before the request was written whole", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Lost, Late: true})
		}, ""},
		{"the answer takes longer than the pod may", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Unanswered})
		}, invariant.AnsweredOnce},
		{"a result of another call", func(l *Calls) {
			l.Begin(call)
			s := l.Execute(1, 7, arguments)
			s.Number = 2
			l.End(1, Answer{End: Result, Signed: &s})
		}, invariant.OutcomeTrue},
		{"a result of another session", func(l *Calls) {
			l.Begin(call)
			s := l.Execute(1, 7, arguments)
			s.Session = 8
			l.End(1, Answer{End: Result, Signed: &s})
		}, invariant.OutcomeTrue},
		{"a result without an execution", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Result, Signed: &Signature{Number: 1, Session: 7, Sum: call.Sum, Execution: 1}})
		}, invariant.OutcomeTrue},
		{"a result that nobody signed", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Result})
		}, invariant.OutcomeTrue},
		{"a call said not to have been sent was executed", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: "timeout", Refusal: "timeout"})
		}, invariant.OutcomeTrue},
		{"a call is executed after it was said not to have been sent", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: "detached", Refusal: "detached"})
			l.Execute(1, 7, arguments)
		}, invariant.OutcomeTrue},
		{"a call that only reads was executed and said to have failed", func(l *Calls) {
			l.Begin(reading)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: "timeout", Refusal: "timeout"})
		}, ""},
		{"a call that only reads was executed and said to be unknown", func(l *Calls) {
			l.Begin(reading)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: "unknown", Refusal: "unknown"})
		}, invariant.OutcomeTrue},
		{"a call whose outcome is unknown was executed", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: "outcome_unknown", Refusal: "outcome_unknown"})
		}, ""},
		{"a call is repeated under its key and gets the result of the one execution", func(l *Calls) {
			l.Begin(call)
			s := l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Aborted})
			l.End(1, Answer{End: Result, Signed: &s, Again: true})
		}, ""},
		{"a call is repeated under its key and executed again", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Aborted})
			s := l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Result, Signed: &s, Again: true})
		}, invariant.ExecutedOnce},
		{"a repeat of an executed call is said not to have been sent", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Aborted})
			l.End(1, Answer{End: "cancelled", Refusal: "cancelled", Again: true})
		}, invariant.OutcomeTrue},
		{"a repeat of an executed call is told that the server is not there", func(l *Calls) {
			l.Begin(call)
			l.Execute(1, 7, arguments)
			l.End(1, Answer{End: Aborted})
			l.End(1, Answer{End: "detached", Refusal: "detached", Again: true})
		}, invariant.OutcomeTrue},
		{"a repeat of a call that was never executed is told that the server is not there", func(l *Calls) {
			l.Begin(call)
			l.End(1, Answer{End: Aborted})
			l.End(1, Answer{End: "detached", Refusal: "detached", Again: true})
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := invariant.NewBook(nil)
			test.history(NewCalls(book))
			wantBroken(t, book, test.breaks)
		})
	}
}

// wantBroken wants exactly that promise to be broken, and each promise that the history was about to be counted.
func wantBroken(t *testing.T, book *invariant.Book, want invariant.Name) {
	t.Helper()
	broken := book.Broken()
	switch {
	case want == "" && len(broken) == 0:
		exercised := int64(0)
		for _, v := range book.Verdicts() {
			exercised += v.Exercised
		}
		if exercised == 0 {
			t.Error("the history has tested nothing")
		}
	case len(broken) != 1 || broken[0] != want:
		t.Errorf("broken are %v, want %q: %+v", broken, want, book.Verdicts())
	}
}

func TestOnlyAnOrphanIsSparedAtTheEnd(t *testing.T) {
	l := NewCalls(invariant.NewBook(nil))
	for number := range 3 {
		l.Begin(Call{Number: number, Doomed: true})
	}
	now := time.Now()
	l.Leave(1, now, false)
	l.Leave(2, now, true)
	l.SpareOrphans()
	if !l.Doomed(0) || !l.Doomed(1) || l.Doomed(2) {
		t.Error("one that is no orphan was spared, or an orphan was not")
	}
	if !l.Left(0).IsZero() || !l.Left(1).Equal(now) || !l.Left(2).IsZero() {
		t.Error("it is not told which call had to end when its caller left it")
	}
}
