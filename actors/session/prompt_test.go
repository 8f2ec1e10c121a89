package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

func TestUpdatesPassInOrderAndTheAnswerComesLast(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.promptSoon(id, "hello")
		p.settle()
		a := p.agents.last()
		if want := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"hello"}]}`, a.id()); len(a.see(&a.prompts)) != 1 || a.see(&a.prompts)[0] != want {
			t.Fatalf("the agent got %q", a.see(&a.prompts))
		}
		a.do(func(*kernel.Ctx) error { // all in one go: the answer must not overtake
			for i := range 50 {
				a.tellUpdate(fmt.Sprint(i))
			}
			a.turn.Answer(replyFor(`{"stopReason":"end_turn","usage":{"x":1.50}}`), nil)
			return nil
		})
		got := texts(c.heard())
		if len(got) != 51 || got[50] != fmt.Sprintf("answer %d", req) {
			t.Fatalf("%d frames, last %q", len(got), got[len(got)-1])
		}
		for i := range 50 {
			if got[i] != fmt.Sprint(i) {
				t.Fatalf("frame %d is %q", i, got[i])
			}
		}
		c.want(req, `{"stopReason":"end_turn","usage":{"x":1.50}}`)
		a.say("late")
		if got := texts(c.heard()); !slices.Equal(got, []string{"late"}) {
			t.Errorf("an update after the turn: %q", got)
		}
	})
}

func TestAnUpdatePassesToTheByteSaveForTheID(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		odd := `{ "update":{"sessionUpdate":"never_seen","n":12345678901234567890,"s":"\ud800\u003c","s":"twice"} ,"sessionId":"inner-1" ,"x":[1.0e2]}`
		a.do(func(*kernel.Ctx) error { a.tellRaw([]byte(odd)); return nil })
		want := `{"jsonrpc":"2.0","method":"session/update","params":` + strings.Replace(odd, "inner-1", id, 1) + `}`
		if got := c.heard(); len(got) != 1 || got[0] != want {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
		for _, bad := range []string{`{"sessionId":"another","update":{}}`, `{"update":{}}`, `[]`, `{"sessionId":7}`} {
			a.do(func(*kernel.Ctx) error { a.tellRaw([]byte(bad)); return nil })
			if got := c.heard(); len(got) != 0 {
				t.Errorf("%s was passed on: %q", bad, got)
			}
		}
	})
}

func TestASecondPromptIsBusy(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		first, second := c.promptSoon(id, "one"), c.promptSoon(id, "two")
		p.settle()
		c.wantError(second, jsonrpc.Busy, "busy")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(first, `{"stopReason":"end_turn"}`)
		third := c.prompt(id, "three")
		p.agents.last().end(`{"stopReason":"refusal"}`)
		c.want(third, `{"stopReason":"refusal"}`)
	})
}

func TestABadPromptLeavesTheSessionFree(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		for _, prompt := range []string{`[]`, `[{"type":"text","text":" \n"}]`, `[{"type":"image","data":"","mimeType":"image/png"}]`, `"hello"`, `[{"text":"x"}]`} {
			p.req++
			c.tell(id, Prompt{Client: c, Req: p.req, Params: []byte(`{"sessionId":"x","prompt":` + prompt + `}`)})
			p.settle()
			c.wantError(p.req, jsonrpc.InvalidParams, "")
		}
		if a := p.agents.last(); len(a.see(&a.prompts)) != 0 {
			t.Errorf("the agent got %q", a.see(&a.prompts))
		}
		good := c.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(good, `{"stopReason":"end_turn"}`)
	})
}

func TestACancelInTheNextFrameFindsItsPrompt(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.promptSoon(id, "hello")
		c.tell(id, Cancel{Client: c})
		p.settle()
		a := p.agents.last()
		if want := `session/cancel {"sessionId":"inner-1"}`; !slices.Equal(a.see(&a.notes), []string{want}) {
			t.Fatalf("the agent was told %q", a.see(&a.notes))
		}
		a.end(`{"stopReason":"cancelled","_meta":{"why":1}}`)
		c.want(req, `{"stopReason":"cancelled","_meta":{"why":1}}`)
	})
}

func TestAfterACancelEveryOutcomeIsCancelled(t *testing.T) {
	for name, end := range map[string]func(a *fakeAgent){
		"end_turn": func(a *fakeAgent) { a.end(`{"stopReason":"end_turn"}`) },
		"an error": func(a *fakeAgent) {
			a.fail(jsonrpc.ParseError([]byte(`{"code":-32603,"message":"Internal service failure"}`)))
		},
		"nonsense":  func(a *fakeAgent) { a.end(`[]`) },
		"an exit":   func(a *fakeAgent) { a.exit(3) },
		"its words": func(a *fakeAgent) { a.say("x", "y"); a.end(`{"stopReason":"max_tokens"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("", 0)
				id := c.opened("[]")
				req := c.prompt(id, "hello")
				c.tell(id, Cancel{Client: c, Req: req})
				p.settle()
				if c.answer(req) != nil {
					t.Fatal("answered before the agent had its say")
				}
				end(p.agents.last())
				c.want(req, `{"stopReason":"cancelled"}`)
				if name == "its words" {
					if got := texts(c.heard()); !slices.Equal(got, []string{"x", "y", fmt.Sprintf("answer %d", req)}) {
						t.Errorf("%q", got)
					}
				}
			})
		})
	}
}

