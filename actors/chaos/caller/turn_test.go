package caller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
)

func TestWhatTheDemoAgentStreamsIsReadForWhatItIs(t *testing.T) {
	signed := ledger.Signature{Number: 7, Session: 3, Sum: 4000000000, Execution: 1}
	for _, test := range []struct {
		text   string
		end    ledger.End
		signed bool
	}{
		{"done #7/3/4000000000/1 rrr\n", ledger.Result, true},
		{"error: done #7/3/4000000000/1 rrr", ledger.ToolError, true},
		{"error: this capability is detached", ledger.RPCError, false},
		{"something else", ledger.Result, false},
		{"", ledger.Result, false},
	} {
		a := streamed(test.text)
		if a.End != test.end || (a.Signed != nil) != test.signed || test.signed && *a.Signed != signed {
			t.Errorf("%q: %+v", test.text, a)
		}
	}
}

// agent makes every call as a test says.
type agent struct {
	calls    *ledger.Calls
	reported int
	err      error
	busy     bool
}

func (a *agent) Take() bool { return !a.busy }
func (a *agent) Free()      {}

func (a *agent) Call(_ context.Context, _ string, arguments []byte) (string, int, error) {
	s := a.calls.Execute(1, 5, arguments)
	return fmt.Sprintf("done #%d/%d/%d/%d r", s.Number, s.Session, s.Sum, s.Execution), a.reported, a.err
}

func TestACallOfTheDemoAgentIsJudgedWithWhatItReported(t *testing.T) {
	for _, test := range []struct {
		name   string
		agent  agent
		end    string
		breaks bool
	}{
		{"one call", agent{reported: 1}, "result", false},
		{"no call", agent{}, "result", true},
		{"two calls", agent{reported: 2}, "result", true},
		{"a turn that did not end", agent{err: errors.New("cancelled")}, "aborted", false},
		{"an agent in a turn", agent{busy: true}, "not_made", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults, err := fault.Parse("none")
			if err != nil {
				t.Fatal(err)
			}
			book := invariant.NewBook(nil)
			a := test.agent
			a.calls = ledger.NewCalls(book)
			c := New(Options{
				Dice: fault.NewDice(1), Faults: faults, Book: book, Calls: a.calls, Tally: ledger.NewTally(), Tools: []Tool{{Name: "katashiro.click"}},
				Pick:  func(func(int) int) (Target, bool) { return Target{Session: 5, Agent: &a}, true },
				Bound: 10 * time.Second, Request: 1 << 20,
			})
			c.call(1, time.Now())
			a.calls.Close()
			if ends := c.o.Tally.Ends(); ends[test.end] != 1 {
				t.Errorf("it ended as %v, want %s", ends, test.end)
			}
			broken := book.Broken()
			if test.breaks != (len(broken) == 1 && broken[0] == invariant.LastChunk) || !test.breaks && len(broken) != 0 {
				t.Errorf("broken are %v: %+v", broken, book.Verdicts())
			}
		})
	}
}
