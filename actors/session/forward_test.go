package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// pass sends a request for the agent; rest are its members behind the session's id.
func (c *client) pass(id, method, rest string) uint64 {
	c.p.t.Helper()
	c.p.req++
	held, err := c.p.k.Account().Acquire(100)
	if err != nil {
		c.p.t.Fatal(err)
	}
	c.tell(id, Forward{Client: c, Req: c.p.req, Method: method, Params: fmt.Appendf(nil, `{"sessionId":%q%s}`, id, rest), Held: held})
	c.p.settle()
	return c.p.req
}

func (c *client) cancel(id string, req uint64) {
	c.p.t.Helper()
	c.tell(id, Cancel{Client: c, Req: req})
	c.p.settle()
}

func TestARequestForTheAgentPassesToTheByteAndItsAnswerBack(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		one := c.pass(id, "_vendor/thing", ` , "n":1.50e3,"s":"\u003c\ud800","_meta":{"k":1}`)
		two := c.pass(id, "session/set_title", `,"title":"t"`)
		if got := a.other(0); got.method != "_vendor/thing" || got.params != `{"sessionId":"inner-1" , "n":1.50e3,"s":"\u003c\ud800","_meta":{"k":1}}` {
			t.Errorf("the agent was asked %s %s", got.method, got.params)
		}
		a.say("before")
		a.reply(1, `{"title":"t", "sessionId":"inner-1","x":[ ]}`, nil)
		a.reply(0, "", jsonrpc.ParseError([]byte(`{"code":-32055, "message":"theirs","data":[1.0]}`)))
		c.want(two, fmt.Sprintf(`{"title":"t", "sessionId":%q,"x":[ ]}`, id))
		if got := c.answer(one); got == nil || string(got.err.Raw()) != `{"code":-32055, "message":"theirs","data":[1.0]}` {
			t.Errorf("the agent's error came as %+v", got)
		}
		if said := texts(c.heard()); !slices.Equal(said, []string{"before", fmt.Sprint("answer ", two), fmt.Sprint("answer ", one)}) {
			t.Errorf("in the order %q", said)
		}
		c.close(id)
		p.atRest()
	})
}

func TestANotificationForTheAgentPasses(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.tell(id, Inform{Client: c, Method: "_vendor/note", Params: fmt.Appendf(nil, `{"a":1, "sessionId":%q}`, id)})
		p.settle()
		if got := p.agents.last().see(&p.agents.last().notes); !slices.Equal(got, []string{`_vendor/note {"a":1, "sessionId":"inner-1"}`}) {
			t.Errorf("the agent heard %q", got)
		}
	})
}

func TestARequestWithoutALivingAgentStartsOne(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		p.agents.last().exit(0)
		p.agents.is(func(a *agents) { a.mute = true })
		before := c.pass(id, acp.MethodSessionSetMode, `,"modeId":"y"`)
		c.prompt(id, "hello")
		after := c.pass(id, "_vendor/thing", "")
		a := p.agents.last()
		a.end(`{"sessionId":"inner-2"}`)
		if a.n != 2 || len(a.see(&a.prompts)) != 1 || a.other(0).method != acp.MethodSessionSetMode || a.other(1).method != "_vendor/thing" {
			t.Fatalf("agent %d was asked %v", a.n, a.others)
		}
		a.reply(0, `{}`, nil)
		a.reply(1, `null`, nil)
		c.want(before, "{}")
		c.want(after, "null")
		p.agents.is(func(a *agents) { a.mute, a.start = false, startError(1) })
		a.exit(1)
		failed := c.pass(id, "_vendor/thing", "")
		c.wantError(failed, jsonrpc.Internal, "agent_exited")
	})
}

func TestARequestIsTakenBackByItsIdAlone(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		kind := c.pass(id, "_kind", "")
		deaf := c.pass(id, "_deaf", "")
		left := c.pass(id, "_left", "")
		c.cancel(id, kind)
		c.cancel(id, deaf)
		c.cancel(id, 0) // session/cancel is about turns
		if !a.other(0).withdrawn || !a.other(1).withdrawn || a.other(2).withdrawn {
			t.Fatal("the agent was told of others")
		}
		a.reply(0, `{"partial":true}`, nil)
		c.want(kind, `{"partial":true}`)
		p.after(11 * time.Second)
		c.wantError(deaf, jsonrpc.Cancelled, "")
		a.reply(1, `{}`, nil) // too late
		if c.answer(left) != nil {
			t.Errorf("another request was answered %+v", c.answer(left))
		}
		p.agents.is(func(a *agents) { a.mute = true })
		a.exit(0)
		c.wantError(left, jsonrpc.Internal, "agent_exited")
		waits := c.pass(id, "_waits", "")
		c.cancel(id, waits)
		c.wantError(waits, jsonrpc.Cancelled, "")
	})
}

