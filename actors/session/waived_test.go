package session

import (
	"fmt"
	"slices"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// What was kept for a client is dropped for a replay, which says it too. Whoever comes after a client that was not shown all of that is told that it
// is missing, and hears nothing of the replay.
func TestAReplayThatIsCutLeavesItsAccount(t *testing.T) {
	for name, row := range map[string]struct {
		hold, slow bool // the agent has not answered; the client has not read
		taken      bool // another connection takes over, the first is not lost
		missed     int
		agent      string
	}{
		"by the loss of its client":                {hold: true, missed: 2, agent: "restored"},
		"by another one":                           {hold: true, taken: true, missed: 2, agent: "restored"},
		"on its way to a client that is lost":      {slow: true, missed: 2, agent: "restored"},
		"on its way to a client that has a second": {slow: true, taken: true, missed: 2, agent: "restored"},
		"not at all":                               {missed: 0, agent: "alive"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(true, acp.SessionCapabilities{Resume: true})
				c := p.client("k", 1)
				id := c.opened("[]")
				c.prompt(id, "hello")
				c.leave()
				p.agents.last().say("one")
				p.agents.last().tellPlan()
				p.agents.last().end(endTurn)
				p.agents.last().exit(0)
				p.agents.is(func(a *agents) { a.past, a.hold = past, row.hold })
				first := p.client("k", 1)
				first.full = row.slow
				req := first.load(id, "[]")
				if row.slow != (first.answer(req) == nil) && !row.hold {
					t.Fatalf("answered %+v", first.answer(req))
				}
				if !row.taken {
					first.leave()
				}
				again := p.client("k", 1)
				req = again.resume(id, "[]")
				if row.hold {
					p.agents.last().end(`{}`)
				}
				if got := accountOf(t, again.answer(req)); got.MissedUpdates != row.missed || got.Agent != row.agent {
					t.Errorf("%+v", got)
				}
				if said := texts(again.heard()); !slices.Equal(said, []string{fmt.Sprintf("answer %d", req)}) {
					t.Errorf("it heard %q", said)
				}
				again.leave()
				third := p.client("k", 1)
				if got := accountOf(t, third.answer(third.resume(id, "[]"))); got.MissedUpdates != 0 || got.Agent != "alive" {
					t.Errorf("told again: %+v", got)
				}
			})
		})
	}
}

// tellPlan is an update that is put together with no other.
func (f *fakeAgent) tellPlan() {
	f.tellRaw(fmt.Appendf(nil, `{"sessionId":%q,"update":{"sessionUpdate":"plan","entries":[]}}`, f.id()))
	f.of.pod.settle()
}

// A conversation that the agent has lost is not shown again: what was dropped for it is missing.
func TestAReplayThatIsRefusedLeavesItsAccount(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		c.leave()
		p.agents.last().say("kept")
		p.agents.last().end(endTurn)
		p.agents.last().exit(0)
		p.agents.is(func(a *agents) {
			a.back = func(string) error { return &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: "no such session"} }
		})
		again := p.client("k", 1)
		if got := accountOf(t, again.answer(again.load(id, "[]"))); got.Agent != "fresh" || got.MissedUpdates != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A load that fails, and with it the session's life, forgets nothing either.
func TestAReplayThatFailsLeavesItsAccount(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		c.leave()
		p.agents.last().say("kept")
		p.agents.last().end(endTurn)
		p.agents.is(func(a *agents) { a.past, a.hold = past, true })
		again := p.client("k", 1)
		req := again.load(id, "[]")
		p.agents.last().exit(3)
		again.wantError(req, jsonrpc.Internal, "agent_exited")
		p.agents.is(func(a *agents) { a.past, a.hold = nil, false })
		if got := accountOf(t, again.answer(again.resume(id, "[]"))); got.Agent != "restored" || got.MissedUpdates != 1 {
			t.Errorf("%+v", got)
		}
	})
}
