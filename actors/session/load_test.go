package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// known sends a request about a session that there is.
func (c *client) known(id, servers string, message func(req uint64, p *Params) kernel.Msg) uint64 {
	c.p.t.Helper()
	c.p.req++
	params, bad := ParseResume(fmt.Appendf(nil, `{"sessionId":%q,"cwd":"/","mcpServers":%s}`, id, servers))
	if bad != nil {
		c.p.t.Fatal(bad)
	}
	if err := c.p.sessions.Tell(message(c.p.req, params)); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.p.req
}

func (c *client) load(id, servers string) uint64 {
	return c.known(id, servers, func(req uint64, p *Params) kernel.Msg { return Load{Client: c, Req: req, Params: p} })
}

func (c *client) fork(id string) uint64 {
	return c.known(id, "[]", func(req uint64, p *Params) kernel.Msg { return Fork{Client: c, Req: req, Params: p} })
}

func (c *client) remove(id string) uint64 {
	c.p.t.Helper()
	c.p.req++
	if err := c.p.sessions.Tell(Delete{Client: c, Req: c.p.req, Session: id}); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.p.req
}

var past = []string{"hello", "echo: hello"}

func TestALoadShowsAllOfItBeforeItsAnswer(t *testing.T) {
	for name, sleeps := range map[string]bool{"of a session that lives": false, "of one that sleeps": true} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(true, acp.SessionCapabilities{Resume: true})
				c := p.client("k", 1)
				id := c.opened("[]")
				c.prompt(id, "hello")
				c.leave()
				p.agents.last().say("kept for the next client")
				p.agents.last().end(`{"stopReason":"end_turn"}`)
				if sleeps {
					p.after(p.s.cfg.SessionTTL)
				}
				p.agents.is(func(a *agents) { a.past = past })
				again := p.client("k", 1)
				req := again.load(id, roomServer)
				got := accountOf(t, again.answer(req))
				if want := map[bool]string{true: "restored", false: "alive"}[sleeps]; got.Agent != want || got.MissedUpdates != 0 {
					t.Errorf("%+v", got)
				}
				if said := texts(again.heard()); !slices.Equal(said, []string{"hello", "echo: hello", fmt.Sprintf("answer %d", req)}) {
					t.Errorf("it heard %q", said)
				}
				if strings.Contains(again.answer(req).result, "sessionId") {
					t.Errorf("%s", again.answer(req).result)
				}
				if again.frames("mcp/connect") != 1 {
					t.Errorf("%q", again.mcp)
				}
				turn := again.prompt(id, "go on")
				p.agents.last().say("of now")
				p.agents.last().end(`{"stopReason":"end_turn"}`)
				again.want(turn, `{"stopReason":"end_turn"}`)
				if said := texts(again.heard()); said[0] != "of now" {
					t.Errorf("it heard %q", said)
				}
				req = again.load(id, roomServer) // and once more, on the same connection
				if said := texts(again.heard()); !slices.Equal(said, []string{"hello", "echo: hello", fmt.Sprintf("answer %d", req)}) || again.frames("mcp/connect") != 1 {
					t.Errorf("it heard %q; %q", said, again.mcp)
				}
			})
		})
	}
}

// A turn that runs is finished first: nothing of it mixes with the replay, which has it.
func TestALoadWaitsForTheTurnOfAnotherConnection(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{})
		c := p.client("k", 1)
		id := c.opened("[]")
		turn := c.prompt(id, "hello")
		c.wantError(c.load(id, "[]"), jsonrpc.Busy, "busy")
		a := p.agents.last()
		a.say("before")
		young := p.client("k", 1)
		req := young.load(id, "[]")
		c.wantError(turn, jsonrpc.Busy, "superseded")
		a.say("meanwhile")
		a.askPermission(7)
		if said := texts(young.heard()); len(said) != 1 || !strings.HasPrefix(said[0], "ask ") {
			t.Errorf("what the turn asks reached nobody, or what it says somebody: %q", said)
		}
		if young.answer(req) != nil || len(a.see(&a.backs)) != 0 {
			t.Fatal("it did not wait")
		}
		p.agents.is(func(a *agents) { a.past = past })
		a.end(`{"stopReason":"end_turn"}`)
		if got := accountOf(t, young.answer(req)); got.Agent != "alive" || got.State != "idle" || got.MissedUpdates != 0 || fmt.Sprint(got.LastTurn) != "map[stopReason:end_turn]" {
			t.Errorf("%+v", got)
		}
		said := slices.DeleteFunc(texts(young.heard()), func(s string) bool { return s == "ask withdrawn" })
		if !slices.Equal(said, []string{"hello", "echo: hello", fmt.Sprintf("answer %d", req)}) {
			t.Errorf("it heard %q", said)
		}
	})
}

// The agent ends in the turn that a load waits for: the next one loads.
func TestALoadWaitsForATurnThatItsAgentDoesNotSurvive(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{})
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		young := p.client("k", 1)
		req := young.load(id, "[]")
		p.agents.is(func(a *agents) { a.past = past })
		p.agents.last().exit(3)
		if got := accountOf(t, young.answer(req)); got.Agent != "restored" || !strings.Contains(fmt.Sprint(got.LastTurn), "error") {
			t.Errorf("%+v", got)
		}
		if said := texts(young.heard()); !slices.Equal(said, []string{"hello", "echo: hello", fmt.Sprintf("answer %d", req)}) {
			t.Errorf("it heard %q", said)
		}
	})
}