func TestAnAgentThatDoesNotEndItsTurnIsStopped(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.slow = 3 * time.Second
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.prompt(id, "hello")
		c.tell(id, Cancel{Client: c})
		p.after(p.s.cfg.CancelTimeout - time.Millisecond)
		if c.answer(req) != nil {
			t.Fatal("answered too early")
		}
		p.after(time.Millisecond)
		c.want(req, `{"stopReason":"cancelled"}`)
		if p.s.Tokens().Live() != 0 {
			t.Error("the token of the agent that is being stopped works")
		}
		next := c.prompt(id, "again") // while the old one is still ending
		c.heard()
		p.agents.last().tellUpdate("of the turn before")
		p.settle()
		if said := texts(c.heard()); len(said) != 0 {
			t.Errorf("what a stopped agent still says went into the next turn: %q", said)
		}
		if p.agents.count() != 1 {
			t.Error("a second agent runs beside the first")
		}
		p.after(3 * time.Second)
		if p.agents.count() != 2 || p.s.Tokens().Live() != 1 {
			t.Fatalf("%d agents were started, %d tokens", p.agents.count(), p.s.Tokens().Live())
		}
		a := p.agents.last()
		if len(a.see(&a.news)) != 1 || len(a.see(&a.prompts)) != 1 {
			t.Errorf("the next agent got %q, %q", a.see(&a.news), a.see(&a.prompts))
		}
		a.say("fresh")
		a.end(`{"stopReason":"end_turn"}`)
		c.want(next, `{"stopReason":"end_turn"}`)
		if got := texts(c.heard()); !slices.Contains(got, "_acpod/agent") {
			t.Errorf("the client was not told that the agent is another: %q", got)
		}
	})
}

func TestSilenceEndsATurn(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		idle := p.s.cfg.TurnIdleTimeout
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.prompt(id, "hello")
		a := p.agents.last()
		p.after(idle - time.Second)
		a.say("a sign of life")
		p.after(idle - time.Second)
		if c.answer(req) != nil {
			t.Fatal("a line of the agent did not count")
		}
		p.after(time.Second)
		if len(a.see(&a.notes)) != 1 {
			t.Errorf("the agent was told %q", a.see(&a.notes))
		}
		next := c.prompt(id, "too early")
		c.wantError(next, jsonrpc.Busy, "busy")
		if c.answer(req) != nil {
			t.Fatal("the turn was answered while the agent still had it: the next prompt would find it busy")
		}
		a.end(`{"stopReason":"end_turn"}`)
		c.wantError(req, jsonrpc.Internal, "idle")
		third := c.prompt(id, "now")
		a.end(`{"stopReason":"end_turn"}`)
		c.want(third, `{"stopReason":"end_turn"}`)
	})
}

