package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// askAgent sends authenticate or logout.
func (c *client) askAgent(method, params string) uint64 {
	c.p.t.Helper()
	c.p.req++
	held, err := c.p.k.Account().Acquire(100)
	if err != nil {
		c.p.t.Fatal(err)
	}
	if err := c.p.sessions.Tell(Ask{Client: c, Req: c.p.req, Method: method, Params: []byte(params), Held: held}); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.p.req
}

func TestALoginRunsInAProcessWithoutASession(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(0)
		req := c.askAgent(acp.MethodAuthenticate, `{"methodId":"key", "_meta":{"x":1.0}}`)
		a := p.agents.last()
		if got := a.other(0); got.method != "authenticate" || got.params != `{"methodId":"key", "_meta":{"x":1.0}}` || len(a.see(&a.news)) != 0 || a.token() != "" {
			t.Errorf("the agent was asked %+v after %q", got, a.see(&a.news))
		}
		if node, ok := p.node("test/sessions/errand-1"); !ok || node.Kind != "errand" || node.Attrs["method"] != "authenticate" {
			t.Errorf("the tree shows %+v", node)
		}
		a.ask(1, "elicitation/create", `{"mode":"url","requestId":1,"message":"m"}`)
		a.ask(2, "_vendor/ask", `{"x":1}`)
		a.ask(3, "fs/read_text_file", `{"sessionId":"x"}`)
		a.ask(4, acp.MethodPermission, `{"sessionId":"x"}`)
		want := []string{fmt.Sprintf(`ask at once elicitation/create {"mode":"url","requestId":"r%d","message":"m"}`, req), `ask at once _vendor/ask {"x":1}`}
		if said := c.heard(); !slices.Equal(said, want) {
			t.Errorf("the client was asked %q", said)
		}
		c.reply("0", `{"action":"accept"}`, nil)
		a.note("$/cancel_request", `{"requestId":2}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"3 error -32602", "4 error -32601", `1 {"action":"accept"}`, "2 error -32800"}) {
			t.Errorf("the agent was answered %q", got)
		}
		p.agents.info.Logout = true // as it says from now on
		a.reply(0, `{"_meta":{"theirs":1}}`, nil)
		c.want(req, `{"_meta":{"theirs":1}}`)
		if info, _ := p.s.Learned().Now(); !info.Logout {
			t.Error("what the agent offers was not learned anew")
		}
		out := c.askAgent(acp.MethodLogout, `{}`)
		p.agents.last().reply(0, `{}`, nil)
		c.want(out, `{}`)
		if a.isDead(); !a.isDead() || p.agents.count() != 2 {
			t.Errorf("%d agents, the first is gone: %v", p.agents.count(), a.isDead())
		}
		p.atRest()
	})
}

func TestWhatALoginEndsIn(t *testing.T) {
	for name, row := range map[string]struct {
		method string
		do     func(p *pod, c *client, req uint64)
		code   int
		reason string
	}{
		"the agent's own error":    {"authenticate", func(p *pod, _ *client, _ uint64) { p.agents.last().reply(0, "", &jsonrpc.Error{Code: -32055}) }, -32055, ""},
		"the agent exits":          {"authenticate", func(p *pod, _ *client, _ uint64) { p.agents.last().exit(3) }, jsonrpc.Internal, "agent_exited"},
		"the agent says nothing":   {"authenticate", func(p *pod, _ *client, _ uint64) { p.after(61 * time.Second) }, jsonrpc.Internal, "agent_timeout"},
		"the client cancels":       {"authenticate", func(p *pod, c *client, req uint64) { _ = p.sessions.Tell(Cancel{Client: c, Req: req}); p.settle() }, jsonrpc.Cancelled, ""},
		"the client is gone":       {"authenticate", func(_ *pod, c *client, _ uint64) { c.leave() }, 0, ""},
		"logout is not offered":    {"logout", func(*pod, *client, uint64) {}, jsonrpc.MethodNotFound, ""},
		"the pod is stopping":      {"authenticate", func(p *pod, _ *client, _ uint64) { p.sessions.Stop(kernel.ErrShutdown); p.settle() }, jsonrpc.Overload, "draining"},
		"the process cannot start": {"authenticate", nil, jsonrpc.Internal, "agent_exited"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("", 0)
				if row.do == nil {
					p.agents.start = startError(1)
				}
				req := c.askAgent(row.method, `{}`)
				if row.do != nil {
					row.do(p, c, req)
				}
				if row.code == 0 {
					if got := c.answer(req); got != nil {
						t.Errorf("a client that is gone was answered %+v", got)
					}
				} else {
					c.wantError(req, row.code, row.reason)
				}
				if row.reason != "draining" { // the supervisor's next generation gives its slots back
					p.atRest()
				}
			})
		})
	}
}

// A login takes a place of an agent: it waits for one that is being freed, and is refused where all are busy.
func TestALoginTakesAPlace(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		turn := c.prompt(id, "hello")
		c.wantError(c.askAgent(acp.MethodAuthenticate, `{}`), jsonrpc.Overload, "max_sessions")
		p.agents.last().end(endTurn)
		c.want(turn, endTurn)
		login := c.askAgent(acp.MethodAuthenticate, `{}`) // suspends the session, which is at rest
		c.wantError(c.open("[]"), jsonrpc.Overload, "max_sessions")
		p.agents.last().reply(0, `{}`, nil)
		c.want(login, `{}`)
		if said := strings.Join(texts(c.heard()), " "); !strings.Contains(said, methodSuspended) {
			t.Errorf("the client heard %s", said)
		}
		p.atRest()
	})
}

func TestLoginsAreBounded(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 100 }, func(p *pod) {
		c := p.client("", 0)
		for range maxErrands {
			c.askAgent(acp.MethodAuthenticate, `{}`)
		}
		c.wantError(c.askAgent(acp.MethodAuthenticate, `{}`), jsonrpc.Overload, "max_sessions")
		c.leave()
		p.atRest()
	})
}

func TestWithoutADriverNobodyLogsIn(t *testing.T) {
	inPod(t, func(c *Config) { c.Driver = DriverNone }, func(p *pod) {
		c := p.client("", 0)
		c.wantError(c.askAgent(acp.MethodAuthenticate, `{}`), jsonrpc.MethodNotFound, "")
	})
}
