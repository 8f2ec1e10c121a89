package session

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestASessionOpensWithTheAgentsResultAndOurs(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		req := c.open(roomServer)
		got := c.answer(req)
		if got == nil || got.err != nil {
			t.Fatalf("%+v", got)
		}
		var result struct {
			SessionID string         `json:"sessionId"`
			Modes     any            `json:"modes"`
			Meta      map[string]any `json:"_meta"`
		}
		if err := json.Unmarshal([]byte(got.result), &result); err != nil {
			t.Fatal(err)
		}
		if !ValidID(result.SessionID) || strings.Contains(got.result, "inner-1") {
			t.Errorf("the agent's id shows: %s", got.result)
		}
		if !strings.Contains(got.result, `"extra":1.50`) || result.Meta["theirs"] != true {
			t.Errorf("the agent's own members did not pass: %s", got.result)
		}
		if result.Modes == nil {
			t.Errorf("the agent's modes did not pass: %s", got.result)
		}
		if result.Meta[acp.MetaServers] == nil || result.Meta[acp.MetaFacade] != nil {
			t.Errorf("_meta: %v", result.Meta)
		}
		a := p.agents.last()
		if want := `{"cwd":"` + a.cfg.Dir + `","mcpServers":[{"type":"http","name":"openab","url":"http://127.0.0.1:1/mcp","headers":[{"name":"Authorization","value":"Bearer ` +
			a.token() + `"}]}]}`; a.see(&a.news)[0] != want {
			t.Errorf("the agent got %s\nwant %s", a.see(&a.news)[0], want)
		}
		if tag, ok := resolves(p.s.tokens, a.token()); !ok || tag != acp.SessionTag(result.SessionID) {
			t.Errorf("the agent's token resolves to %q, %v", tag, ok)
		}
		if _, ok := p.node("test/sessions/" + acp.TreeName(result.SessionID) + "/desk"); !ok {
			t.Error("there is no desk under the name of the contract")
		}
		c.close(result.SessionID)
		p.atRest()
	})
}

// Some agents hold session/new until their MCP servers answered, and those are behind the client's tunnels.
func TestTunnelsAreServedWhileTheAgentHoldsSessionNew(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.is(func(a *agents) { a.mute = true })
		c := p.client("", 0)
		req := c.open(roomServer)
		if c.frames("mcp/connect") != 1 || !strings.Contains(strings.Join(c.mcp, "\n"), "tools/list") {
			t.Errorf("the tunnel waits for the agent: %q", c.mcp)
		}
		if c.answer(req) != nil {
			t.Error("answered before the agent did")
		}
		caller, ok := p.s.tokens.Resolve(sum(p.agents.last().token()))
		if !ok || len(caller.View.Load().Catalog()) != 1 {
			t.Error("the facade shows nothing while session/new is pending")
		}
		c.leave()
		p.atRest()
	})
}

func TestARefusedOpenTouchesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*Config)
		before func(p *pod)
		cwd    string
		code   int
		reason string
	}{
		"a bad folder":      {cwd: "/etc", code: jsonrpc.InvalidParams, reason: "cwd"},
		"the session cap":   {set: func(c *Config) { c.Sessions = 1 }, before: func(p *pod) { p.client("o", 0).opened("[]") }, cwd: "/", code: jsonrpc.Overload, reason: "sessions"},
		"all agents busy":   {set: func(c *Config) { c.MaxSessions = 1 }, before: busyAgent, cwd: "/", code: jsonrpc.Overload, reason: "max_sessions"},
		"the pod is ending": {before: func(p *pod) { _ = p.s.Drain(canceled()) }, cwd: "/", code: jsonrpc.Overload, reason: "draining"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, c.set, func(p *pod) {
				if c.before != nil {
					c.before(p)
				}
				started := p.agents.count()
				cl := p.client("k", 0)
				cl.wantError(cl.openAt(c.cwd, roomServer), c.code, c.reason)
				if len(cl.mcp) != 0 || p.agents.count() != started {
					t.Errorf("a refused open sent %q and started %d agents", cl.mcp, p.agents.count()-started)
				}
			})
		})
	}
}

func busyAgent(p *pod) {
	c := p.client("o", 0)
	c.prompt(c.opened("[]"), "work")
}