// What was not seen of a replay when its client was lost is nobody's: the next one that resumes did not ask for it.
func TestAReplayEndsWithItsClient(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		id := asleep(p, "[]")
		p.agents.is(func(a *agents) { a.past, a.hold = past, true })
		c := p.client("k", 1)
		c.load(id, "[]")
		if said := texts(c.heard()); !slices.Equal(said, past) {
			t.Fatalf("it heard %q", said)
		}
		again := p.client("k", 1)
		req := again.resume(id, "[]")
		p.agents.last().say("and more")
		p.agents.last().end(`null`)
		if got := accountOf(t, again.answer(req)); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if said := texts(again.heard()); !slices.Equal(said, []string{fmt.Sprintf("answer %d", req)}) {
			t.Errorf("it heard %q", said)
		}
	})
}

// A load that finds the conversation being brought back for another has it shown after that.
func TestALoadInTheMidstOfAResume(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		id := asleep(p, "[]")
		p.agents.is(func(a *agents) { a.past, a.hold = past, true })
		old, young := p.client("k", 1), p.client("k", 1)
		first := old.resume(id, "[]")
		second := young.load(id, "[]")
		old.wantError(first, jsonrpc.Busy, "superseded")
		p.agents.is(func(a *agents) { a.hold = false })
		p.agents.last().end(`{}`)
		if got := accountOf(t, young.answer(second)); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if said := texts(young.heard()); !slices.Equal(said, []string{"hello", "echo: hello", fmt.Sprintf("answer %d", second)}) {
			t.Errorf("it heard %q", said)
		}
		if said := texts(old.heard()); len(said) != 1 {
			t.Errorf("the other one heard %q", said)
		}
	})
}

func TestWhatTheAgentDoesNotOfferIsNoMethod(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		for name, req := range map[string]uint64{"load": c.load(id, "[]"), "fork": c.fork(id), "delete": c.remove(id)} {
			if got := c.answer(req); got == nil || got.err == nil || got.err.Code != jsonrpc.MethodNotFound {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if _, owns := c.session(id); !owns || p.agents.count() != 1 {
			t.Error("it did something all the same")
		}
	})
}

// A replay that takes longer than agent.new_timeout is no silence.
func TestALongReplayIsNoSilence(t *testing.T) {
	inPod(t, func(c *Config) { c.NewTimeout = 10 * time.Second }, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{})
		id := asleep(p, "[]")
		p.agents.is(func(a *agents) { a.hold = true })
		c := p.client("k", 1)
		req := c.load(id, "[]")
		for range 10 {
			p.after(6 * time.Second)
			p.agents.last().say("word")
		}
		p.agents.last().end(`{}`)
		if got := accountOf(t, c.answer(req)); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if said := texts(c.heard()); len(said) != 11 {
			t.Errorf("%q", said)
		}
	})
}

// The turn that a load waits for may wait for an answer of that very client: a stream that is full just then holds both up for no longer than it is.
func TestWhatATurnAsksWhileALoadWaitsForItIsAskedWhenThereIsRoom(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{})
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		a := p.agents.last()
		young := p.client("k", 1)
		young.full = true
		req := young.load(id, "[]")
		a.askPermission(7)
		a.askPermission(8)
		if said := young.heard(); len(said) != 0 {
			t.Fatalf("a full stream took %q", said)
		}
		young.flow()
		p.after(retryEvery)
		if said := texts(young.heard()); len(said) != 2 || !strings.HasPrefix(said[0], "ask ") || !strings.HasPrefix(said[1], "ask ") {
			t.Fatalf("with room again it heard %q", said)
		}
		for _, q := range young.asked {
			q.Answer(tunnel.Reply{Result: []byte(`{"outcome":{"outcome":"selected","optionId":"once"}}`)}, nil)
		}
		p.settle()
		if got := a.lastReplies(); len(got) != 2 || !strings.Contains(got[0]+got[1], `"once"`) {
			t.Errorf("the agent was answered %q", got)
		}
		a.end(endTurn)
		if got := accountOf(t, young.answer(req)); got.Agent != "alive" {
			t.Errorf("%+v", got)
		}
	})
}

// A load whose client has left before the turn ended is over: the agent, which has the conversation open, is asked nothing.
func TestALoadThatItsClientDoesNotWaitForAsksNothing(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{})
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		young := p.client("k", 1)
		young.load(id, "[]")
		young.leave()
		p.agents.is(func(a *agents) { a.back = func(string) error { return errors.New("it is open already") } })
		a := p.agents.last()
		a.say("news")
		a.end(endTurn)
		if backs := a.see(&a.backs); len(backs) != 0 {
			t.Errorf("the agent was asked %q for nobody", backs)
		}
		again := p.client("k", 1)
		req := again.resume(id, "[]")
		if got := accountOf(t, again.answer(req)); got.Agent != "alive" || got.MissedUpdates != 0 {
			t.Errorf("%+v", got)
		}
		if said := texts(again.heard()); !slices.Equal(said, []string{fmt.Sprintf("answer %d", req), "news", "_acpod/turn_ended"}) {
			t.Errorf("it heard %q", said)
		}
	})
}

// An overlong line of what was said before is not news either when a conversation is brought back.
func TestAPastThatIsTooLongIsNotMissed(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{})
		id := asleep(p, "[]")
		p.agents.is(func(a *agents) { a.hold = true })
		c := p.client("k", 1)
		req := c.resume(id, "[]")
		a := p.agents.last()
		a.do(func(*kernel.Ctx) error {
			return a.owner.Tell(agent.Skipped{From: a.ref, Bytes: 1 << 25, Scope: "agent_line_bytes"})
		})
		a.end(`{}`)
		if got := accountOf(t, c.answer(req)); got.MissedUpdates != 0 {
			t.Errorf("%+v", got)
		}
		if said := strings.Join(texts(c.heard()), " "); strings.Contains(said, "dropped") {
			t.Errorf("%s", said)
		}
	})
}
