package caller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
)

// Agent makes the calls of a session whose token its client is not given: the demo agent, prompted by the session's client.
type Agent interface {
	// Take takes the agent for one turn, until Free; false: it is in one.
	Take() bool
	Free()
	// Call gives what the agent streams of the call, and how many tool calls it reported from their beginning to their end.
	Call(ctx context.Context, tool string, arguments []byte) (text string, reported int, err error)
}

// prompt makes one call by way of an agent. Faults of HTTP are not for it, nor a repeat under a key.
func (c *Callers) prompt(p plan, due time.Time) {
	agent := p.target.Agent
	if !agent.Take() {
		c.o.Tally.Count("not_made")
		return
	}
	defer agent.Free()
	c.o.Calls.Begin(ledger.Call{Number: p.number, Session: p.target.Session, Sum: ledger.Sum(p.arguments), ReadOnly: p.tool.ReadOnly, Place: p.target.Place})
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Bound)
	defer cancel()
	text, reported, err := agent.Call(ctx, p.tool.Name, p.arguments)
	c.bytes.Add(int64(len(p.arguments) + len(text)))
	answer := ledger.Answer{End: ledger.Aborted} // a turn that did not come to its end says nothing of its call
	if err == nil {
		answer = streamed(text)
		why := ""
		if reported != 1 {
			why = fmt.Sprintf("the turn that made call %d ended, and %d tool calls of it were reported whole before", p.number, reported)
		}
		c.o.Book.Check(invariant.LastChunk, []string{p.target.Place}, why)
	}
	c.o.Calls.End(p.number, answer)
	c.o.Tally.Add(string(answer.End), time.Since(due))
}

// streamed reads what the demo agent says of a call: the text of its result, which is signed, or why there is none.
func streamed(text string) ledger.Answer {
	why, failed := strings.CutPrefix(text, "error: ")
	if !failed {
		why = text
	}
	var s ledger.Signature
	if n, _ := fmt.Sscanf(why, "done #%d/%d/%d/%d ", &s.Number, &s.Session, &s.Sum, &s.Execution); n != 4 {
		if failed {
			return ledger.Answer{End: ledger.RPCError, Note: fmt.Sprintf("%.200q", why)}
		}
		return ledger.Answer{End: ledger.Result, Note: fmt.Sprintf("%.200q", text)}
	}
	if failed {
		return ledger.Answer{End: ledger.ToolError, Signed: &s}
	}
	return ledger.Answer{End: ledger.Result, Signed: &s}
}
