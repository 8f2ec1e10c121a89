package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestATurnWithoutAReasonIsAnError(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		for _, result := range []string{`{}`, `[]`, `null`, `"end_turn"`, `{"stopReason":7}`, `{"stopReason":null}`} {
			req := c.prompt(id, "hello")
			p.agents.last().end(result)
			c.wantError(req, jsonrpc.Internal, "internal")
		}
		req := c.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"whim"}`)
		c.want(req, `{"stopReason":"whim"}`)
		req = c.prompt(id, "hello")
		p.agents.last().end(`{}`)
		c.wantError(req, jsonrpc.Internal, "internal")
		back := p.client("k", 1)
		if got := back.answer(back.resume(id, "[]")); got == nil || !strings.Contains(got.result, `"last_turn":{"error":{"code":-32603`) {
			t.Errorf("%+v", got)
		}
	})
}

// To delete a fork that has the id of what it is of would delete both.
func TestAForkThatIsTheSameSessionIsNone(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Fork: true, Delete: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		p.agents.is(func(a *agents) { a.hold = true })
		req := c.fork(id)
		p.agents.last().end(`{"sessionId":"inner-1"}`)
		c.wantError(req, jsonrpc.Internal, "internal")
		if got := c.answer(req).err; got != nil && !strings.Contains(got.Message, acp.MethodSessionFork) {
			t.Errorf("it says %q", got.Message)
		}
		if n := p.records.Figures().Records; n != 1 {
			t.Errorf("%d records", n)
		}
		if a := p.agents.last(); !a.isDead() || slices.ContainsFunc(a.see(&a.backs), func(s string) bool { return strings.HasPrefix(s, acp.MethodSessionDelete) }) {
			t.Errorf("the agent of the fork was asked %q", a.see(&a.backs))
		}
		if _, owns := c.session(id); !owns {
			t.Error("the session that it is of is gone")
		}
		c.close(id)
		p.atRest()
	})
}

func TestWhatAnAgentDidNotOpenIsToldByItsName(t *testing.T) {
	for method, again := range map[string]func(c *client, id string) uint64{
		acp.MethodSessionResume: func(c *client, id string) uint64 { return c.resume(id, "[]") },
		acp.MethodSessionLoad:   func(c *client, id string) uint64 { return c.load(id, "[]") },
		acp.MethodSessionFork:   (*client).fork,
	} {
		t.Run(method, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(true, acp.SessionCapabilities{Resume: true, Fork: true})
				id := asleep(p, "[]")
				p.agents.is(func(a *agents) { a.hold = true })
				c := p.client("k", 1)
				req := again(c, id)
				p.after(2 * p.s.cfg.NewTimeout)
				c.wantError(req, jsonrpc.Internal, "agent_timeout")
				if got := c.answer(req); got != nil && got.err != nil && !strings.Contains(got.err.Message, method+" ") {
					t.Errorf("it says %q", got.err.Message)
				}
			})
		})
	}
}
