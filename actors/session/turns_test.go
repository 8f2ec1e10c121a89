package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// What agents in the field do around the end of a turn, and what becomes of it.

func TestAnUpdateBehindTheEndOfATurnStillPasses(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		req := c.prompt(id, "hello")
		a.end(endTurn)
		a.say("late")
		a.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`)
		a.update(`{"sessionUpdate":"of_tomorrow","x":[1.0]}`)
		said := c.heard()
		if got := texts(said); !slices.Equal(got, []string{fmt.Sprint("answer ", req), "late", "update", "update"}) || !strings.Contains(said[3], `{"sessionUpdate":"of_tomorrow","x":[1.0]}`) {
			t.Errorf("the client heard %q", said)
		}
		next := c.prompt(id, "again")
		a.end(endTurn)
		c.want(next, endTurn)
	})
}

// An agent that leaves with its last word already said takes no prompt with it: nothing of that was heard, so the next one gets it.
func TestAPromptThatMeetsALeavingAgentGoesToTheNext(t *testing.T) {
	for name, row := range map[string]struct {
		before func(p *pod, a *fakeAgent, c *client, id string)
		exit   int
		code   int // of the answer, 0 = the next agent gets the prompt
	}{
		"it leaves at once":               {func(*pod, *fakeAgent, *client, string) {}, 0, 0},
		"it crashes":                      {func(*pod, *fakeAgent, *client, string) {}, 3, jsonrpc.Internal},
		"it had called a tool":            {func(_ *pod, _ *fakeAgent, c *client, id string) { c.tell(id, capability.InFlight{Open: true}) }, 0, jsonrpc.Internal},
		"it had said something":           {func(_ *pod, a *fakeAgent, _ *client, _ string) { a.say("x") }, 0, jsonrpc.Internal},
		"it had said what nobody reads":   {func(_ *pod, a *fakeAgent, _ *client, _ string) { a.noise.Add(1) }, 0, jsonrpc.Internal},
		"it had asked something":          {func(_ *pod, a *fakeAgent, _ *client, _ string) { a.ask(1, "_x", `{}`) }, 0, jsonrpc.Internal},
		"its turn before ended long ago":  {nil, 0, jsonrpc.Internal},
		"it is the second that leaves so": {func(_ *pod, a *fakeAgent, _ *client, _ string) { a.exit(0) }, 0, jsonrpc.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("", 0)
				id := c.opened("[]")
				a := p.agents.last()
				c.prompt(id, "one")
				a.end(endTurn)
				if row.before == nil {
					p.after(2 * time.Second)
				}
				req := c.prompt(id, "two")
				if row.before != nil {
					row.before(p, a, c, id)
				}
				p.agents.last().exit(row.exit)
				if row.code != 0 {
					c.wantError(req, row.code, "agent_exited")
					return
				}
				next := p.agents.last()
				if got := next.see(&next.prompts); next.n != 2 || len(got) != 1 || !strings.Contains(got[0], "two") {
					t.Fatalf("agent %d was given %q", next.n, got)
				}
				next.end(endTurn)
				c.want(req, endTurn)
				c.close(id)
				p.atRest()
			})
		})
	}
}

// One that could not be written, however long after the turn before, is no repeat; but it is tried once more and not for ever.
func TestAPromptThatNeverReachedItsAgentGoesToTheNextOnce(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		p.after(time.Minute)
		req := c.prompt(id, "hello")
		closed := func() {
			a := p.agents.last()
			a.do(func(*kernel.Ctx) error {
				a.turn.Fail(agent.ErrClosed)
				return agentExit(0)
			})
		}
		closed()
		if a := p.agents.last(); a.n != 2 || len(a.see(&a.prompts)) != 1 || c.answer(req) != nil {
			t.Fatalf("agent %d was given %q, the client answered %+v", a.n, a.see(&a.prompts), c.answer(req))
		}
		closed()
		c.wantError(req, jsonrpc.Internal, "agent_exited")
		c.close(id)
		p.atRest()
	})
}

// Its exit may be known before its answer, and a cancel may come in between.
func TestACancelOfAPromptThatMetALeavingAgent(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		c.prompt(id, "one")
		a.end(endTurn)
		req := c.prompt(id, "two")
		c.cancel(id, req)
		a.exit(0)
		c.want(req, string(cancelledResult))
		p.agents.is(func(a *agents) { a.mute = true })
		third := c.prompt(id, "three")
		p.agents.is(func(a *agents) { a.mute = false })
		c.cancel(id, 0)
		c.want(third, string(cancelledResult))
	})
}

func TestASecondAnswerOfAnAgentIsNobodys(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		req := c.prompt(id, "hello")
		turn := a.turn
		a.do(func(*kernel.Ctx) error {
			turn.Answer(agent.Reply{Result: []byte(endTurn)}, nil)
			if turn.Answer(agent.Reply{Result: []byte(`{"stopReason":"refusal"}`)}, nil) {
				t.Error("a second answer was taken")
			}
			return nil
		})
		c.want(req, endTurn)
		next := c.prompt(id, "again")
		if c.answer(next) != nil {
			t.Error("the next prompt got the answer of the one before")
		}
	})
}

// Some agents end no turn while a permission of theirs is open: on a cancel it is answered for the client.
func TestAPermissionLeftOpenHoldsNoCancelUp(t *testing.T) {
	inPod(t, func(c *Config) { c.Queue = 1 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		req := c.prompt(id, "hello")
		a.askPermission(7)
		c.cancel(id, 0)
		if got := a.got(&a.replies); !slices.Equal(got, []string{refused}) {
			t.Errorf("the agent was answered %q", got)
		}
		waits := c.prompt(id, "behind")
		p.after(11 * time.Second)
		c.want(req, string(cancelledResult))
		next := p.agents.last()
		if got := next.see(&next.prompts); next.n != 2 || len(got) != 1 {
			t.Fatalf("agent %d was given %q", next.n, got)
		}
		next.end(endTurn)
		c.want(waits, endTurn)
	})
}

// A clean exit long after the prompt may be what the prompt did, and a call that was on its way at the exit is.
func TestAPromptThatMayHaveHadAnEffectIsNotGivenToASecondAgent(t *testing.T) {
	for name, late := range map[string]bool{"it worked in silence": true, "its call is known behind its exit": false} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("", 0)
				id := c.opened("[]")
				a := p.agents.last()
				c.prompt(id, "one")
				a.end(endTurn)
				req := c.prompt(id, "two")
				if late {
					p.after(time.Minute)
					a.exit(0)
				} else {
					a.do(func(*kernel.Ctx) error { // the answer comes first, and its process has still to end
						a.turn.Fail(&agent.Exited{})
						ref, _ := c.session(id)
						return ref.Tell(capability.InFlight{Open: true})
					})
				}
				c.wantError(req, jsonrpc.Internal, "agent_exited")
			})
		})
	}
}
