package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// heldAt holds the session in its next offer until release, so that what its agent does meanwhile comes to it all at once, the
// agent's end first.
func heldAt(c *client) (release func()) {
	free := make(chan struct{})
	c.hold = func(what string) {
		if what == "offer" {
			<-free
		}
	}
	return func() {
		close(free)
		c.p.settle()
		c.hold = nil
	}
}

// An agent that ends right after its answer loses none of its words, whoever came before it and whatever that called its session.
func TestTheLastWordsOfAnAgentThatEndsAtOnce(t *testing.T) {
	before := map[string]func(p *pod, c *client, id string){
		"the first agent": func(*pod, *client, string) {},
		"after one that was stopped": func(p *pod, c *client, id string) {
			c.prompt(id, "one")
			c.tell(id, Cancel{Client: c})
			p.after(p.s.cfg.CancelTimeout + time.Second)
			if !p.agents.last().isDead() {
				t.Fatal("it was not stopped")
			}
		},
		"after one that exited": func(p *pod, c *client, id string) {
			c.prompt(id, "one")
			p.agents.last().exit(3)
		},
		"after one that exited between two turns": func(p *pod, _ *client, _ string) { p.agents.last().exit(3) },
	}
	for name, come := range before {
		for _, alike := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, alike %v", name, alike), func(t *testing.T) {
				inPod(t, nil, func(p *pod) {
					p.agents.is(func(a *agents) { a.alike = alike })
					c := p.client("", 0)
					id := c.opened(roomServer)
					come(p, c, id)
					req := c.prompt(id, "two")
					c.heard()
					release := heldAt(c)
					a := p.agents.last()
					a.do(func(*kernel.Ctx) error {
						for _, text := range []string{"a", "b", "c"} {
							a.tellUpdate(text)
						}
						_ = a.owner.Tell(agent.Called{From: a.ref, ID: jsonrpc.IntID(1), Method: acp.MethodPermission, Params: fmt.Appendf(nil, `{"sessionId":%q,"toolCall":{},"options":[]}`, a.id())})
						a.turn.Answer(agent.Reply{Result: []byte(`{"stopReason":"end_turn"}`)}, nil)
						return agentExit(6)
					})
					release()
					if got, want := texts(c.heard()), []string{"a", "b", "c", fmt.Sprintf("answer %d", req)}; !slices.Equal(got, want) {
						t.Errorf("heard %q, want %q", got, want)
					}
					next := c.prompt(id, "three")
					p.agents.last().end(`{"stopReason":"end_turn"}`)
					c.want(next, `{"stopReason":"end_turn"}`)
				})
			})
		}
	}
}

// Of an agent that was stopped nothing is passed on, though its successor calls its session the same.
func TestAStoppedAgentSaysNothingInItsSuccessorsName(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.is(func(a *agents) { a.alike = true })
		c := p.client("", 0)
		id := c.opened(roomServer)
		c.prompt(id, "one")
		former := p.agents.last()
		c.tell(id, Cancel{Client: c})
		p.after(p.s.cfg.CancelTimeout + time.Second)
		req := c.prompt(id, "two")
		c.heard()
		former.tellUpdate("late")
		_ = former.owner.Tell(agent.Skipped{From: former.ref, Bytes: 1, Scope: "agent_line_bytes"})
		_ = former.owner.Tell(agent.Ready{From: former.ref})
		_ = former.owner.Tell(agent.Called{From: former.ref, ID: jsonrpc.IntID(9), Method: acp.MethodPermission, Params: fmt.Appendf(nil, `{"sessionId":%q,"toolCall":{},"options":[]}`, former.id())})
		p.settle()
		p.agents.last().say("mine")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		if got, want := texts(c.heard()), []string{"mine", fmt.Sprintf("answer %d", req)}; !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
		if replies := p.agents.last().lastReplies(); len(replies) > 0 {
			t.Errorf("the successor was answered what it never asked: %q", replies)
		}
	})
}

// A turn that the end of the pod, or a fault of ours, has cut is the last one: a client that comes back is not told of the one before it.
func TestATurnThatWasCutIsTheLastOne(t *testing.T) {
	for name, cut := range map[string]func(p *pod, c *client, id string){
		"by the end of the pod": func(p *pod, _ *client, _ string) { p.restart() },
		"by a fault of ours": func(p *pod, c *client, id string) {
			c.hold = func(what string) {
				if what == "offer" {
					panic("a fault of ours")
				}
			}
			p.agents.last().say("word")
			p.after(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(true, acp.SessionCapabilities{Resume: true})
				c := p.client("k", 1)
				id := c.opened("[]")
				c.prompt(id, "one")
				p.agents.last().end(endTurn)
				turn := c.prompt(id, "two")
				cut(p, c, id)
				if a := c.answer(turn); a == nil || a.err == nil {
					t.Errorf("the turn was answered %+v", a)
				}
				again := p.client("k", 1)
				if got := accountOf(t, again.answer(again.resume(id, "[]"))); !strings.Contains(fmt.Sprint(got.LastTurn), "error") {
					t.Errorf("last turn: %v", got.LastTurn)
				}
			})
		})
	}
}