// agent.turn_idle_timeout is reset by any line of the agent, also by one that is no message.
func TestALineThatSaysNothingIsNoSilence(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		idle := p.s.cfg.TurnIdleTimeout
		c := p.client("", 0)
		req := c.prompt(c.opened("[]"), "hello")
		p.agents.last().noise.Add(3)
		p.after(idle + time.Second)
		if c.answer(req) != nil {
			t.Fatal("a line of the agent did not count")
		}
		p.after(idle + p.s.cfg.CancelTimeout)
		c.wantError(req, jsonrpc.Internal, "idle")
	})
}

func TestAnOpenToolCallIsNoSilence(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(p *pod, id string, c *client)
		bounded    bool
	}{
		"in the facade": {
			begin: func(_ *pod, id string, c *client) { c.tell(id, capability.InFlight{Open: true}) },
			end:   func(_ *pod, id string, c *client) { c.tell(id, capability.InFlight{}) },
		},
		"as the agent reports it": {
			begin: func(p *pod, _ string, _ *client) { toolCall(p, "tool_call", "in_progress") },
			end:   func(p *pod, _ string, _ *client) { toolCall(p, "tool_call_update", "completed") }, bounded: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				idle := p.s.cfg.TurnIdleTimeout
				cl := p.client("", 0)
				id := cl.opened("[]")
				req := cl.prompt(id, "hello")
				c.begin(p, id, cl)
				p.after(2 * idle)
				if cl.answer(req) != nil {
					t.Fatal("the turn ended under an open call")
				}
				c.end(p, id, cl)
				p.after(idle - time.Second)
				if cl.answer(req) != nil {
					t.Fatal("the end of a call does not count")
				}
				p.after(time.Second)
				p.agents.last().end(`{"stopReason":"cancelled"}`)
				cl.wantError(req, jsonrpc.Internal, "idle")
				if !c.bounded {
					return
				}
				req = cl.prompt(id, "again")
				c.begin(p, id, cl)
				p.after(p.s.cfg.CallMax + 2*idle + p.s.cfg.CancelTimeout)
				cl.wantError(req, jsonrpc.Internal, "idle")
			})
		})
	}
}

// A call that an agent never reported as done belongs to its turn: the next one's silence is silence.
func TestAnOpenToolCallOfTheTurnBeforeIsForgotten(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		toolCall(p, "tool_call", "in_progress")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		req := c.prompt(id, "again")
		p.after(p.s.cfg.TurnIdleTimeout + p.s.cfg.CancelTimeout)
		c.wantError(req, jsonrpc.Internal, "idle")
	})
}

func toolCall(p *pod, kind, status string) {
	a := p.agents.last()
	a.do(func(*kernel.Ctx) error {
		a.tellRaw(fmt.Appendf(nil, `{"sessionId":%q,"update":{"sessionUpdate":%q,"toolCallId":"t1","title":"x","status":%q}}`, a.id(), kind, status))
		return nil
	})
}

func TestAnAgentThatExitsInATurn(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened(roomServer)
		req := c.prompt(id, "hello")
		a := p.agents.last()
		a.do(func(*kernel.Ctx) error { // its last words come first, though its exit overtakes them
			a.tellUpdate("last words")
			return agentExit(3)
		})
		c.wantError(req, jsonrpc.Internal, "agent_exited")
		if got := texts(c.heard()); !slices.Equal(got, []string{"last words", fmt.Sprintf("answer %d", req)}) {
			t.Errorf("%q", got)
		}
		if p.s.Tokens().Live() != 0 || p.s.Agents() != 0 {
			t.Error("the token or the agent lives on")
		}
		if c.frames("mcp/disconnect") != 0 {
			t.Error("the tunnel went with the agent")
		}
		next := c.prompt(id, "again")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(next, `{"stopReason":"end_turn"}`)
	})
}