func TestAnAgentThatRefusesTheFacadeIsTriedOnceWithoutIt(t *testing.T) {
	for name, mute := range map[string]bool{"an error": false, "no answer": true} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("", 0)
				if mute {
					p.agents.is(func(a *agents) { a.mute = true })
				} else {
					p.agents.refuse = func(params string) *jsonrpc.Error {
						if strings.Contains(params, "openab") {
							return jsonrpc.BadParams("no http")
						}
						return nil
					}
				}
				req := c.open(roomServer)
				if mute {
					p.agents.is(func(a *agents) { a.mute = false })
					p.after(p.s.cfg.NewTimeout)
				}
				a := p.agents.last()
				if len(a.see(&a.news)) != 2 || !strings.Contains(a.see(&a.news)[1], `"mcpServers":[]`) {
					t.Fatalf("session/new came %d times, last %s", len(a.see(&a.news)), a.see(&a.news)[len(a.see(&a.news))-1])
				}
				got := c.answer(req)
				if got == nil || got.err != nil || !strings.Contains(got.result, `"facade":{"state":"failed","reason":`) {
					t.Errorf("%+v", got)
				}
				if p.s.Tokens().Live() != 0 {
					t.Error("the token lives on")
				}
				if c.frames("mcp/disconnect") != 0 {
					t.Error("the tunnel did not survive the second try")
				}
			})
		})
	}
}

func TestAnAgentThatRefusesForGoodEndsTheSessionAndItsTunnels(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.mute, p.agents.info.MCP.HTTP = true, false
		c := p.client("", 0)
		req := c.open(roomServer)
		p.agents.last().fail(jsonrpc.ParseError([]byte(`{"code":-32000,"message":"log in","data":{"x":1}}`)))
		if got := c.answer(req); got == nil || got.err == nil || string(got.err.Raw()) != `{"code":-32000,"message":"log in","data":{"x":1}}` {
			t.Errorf("the agent's error did not pass as it came: %+v", got)
		}
		if c.frames("mcp/connect") != 1 || c.frames("mcp/disconnect") != 1 {
			t.Errorf("the tunnel was not closed: %q", c.mcp)
		}
		p.atRest()
	})
}

func TestAnAgentThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		reason string
	}{"exits": {startError(3), "agent_exited"}, "is silent": {startError(0), "agent_timeout"}} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.start = c.err
				cl := p.client("", 0)
				req := cl.open(roomServer)
				cl.wantError(req, jsonrpc.Internal, c.reason)
				if strings.Contains(cl.answer(req).err.Message, "secret") {
					t.Error("the agent's stderr reached the client")
				}
				p.atRest()
			})
		})
	}
}

// What an agent answers to session/new without naming a session is no exit of the agent and no session.
func TestAnAgentThatNamesNoSessionOpensNone(t *testing.T) {
	for _, result := range []string{`{}`, `[]`, `null`, `{"sessionId":""}`, `{"sessionId":7}`, `{"sessionId":"a","sessionId":"b"}`} {
		t.Run(result, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				p.agents.mute = true
				c := p.client("", 0)
				req := c.open(roomServer)
				p.agents.last().end(result)
				c.wantError(req, jsonrpc.Internal, "internal")
				if c.frames("mcp/disconnect") != 1 {
					t.Errorf("the tunnel was not closed: %q", c.mcp)
				}
				p.atRest()
			})
		})
	}
}

func TestWithoutHTTPTheAgentGetsNoTokenThatWorks(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.info.MCP.HTTP = false
		c := p.client("", 0)
		got := c.answer(c.open("[]"))
		if got == nil || got.err != nil || !strings.Contains(got.result, `"state":"failed"`) {
			t.Errorf("%+v", got)
		}
		if a := p.agents.last(); !strings.Contains(a.see(&a.news)[0], `"mcpServers":[]`) || p.s.Tokens().Live() != 0 {
			t.Errorf("the agent got %s, %d tokens live", a.see(&a.news)[0], p.s.Tokens().Live())
		}
	})
}

func TestWithoutAFacadeThereIsNoToken(t *testing.T) {
	inPod(t, func(c *Config) { c.FacadeURL = "" }, func(p *pod) {
		c := p.client("", 0)
		got := c.answer(c.open("[]"))
		if got == nil || got.err != nil || !strings.Contains(got.result, `"facade":{"state":"off"`) {
			t.Errorf("%+v", got)
		}
		if a := p.agents.last(); a.token() != "" || !strings.Contains(a.see(&a.news)[0], `"mcpServers":[]`) {
			t.Errorf("the agent got %s and the token %q", a.see(&a.news)[0], a.token())
		}
	})
}