func TestARequestThatTheAgentNeverAnswersEnds(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.pass(id, "_deaf", "")
		p.after(10*time.Minute + time.Second)
		c.wantError(req, jsonrpc.Internal, "idle")
		if !p.agents.last().other(0).withdrawn {
			t.Error("the agent was not told")
		}
		c.leave()
		p.after(5 * time.Hour)
		p.atRest()
	})
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		for range maxForwards {
			c.pass(id, "_x", "")
		}
		c.wantError(c.pass(id, "_x", ""), jsonrpc.Busy, "busy")
		p.agents.last().reply(3, "{}", nil)
		if req := c.pass(id, "_x", ""); c.answer(req) != nil {
			t.Errorf("with room again: %+v", c.answer(req))
		}
		node, _ := p.node("test/sessions/" + acp.TreeName(id))
		if node.Refused["requests_in_flight"] != 1 {
			t.Errorf("counted: %v", node.Refused)
		}
		c.close(id)
		p.atRest()
	})
}

// What a client asked for goes on at the agent when its socket is lost, and is answered as superseded when another has the session.
func TestWhatIsOpenWhenItsClientGoes(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 1)
		id := c.opened("[]")
		a := p.agents.last()
		req := c.pass(id, acp.MethodSessionSetMode, `,"modeId":"y"`)
		next := p.client("", 1)
		next.resume(id, "")
		c.wantError(req, jsonrpc.Busy, "superseded")
		lost := next.pass(id, "_x", "")
		next.leave()
		a.reply(0, "{}", nil)
		a.reply(1, "{}", nil)
		if next.answer(lost) != nil {
			t.Error("a client that is gone was answered")
		}
		third := p.client("", 1)
		got := third.answer(third.resume(id, ""))
		if got == nil || got.err != nil || !strings.Contains(got.result, `"modes":{"currentModeId":"y",`) {
			t.Errorf("the resume was answered %+v", got)
		}
		stranger := p.client("other", 0)
		p.req++
		ref, _ := third.session(id)
		_ = ref.Tell(Forward{Client: stranger, Req: p.req, Method: "_x", Params: fmt.Appendf(nil, `{"sessionId":%q}`, id)})
		p.settle()
		stranger.wantError(p.req, jsonrpc.InvalidParams, "")
	})
}

// A session that has something open is not at rest.
func TestAnOpenRequestKeepsItsSessionFromBeingSuspended(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		req := c.pass(id, "_x", "")
		c.wantError(c.open("[]"), jsonrpc.Overload, "max_sessions")
		p.agents.last().reply(0, "{}", nil)
		c.want(req, "{}")
		if a := c.answer(c.open("[]")); a == nil || a.err != nil {
			t.Errorf("at rest: %+v", a)
		}
	})
}

func TestWithoutADriverNobodyKnowsAnotherMethod(t *testing.T) {
	inPod(t, func(c *Config) { c.Driver = DriverNone }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.wantError(c.pass(id, acp.MethodSessionSetMode, `,"modeId":"y"`), jsonrpc.MethodNotFound, "")
	})
}

func TestAnAgentWithoutTheMethodIsNoFault(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		req := c.pass(id, acp.MethodSessionSetOpt, `,"configId":"x","value":"y"`)
		a.reply(0, "", jsonrpc.UnknownMethod(acp.MethodSessionSetOpt))
		c.wantError(req, jsonrpc.MethodNotFound, "")
		turn := c.prompt(id, "hello")
		a.end(`{"stopReason":"end_turn"}`)
		c.want(turn, `{"stopReason":"end_turn"}`)
	})
}

// One that waits for an agent ends with its client's ownership, which leaves the session to nobody for no time at all.
func TestATakeoverOfARequestThatWaitsDoesNotEndTheSession(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 1)
		id := c.opened("[]")
		p.after(p.s.cfg.SessionTTL + time.Hour) // the last turn is long ago
		p.agents.last().exit(0)
		p.agents.is(func(a *agents) { a.mute = true })
		req := c.pass(id, "_x", "")
		next := p.client("", 1)
		back := next.resume(id, "")
		p.after(time.Second)
		c.wantError(req, jsonrpc.Busy, "superseded")
		if a := next.answer(back); a != nil {
			t.Fatalf("the resume was answered %+v", a.err)
		}
		p.agents.last().end(`{"sessionId":"inner-2"}`)
		if a := next.answer(back); a == nil || a.err != nil {
			t.Errorf("the resume was answered %+v", a)
		}
	})
}
