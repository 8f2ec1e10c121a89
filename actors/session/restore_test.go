package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// offering has the agents of a test offer that.
func (a *agents) offering(load bool, s acp.SessionCapabilities) {
	a.mu.Lock()
	a.info.LoadSession, a.info.Session = load, s
	info := a.info
	a.mu.Unlock()
	a.pod.s.learned.learn(&info)
}

// asleep is a session of a client that left, and whose agent was stopped after a turn.
func asleep(p *pod, servers string) (id string) {
	c := p.client("k", 1)
	id = c.opened(servers)
	c.prompt(id, "hello")
	p.agents.last().end(`{"stopReason":"end_turn"}`)
	c.leave()
	p.after(p.s.cfg.SessionTTL)
	p.atRest()
	return id
}

func TestASuspendedConversationIsBroughtBackWithoutAWordOfIt(t *testing.T) {
	for name, row := range map[string]struct {
		load   bool
		resume bool
		method string
	}{
		"by the agent's resume": {true, true, acp.MethodSessionResume},
		"by its load":           {true, false, acp.MethodSessionLoad},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(row.load, acp.SessionCapabilities{Resume: row.resume})
				id := asleep(p, "[]")
				p.agents.is(func(a *agents) { a.past = []string{"hello", "echo: hello"} })
				c := p.client("k", 1)
				req := c.resume(id, "[]")
				if got := accountOf(t, c.answer(req)); got.Agent != "restored" || got.MissedUpdates != 0 || got.State != "idle" {
					t.Errorf("%+v", got)
				}
				a := p.agents.last()
				if got := a.see(&a.backs); len(got) != 1 || !strings.HasPrefix(got[0], row.method+` {`) || !strings.Contains(got[0], `"sessionId":"inner-1"`) || !strings.Contains(got[0], `"openab"`) {
					t.Errorf("the agent was asked %q", got)
				}
				a.say("of the past, and late")
				a.tellNews()
				if said := texts(c.heard()); !slices.Equal(said[1:], []string{"update"}) {
					t.Errorf("it heard %q", said)
				}
				turn := c.prompt(id, "go on")
				a.say("of now")
				a.end(`{"stopReason":"end_turn"}`)
				c.want(turn, `{"stopReason":"end_turn"}`)
				if said := texts(c.heard()); said[0] != "of now" {
					t.Errorf("it heard %q", said)
				}
				if got := accountOf(t, c.answer(c.resume(id, "[]"))); got.Agent != "alive" {
					t.Errorf("told twice: %+v", got)
				}
			})
		})
	}
}

// tellNews is an update that is no history.
func (f *fakeAgent) tellNews() {
	f.do(func(*kernel.Ctx) error {
		f.tellRaw([]byte(`{"sessionId":"` + f.id() + `","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`))
		return nil
	})
}

func TestAnAgentThatHasForgottenBeginsAnew(t *testing.T) {
	for _, code := range []int{-32002, -32602, -32601} {
		inPod(t, nil, func(p *pod) {
			p.agents.offering(true, acp.SessionCapabilities{Resume: true})
			id := asleep(p, "[]")
			p.agents.is(func(a *agents) { a.back = func(string) error { return &jsonrpc.Error{Code: code, Message: "unknown"} } })
			c := p.client("k", 1)
			req := c.resume(id, "[]")
			if got := accountOf(t, c.answer(req)); got.Agent != "fresh" {
				t.Errorf("%d: %+v", code, got)
			}
			a := p.agents.last()
			asked := map[bool]int{true: 2, false: 1}[code == -32601] // a method that it does not know says nothing of another one
			if backs, news := a.see(&a.backs), a.see(&a.news); len(backs) != asked || len(news) != 1 || !strings.Contains(news[0], `"openab"`) {
				t.Errorf("%d: the agent was asked %q, then %q", code, backs, news)
			}
			if strings.Contains(c.answer(req).result, "inner") {
				t.Errorf("%d: the agent's id shows: %s", code, c.answer(req).result)
			}
			if d, _, _ := p.records.has(id); d.Agent != a.id() {
				t.Errorf("%d: the record has the id %q", code, d.Agent)
			}
			c.want(c.close(id), "{}")
		})
	}
}

func TestAFailureThatMayPassKeepsTheConversation(t *testing.T) {
	for name, fail := range map[string]func(p *pod){
		"it wants a login": func(p *pod) {
			p.agents.is(func(a *agents) {
				a.back = func(string) error { return &jsonrpc.Error{Code: -32000, Message: "log in"} }
			})
		},
		"it exits":        func(p *pod) { p.agents.is(func(a *agents) { a.back = func(string) error { return agentExit(1) } }) },
		"it cannot start": func(p *pod) { p.agents.is(func(a *agents) { a.start = startError(3) }) },
		"it says nothing": func(p *pod) { p.agents.is(func(a *agents) { a.hold = true }) },
		"it has no folder": func(p *pod) {
			p.s.folders = func(string, *Params) (Folders, *jsonrpc.Error) { return Folders{}, badFolder("cwd") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.offering(true, acp.SessionCapabilities{Resume: true})
				id := asleep(p, "[]")
				folders := p.s.folders
				fail(p)
				c := p.client("k", 1)
				req := c.resume(id, "[]")
				p.after(2 * p.s.cfg.NewTimeout) // with the facade's entry, and without
				if got := c.answer(req); got == nil || got.err == nil {
					t.Fatalf("%+v", got)
				}
				p.atRest()
				p.s.folders = folders
				p.agents.is(func(a *agents) { a.back, a.start, a.hold = nil, nil, false })
				if got := accountOf(t, c.answer(c.resume(id, "[]"))); got.Agent != "restored" {
					t.Errorf("%+v", got)
				}
				a := p.agents.last()
				if got := a.see(&a.backs); len(got) != 1 || !strings.Contains(got[0], `"inner-1"`) {
					t.Errorf("the next agent was asked %q", got)
				}
			})
		})
	}
}

