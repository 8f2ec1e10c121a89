package session

import (
	"encoding/json/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestAForkIsASessionOfItsOwn(t *testing.T) {
	for name, sleeps := range map[string]bool{"of one that lives": false, "of one that sleeps": true} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(false, acp.SessionCapabilities{Fork: true})
				var id string
				c := p.client("k", 1)
				if sleeps {
					id = asleep(p, "[]")
				} else {
					id = c.opened("[]")
				}
				got := c.answer(c.fork(id))
				if got == nil || got.err != nil {
					t.Fatalf("%+v", got)
				}
				var result struct{ SessionID string }
				if err := json.Unmarshal([]byte(got.result), &result, json.MatchCaseInsensitiveNames(true)); err != nil {
					t.Fatal(err)
				}
				a := p.agents.last()
				if !ValidID(result.SessionID) || result.SessionID == id || strings.Contains(got.result, "inner") || a.n != 2 {
					t.Errorf("agent %d: %s", a.n, got.result)
				}
				if asked := a.see(&a.backs); len(asked) != 1 || !strings.HasPrefix(asked[0], acp.MethodSessionFork) || !strings.Contains(asked[0], `"inner-1"`) {
					t.Errorf("the agent was asked %q", asked)
				}
				turn := c.prompt(result.SessionID, "hello")
				if got := a.see(&a.prompts); len(got) != 1 || !strings.Contains(got[0], `"inner-1-copy-2"`) {
					t.Errorf("the agent got %q", got)
				}
				a.end(`{"stopReason":"end_turn"}`)
				c.want(turn, `{"stopReason":"end_turn"}`)
				if d, _, _ := p.records.has(result.SessionID); d.Agent != "inner-1-copy-2" {
					t.Errorf("%+v", d)
				}
				if d, held, ok := p.records.has(id); !ok || d.Agent != "inner-1" || held == sleeps {
					t.Errorf("the other one's record: %+v, held %v", d, held)
				}
				if sleeps {
					return
				}
				if _, owns := c.session(id); !owns {
					t.Error("the fork took the session that it is of")
				}
			})
		})
	}
}

func TestAForkThatTheAgentRefusesIsNone(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Fork: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		p.agents.is(func(a *agents) {
			a.back = func(string) error { return &jsonrpc.Error{Code: -32602, Message: "not while it rains"} }
		})
		c.wantError(c.fork(id), -32602, "")
		if p.records.Figures().Records != 1 {
			t.Error("it left a record")
		}
		stranger := p.client("k", 2)
		stranger.wantError(stranger.fork(id), -32602, "")
		if p.agents.count() != 2 {
			t.Errorf("%d agents", p.agents.count())
		}
		c.close(id)
		p.atRest()
	})
}

func TestADeletedSessionIsGoneForThePodAndForItsAgent(t *testing.T) {
	for name, row := range map[string]struct{ sleeps, theirs bool }{"one that lives": {}, "one that sleeps": {sleeps: true}, "one that another connection of the client has": {theirs: true}} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(false, acp.SessionCapabilities{Delete: true, Resume: true})
				var id string
				c, owner := p.client("k", 1), p.client("k", 1)
				turn := uint64(0)
				switch {
				case row.sleeps:
					id = asleep(p, "[]")
				case row.theirs:
					id = owner.opened(roomServer)
					turn = owner.prompt(id, "work")
				default:
					id = c.opened("[]")
				}
				stranger := p.client("k", 2)
				stranger.wantError(stranger.remove(id), -32602, "")
				c.want(c.remove(id), "{}")
				if row.theirs {
					owner.want(turn, `{"stopReason":"cancelled"}`)
					if _, owns := owner.session(id); owns || owner.frames("mcp/disconnect") != 1 {
						t.Errorf("its owner still has it: %q", owner.mcp)
					}
				}
				a := p.agents.last()
				if asked := a.see(&a.backs); !slices.Equal(asked, []string{acp.MethodSessionDelete + ` {"sessionId":"inner-1"}`}) {
					t.Errorf("the agent was asked %q", asked)
				}
				if _, _, ok := p.records.has(id); ok {
					t.Error("its record is there")
				}
				c.wantError(c.resume(id, "[]"), -32602, "")
				c.wantError(c.remove(id), -32602, "")
				p.atRest()
			})
		})
	}
}

func TestASessionThatTheAgentCannotDeleteStays(t *testing.T) {
	for name, sleeps := range map[string]bool{"it lives": false, "it sleeps": true} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(false, acp.SessionCapabilities{Delete: true, Resume: true})
				c := p.client("k", 1)
				var id string
				if sleeps {
					id = asleep(p, "[]")
				} else {
					id = c.opened("[]")
				}
				p.agents.is(func(a *agents) { a.back = func(string) error { return &jsonrpc.Error{Code: -32603, Message: "disk"} } })
				c.wantError(c.remove(id), -32603, "")
				p.agents.is(func(a *agents) { a.hold = true })
				req := c.remove(id)
				p.after(2 * time.Minute)
				c.wantError(req, -32603, "agent_timeout")
				p.agents.is(func(a *agents) { a.hold, a.back = false, nil })
				if got := accountOf(t, c.answer(c.resume(id, "[]"))); got.Agent != "restored" {
					t.Errorf("%+v", got)
				}
				p.agents.is(func(a *agents) {
					a.back = func(string) error { return &jsonrpc.Error{Code: -32002, Message: "no such session"} }
				})
				c.want(c.remove(id), "{}") // what is not there needs no deleting
				p.atRest()
			})
		})
	}
}

// Of two that delete a session both are answered, and who resumes it meanwhile does not get what is about to go.
func TestWhoComesWhileASessionIsBeingDeletedWaitsForItsEnd(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Delete: true, Resume: true})
		c, other := p.client("k", 1), p.client("k", 1)
		id := c.opened("[]")
		p.agents.is(func(a *agents) { a.hold = true })
		first, second, back := c.remove(id), other.remove(id), other.resume(id, "[]")
		if got := other.answer(back); got != nil {
			t.Errorf("the resume was answered %+v", got)
		}
		p.agents.last().end("{}")
		c.want(first, "{}")
		other.wantError(second, jsonrpc.InvalidParams, "")
		other.wantError(back, jsonrpc.InvalidParams, "")
		p.atRest()
	})
}

// What a delete leaves when the agent refuses it is what there was.
func TestADeleteThatFailsLeavesTheFolder(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Delete: true, Resume: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		before, _, _ := p.records.has(id)
		p.agents.is(func(a *agents) {
			a.back = func(string) error { return &jsonrpc.Error{Code: jsonrpc.Internal, Message: "not now"} }
		})
		c.wantError(c.remove(id), jsonrpc.Internal, "")
		after, held, ok := p.records.has(id)
		if !ok || held || after.Cwd != before.Cwd {
			t.Errorf("its folder was %q and is %q (there %v, held %v)", before.Cwd, after.Cwd, ok, held)
		}
	})
}