func TestWithoutADriverALoopbackClientGetsTheToken(t *testing.T) {
	inPod(t, func(c *Config) { c.Driver = DriverNone; c.MaxSessions = 1 }, func(p *pod) {
		near, far := p.client("", 0), p.client("", 0)
		far.far = true
		token := func(result string) string {
			_, after, _ := strings.Cut(result, `"acpod.dev/facade":{"url":"http://127.0.0.1:1/mcp","token":"`)
			text, _, _ := strings.Cut(after, `"`)
			return text
		}
		got := near.answer(near.open(roomServer)).result
		if _, ok := resolves(p.s.tokens, token(got)); !ok {
			t.Errorf("no token that works: %s", got)
		}
		if got := far.answer(far.open(roomServer)).result; strings.Contains(got, "acpod.dev/facade") {
			t.Errorf("a remote client got a token: %s", got)
		}
		var id string
		for id = range near.sessions {
		}
		near.wantError(near.prompt(id, "hello"), jsonrpc.Internal, "no_agent")
		if p.agents.count() != 0 {
			t.Error("an agent was started")
		}
		near.leave()
		again := p.client("", 0)
		if got2 := again.answer(again.resume(id, roomServer)).result; token(got2) != token(got) {
			t.Errorf("the session's token changed over a resume: %s", got2)
		}
	})
}