func TestAnAgentsErrorPassesAsItCame(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.prompt(id, "hello")
		raw := `{"code":-32000,"message":"Authentication required","data":{"authMethods":[1.0]}}`
		p.agents.last().fail(jsonrpc.ParseError([]byte(raw)))
		if got := c.answer(req); got == nil || got.err == nil || string(got.err.Raw()) != raw {
			t.Errorf("%+v", got)
		}
	})
}

func TestAPromptOfSomebodyElseIsThatOfAnUnknownID(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c, other := p.client("", 0), p.client("", 0)
		id := c.opened("[]")
		ref, _ := c.session(id)
		for _, m := range []kernel.Msg{Prompt{Client: other, Req: 91}, Close{Client: other, Req: 92}, Cancel{Client: other}} {
			if err := ref.Tell(m); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		other.wantError(91, jsonrpc.InvalidParams, "")
		other.wantError(92, jsonrpc.InvalidParams, "")
		if _, ok := c.session(id); !ok {
			t.Error("a stranger closed it")
		}
	})
}

func TestADrainLetsTurnsEndAndTakesNoMore(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id, other := c.opened("[]"), c.opened("[]")
		req := c.prompt(other, "work")
		done := make(chan error, 1)
		go func() { done <- p.s.Drain(canceledAfter(time.Minute)) }()
		p.settle()
		c.wantError(c.prompt(id, "more"), jsonrpc.Overload, "draining")
		c.wantError(c.prompt(other, "waiting would be in vain"), jsonrpc.Overload, "draining")
		c.wantError(c.open("[]"), jsonrpc.Overload, "draining")
		select {
		case err := <-done:
			t.Fatalf("the drain did not wait: %v", err)
		default:
		}
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.want(req, `{"stopReason":"end_turn"}`)
	})
}

// A slow client makes the agent wait; it loses nothing, and answers keep their place.
func TestASlowClientLosesNothing(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.prompt(id, "hello")
		a := p.agents.last()
		c.mu.Lock()
		c.full = true
		c.mu.Unlock()
		a.say("1", "2", "3")
		a.end(`{"stopReason":"end_turn"}`)
		if n, bytes := a.credits.Taken(); n != 1 || bytes < 3*100 {
			t.Errorf("%d lines with %d bytes are out while nothing is read, want the one that three became, with the bytes of all", n, bytes)
		}
		if c.answer(req) != nil {
			t.Fatal("the answer overtook what waits")
		}
		c.mu.Lock()
		c.full = false
		c.mu.Unlock()
		p.after(200 * time.Millisecond)
		if got := texts(c.heard()); !slices.Equal(got, []string{"123", fmt.Sprintf("answer %d", req)}) {
			t.Errorf("%q", got)
		}
		if n, _ := a.credits.Taken(); n != 0 {
			t.Errorf("%d credits were not given back", n)
		}
	})
}

// A crash of our own code answers what was open, revokes the token and closes the tunnels; the session can be resumed.
func TestACrashOfTheSessionLeavesNothingOpen(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened(roomServer)
		req := c.prompt(id, "hello")
		ref, _ := c.session(id)
		if err := ref.Tell(attach{}); err != nil { // a message that no session survives
			t.Fatal(err)
		}
		p.after(time.Second)
		c.wantError(req, jsonrpc.Internal, "internal")
		if _, ok := c.session(id); ok {
			t.Error("the client was not told that it lost the session")
		}
		if p.s.Tokens().Live() != 0 || p.s.Agents() != 0 || p.s.Turns() != 0 || c.frames("mcp/disconnect") != 1 {
			t.Errorf("%d tokens, %d agents, %d turns, %q", p.s.Tokens().Live(), p.s.Agents(), p.s.Turns(), c.mcp)
		}
		got := c.answer(c.resume(id, roomServer))
		if got == nil || got.err != nil || !strings.Contains(got.result, `"agent":"fresh"`) {
			t.Fatalf("%+v", got)
		}
		req = c.prompt(id, "again")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(req, `{"stopReason":"end_turn"}`)
		c.close(id)
		p.atRest()
	})
}
