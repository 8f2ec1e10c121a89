package invariant

import (
	"strings"
	"testing"
)

func TestTheFirstBreachOfEachPromiseIsToldAtOnce(t *testing.T) {
	var told []Breach
	b := NewBook(func(breach Breach) { told = append(told, breach) })
	b.Exercise(Memory)
	b.Check(Memory, nil, "")
	b.Break(Told, []string{"conn-1"}, "first %d", 1)
	b.Break(Told, nil, "second")
	b.Check(Alive, nil, "gone")
	if len(told) != 2 || told[0].Text != "first 1" || told[0].Words[0] != "conn-1" || told[1].Name != Alive {
		t.Fatalf("told were %+v", told)
	}
	if broken := b.Broken(); len(broken) != 2 || broken[0] != Told || broken[1] != Alive {
		t.Errorf("broken are %v", broken)
	}
	for _, v := range b.Verdicts() {
		switch v.Name {
		case Memory:
			if !v.Held || v.Exercised != 2 {
				t.Errorf("memory was tested twice and held: %+v", v)
			}
		case Told:
			if v.Held || v.Violations != 2 || v.Violation != "first 1" || v.Exercised != 2 {
				t.Errorf("told was broken twice: %+v", v)
			}
		case LastChunk:
			if !v.Held || v.Exercised != 0 {
				t.Errorf("last_chunk was not tested: %+v", v)
			}
		}
	}
}

func TestEveryPromiseHasALineAndSaysWhatItIs(t *testing.T) {
	seen := map[Name]bool{}
	for _, v := range NewBook(nil).Verdicts() {
		if seen[v.Name] || v.Says == "" {
			t.Errorf("%q stands twice or says nothing", v.Name)
		}
		seen[v.Name] = true
	}
	for _, name := range []Name{AnsweredOnce, OwnClient, ExecutedOnce, OutcomeTrue, DisconnectedOnce, CancelReaches, TokensBalance, Accounts, Memory, BackToBaseline, LastChunk, LogLines, NoSecret, Told, Alive} {
		if !seen[name] {
			t.Errorf("%q has no line", name)
		}
	}
}

func TestAPromiseThatIsNoneIsAMistakeOfOurs(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a name that is no promise was counted")
		}
	}()
	NewBook(nil).Exercise("no_such_promise")
}

func TestALongViolationIsCut(t *testing.T) {
	b := NewBook(nil)
	b.Break(Told, nil, "%s", strings.Repeat("x", 1<<20))
	if got := len(b.Verdicts()[13].Violation); got > maxText+10 {
		t.Errorf("a violation of %d bytes is kept", got)
	}
}