// What comes before the client knows the session is kept, at most 100 updates and 1 MiB, and follows the answer in order. Who
// is not told what was too much would wait for it.
func TestWhatTheAgentSaysBeforeTheClientKnowsTheSessionComesAfter(t *testing.T) {
	frame := func(n int) int { // how long the frame of an update with n characters is
		return len(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}}}`, "sess_00000000-0000-4000-8000-000000000000")) + n
	}
	share := keptBytes / 4 // four of these fill it to the byte
	for _, test := range []struct {
		name   string
		sizes  []int // characters of each update
		first  int   // the first that is kept
		counts string
	}{
		{"as many as are kept", make([]int, 100), 0, ""},
		{"one more", make([]int, 101), 1, `"updates":1,"bytes":` + fmt.Sprint(frame(8))},
		{"twenty more", make([]int, 120), 20, `"updates":20,"bytes":` + fmt.Sprint(20*frame(8))},
		{"1 MiB", []int{share - frame(0), share - frame(0), share - frame(0), share - frame(0)}, 0, ""},
		{"1 MiB and a byte", []int{share - frame(0), share - frame(0), share - frame(0), share - frame(0) + 1}, 1, `"updates":1,"bytes":` + fmt.Sprint(share)},
		{"one of more than 1 MiB", []int{0, keptBytes - frame(0) + 1}, 2, `"updates":2,"bytes":` + fmt.Sprint(keptBytes+1+frame(8))},
	} {
		t.Run(test.name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				for i, n := range test.sizes {
					p.agents.early = append(p.agents.early, fmt.Sprintf("early%03d", i)+strings.Repeat("x", max(n-8, 0)))
				}
				c := p.client("", 0)
				c.open("[]")
				said := c.heard()
				want := []string{"answer 1"}
				if test.counts != "" {
					want = append(want, methodDropped)
					if len(said) < 2 || !strings.Contains(said[1], test.counts+`,"scope":"early_updates"`) {
						t.Errorf("the client is told %.300q", said[1])
					}
				}
				want = append(want, p.agents.early[test.first:]...)
				if got := texts(said); !slices.Equal(got, want) {
					t.Errorf("%d frames, want %d: %.200q", len(got), len(want), got)
				}
			})
		})
	}
}

// … and what waits for that answer takes no credit: the agent would wait for its client, and the client for the agent.
func TestWhatAnAgentSaysEarlyDoesNotStopIt(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.early, p.agents.mute = make([]string, 50), true
		p.client("", 0).open("[]")
		if lines, _ := p.agents.last().credits.Taken(); lines != 0 {
			t.Errorf("%d credits are taken before session/new is answered", lines)
		}
	})
}

func TestAClientThatLeavesBeforeTheAnswerLeavesNothing(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.is(func(a *agents) { a.mute = true })
		c := p.client("", 1)
		c.open(roomServer)
		c.leave()
		p.atRest()
	})
}

func TestTheListIsOnesOwn(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		list := func(c *client, params string) []string {
			p.req++
			var raw []byte
			if params != "" {
				raw = []byte(params)
			}
			if err := p.sessions.Tell(List{Client: c, Req: p.req, Params: raw}); err != nil {
				t.Fatal(err)
			}
			p.settle()
			var result struct {
				Sessions []struct {
					SessionID, Cwd, UpdatedAt string
				} `json:"sessions"`
			}
			if err := json.Unmarshal([]byte(c.answer(p.req).result), &result, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatal(err)
			}
			ids := []string{}
			for _, s := range result.Sessions {
				ids = append(ids, s.SessionID)
				if s.Cwd == "" || s.UpdatedAt == "" {
					t.Errorf("%+v", s)
				}
			}
			return ids
		}
		a, b, anonymous := p.client("k", 1), p.client("k", 2), p.client("k", 0)
		one, two := a.opened("[]"), a.opened("[]")
		three, four := b.opened("[]"), anonymous.opened("[]")
		if got := list(a, ""); !slices.Equal(got, []string{two, one}) {
			t.Errorf("a: %q", got)
		}
		if got := list(b, `{"cursor":null}`); !slices.Equal(got, []string{three}) {
			t.Errorf("b: %q", got)
		}
		if got := list(anonymous, `{}`); !slices.Equal(got, []string{four}) {
			t.Errorf("anonymous: %q", got)
		}
		if got := list(a, `{"cwd":"/nowhere"}`); len(got) != 0 {
			t.Errorf("another folder: %q", got)
		}
		a.leave()
		if got := list(p.client("k", 1), ""); !slices.Equal(got, []string{two, one}) {
			t.Errorf("the same client on another socket: %q", got)
		}
		if got := list(p.client("k", 0), ""); len(got) != 0 {
			t.Errorf("a stranger of the same key: %q", got)
		}
		if got := list(p.client("other", 1), ""); len(got) != 0 {
			t.Errorf("the same secret under another key: %q", got)
		}
	})
}

func TestCloseIsForGood(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened(roomServer)
		turn := c.prompt(id, "work")
		p.agents.last().askPermission(7)
		c.want(c.close(id), "{}")
		c.want(turn, `{"stopReason":"cancelled"}`)
		if got := p.agents.last().lastReplies(); !slices.Equal(got, []string{`7 {"outcome":{"outcome":"cancelled"}}`}) {
			t.Errorf("the permission request was answered %q", got)
		}
		if c.frames("mcp/disconnect") != 1 {
			t.Errorf("%q", c.mcp)
		}
		p.atRest()
		c.wantError(c.resume(id, "[]"), jsonrpc.InvalidParams, "")
	})
}

// Whoever has read the answer of session/close finds the session nowhere, however long its agent takes to end.
func TestAClosedSessionIsGoneBeforeItsProcessIs(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.slow = time.Second
		c := p.client("k", 1)
		id := c.opened("[]")
		token := p.agents.last().token()
		if _, ok := resolves(p.s.tokens, token); !ok {
			t.Fatal("its token does not work before")
		}
		c.want(c.close(id), "{}")
		if p.s.Agents() != 1 {
			t.Fatal("the agent has ended already: this test looks at the time before")
		}
		if _, ok := resolves(p.s.tokens, token); ok {
			t.Error("the token works on while its process is stopped")
		}
		if listed := c.listed(); strings.Contains(listed, id) {
			t.Errorf("listed: %s", listed)
		}
		c.wantError(c.resume(id, "[]"), jsonrpc.InvalidParams, "")
		p.after(time.Second)
		p.atRest()
	})
}

func TestTheAgentIsLearnedOnceAtStart(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		if info, final := p.s.Learned().Now(); !final || info == nil || !info.MCP.HTTP {
			t.Errorf("%+v, %v", info, final)
		}
		start := time.Now()
		if l := newLearned(); l.Wait(context.Background()) != nil || time.Since(start) != LearnWait {
			t.Errorf("a client waited %v", time.Since(start))
		}
	})
}