// An agent that dies between two turns: the next prompt, or the next client, finds another that knows all of it.
func TestAnAgentThatDiedIsReplacedByOneThatRemembers(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(true, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id := c.opened(roomServer)
		p.agents.last().exit(3)
		c.heard()
		turn := c.prompt(id, "hello")
		a := p.agents.last()
		if said := c.heard(); !strings.Contains(strings.Join(said, "\n"), `"`+methodAgent+`","params":{"sessionId":"`+id+`","agent":"restored"}`) {
			t.Errorf("it heard %q", said)
		}
		a.end(`{"stopReason":"end_turn"}`)
		c.want(turn, `{"stopReason":"end_turn"}`)
		if got := a.see(&a.prompts); len(got) != 1 || !strings.Contains(got[0], `"inner-1"`) || len(a.see(&a.news)) != 0 {
			t.Errorf("the second agent got %q and %q", got, a.see(&a.news))
		}
		c.leave()
		a.exit(3)
		again := p.client("k", 1)
		if got := accountOf(t, again.answer(again.resume(id, roomServer))); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if p.agents.count() != 3 || again.frames("mcp/connect") != 1 {
			t.Errorf("%d agents, %q", p.agents.count(), again.mcp)
		}
	})
}

// A client that comes back while an agent is brought up for a turn gets its answer when that is there, and the turn its end.
func TestAResumeBeforeTheAgentIsBack(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id := c.opened("[]")
		p.agents.last().exit(3)
		p.agents.is(func(a *agents) { a.hold = true })
		turn := c.prompt(id, "hello")
		young := p.client("k", 1)
		req := young.resume(id, "[]")
		c.wantError(turn, jsonrpc.Busy, "superseded")
		if young.answer(req) != nil {
			t.Fatal("answered before anybody knows whether the conversation is back")
		}
		p.agents.last().end(`{}`)
		if got := accountOf(t, young.answer(req)); got.Agent != "restored" || got.State != "running" {
			t.Errorf("%+v", got)
		}
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		if said := texts(young.heard()); !slices.Contains(said, acp.MethodTurnEnded) {
			t.Errorf("%q", said)
		}
		young.leave()
		p.after(5 * time.Hour)
		p.atRest()
	})
}

// A session whose agent is gone, at the cap: who comes back and finds no place is refused before anything is touched.
func TestAResumeThatFindsNoPlaceTouchesNothing(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		p.agents.offering(false, acp.SessionCapabilities{Resume: true})
		c := p.client("k", 1)
		id := c.opened(roomServer)
		p.agents.last().exit(3)
		other := p.client("l", 1)
		work := other.opened("[]")
		turn := other.prompt(work, "work")
		young := p.client("k", 1)
		p.refused(young, young.resume(id, roomServer), "max_sessions", 1)
		if _, owns := c.session(id); !owns || c.frames("mcp/disconnect") != 0 || len(young.mcp) != 0 {
			t.Errorf("owner %v, %q, %q", owns, c.mcp, young.mcp)
		}
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		other.want(turn, `{"stopReason":"end_turn"}`)
		if got := accountOf(t, young.answer(young.resume(id, roomServer))); got.Agent != "restored" {
			t.Errorf("%+v", got)
		}
		if _, owns := other.session(work); owns || c.frames("mcp/disconnect") != 1 || young.frames("mcp/connect") != 1 {
			t.Errorf("%q, %q", c.mcp, young.mcp)
		}
		c.leave()
		young.leave()
		other.leave()
		p.after(5 * time.Hour)
		p.atRest()
	})
}

// A client that declares anew goes on meanwhile: its next prompt does not wait for the record.
func TestAPromptBehindAResumeOnTheSameConnection(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		p.req++
		req := p.req
		params, _ := ParseResume([]byte(`{"sessionId":"` + id + `","cwd":"/","mcpServers":` + roomServer + `}`))
		turn := uint64(0)
		p.records.is(func(s *records) {
			s.fail = func(op string) error {
				if op == "put" && turn == 0 {
					turn = c.promptSoon(id, "hello")
				}
				return nil
			}
		})
		if err := p.sessions.Tell(Resume{Client: c, Req: req, Params: params}); err != nil {
			t.Fatal(err)
		}
		p.settle()
		if got := c.answer(req); turn == 0 || got == nil || got.err != nil || c.answer(turn) != nil {
			t.Fatalf("%+v, %+v", got, c.answer(turn))
		}
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(turn, `{"stopReason":"end_turn"}`)
	})
}
