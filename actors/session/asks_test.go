package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// reply answers what the client was asked.
func (c *client) reply(n string, result string, bad *jsonrpc.Error) {
	c.p.t.Helper()
	c.mu.Lock()
	q := c.asked[n]
	c.mu.Unlock()
	if q == nil {
		c.p.t.Fatalf("the client was not asked for the time %s", n)
	}
	if bad != nil {
		q.Fail(bad)
	} else {
		q.Answer(tunnel.Reply{Result: []byte(result)}, nil)
	}
	c.p.settle()
}

const (
	chosen   = `7 {"outcome":{"outcome":"selected","optionId":"once"}}`
	rejected = `7 {"outcome":{"outcome":"selected","optionId":"no"}}`
	refused  = `7 {"outcome":{"outcome":"cancelled"}}`
)

func TestAPermissionRequestGoesToTheClientAndBack(t *testing.T) {
	for name, c := range map[string]struct {
		result string
		bad    *jsonrpc.Error
		want   string
	}{
		"a choice passes to the byte": {`{ "outcome":{"outcome":"selected","optionId":"once"},"_meta":{"n":1.0}}`, nil, `7 { "outcome":{"outcome":"selected","optionId":"once"},"_meta":{"n":1.0}}`},
		"an invented option":          {`{"outcome":{"outcome":"selected","optionId":"root"}}`, nil, refused},
		"an error":                    {"", jsonrpc.UnknownMethod("x"), refused},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				cl := p.client("", 0)
				id := cl.opened("[]")
				cl.prompt(id, "hello")
				a := p.agents.last()
				a.askPermission(7)
				said := cl.heard()
				if len(said) != 1 || !strings.Contains(said[0], id) || strings.Contains(said[0], "inner-1") {
					t.Fatalf("the client was asked %q", said)
				}
				cl.reply("0", c.result, c.bad)
				if got := a.got(&a.replies); !slices.Equal(got, []string{c.want}) {
					t.Errorf("the agent got %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestAQuestionKeepsItsPlaceAmongTheUpdates(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		a := p.agents.last()
		c.mu.Lock()
		c.full = true
		c.mu.Unlock()
		a.say("before")
		a.askPermission(7)
		a.say("after")
		c.flow()
		p.after(retryEvery)
		said := texts(c.heard())
		if len(said) != 3 || said[0] != "before" || said[2] != "after" || !strings.HasPrefix(said[1], "ask ") {
			t.Errorf("%q", said)
		}
	})
}

func TestThePolicyOfTheOperatorAnswersByKind(t *testing.T) {
	for decision, want := range map[Decision]string{Allow: chosen, Deny: rejected} {
		inPod(t, func(c *Config) { c.Permissions = decision }, func(p *pod) {
			c := p.client("", 0)
			c.prompt(c.opened("[]"), "hello")
			a := p.agents.last()
			a.askPermission(7)
			if got := a.got(&a.replies); !slices.Equal(got, []string{want}) || len(c.heard()) != 0 {
				t.Errorf("%s: the agent got %q, want %q", decision, got, want)
			}
		})
	}
}

func TestAnOpenQuestionIsSettled(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *pod, c *client, id string)
		want string
	}{
		"by a cancel":            {func(_ *pod, c *client, id string) { c.tell(id, Cancel{Client: c}) }, refused},
		"by the end of the turn": {func(p *pod, _ *client, _ string) { p.agents.last().end(`{"stopReason":"end_turn"}`) }, refused},
		"by a close":             {func(_ *pod, c *client, id string) { c.close(id) }, refused},
		"by time":                {func(p *pod, _ *client, _ string) { p.after(p.s.cfg.PermissionTimeout) }, rejected},
		"by time, with nobody":   {func(p *pod, c *client, _ string) { c.leave(); p.after(p.s.cfg.PermissionTimeout) }, rejected},
		"by the agent's withdrawal": {func(p *pod, _ *client, _ string) {
			p.agents.last().note(acp.MethodCancelRequest, `{"requestId":7}`)
		}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				cl := p.client("", 0)
				id := cl.opened("[]")
				cl.prompt(id, "hello")
				a := p.agents.last()
				a.askPermission(7)
				cl.heard()
				c.do(p, cl, id)
				p.settle()
				if got := a.got(&a.replies); !slices.Equal(got, []string{c.want}) {
					t.Errorf("the agent got %q, want %q", got, c.want)
				}
				if !gone(cl) && !slices.Contains(texts(cl.heard()), "ask withdrawn") {
					t.Error("the client still holds the question")
				}
			})
		})
	}
}

// What an agent asks after its turn was cancelled is answered at once, and nobody is asked.
func TestAQuestionAfterACancelReachesNobody(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		c.tell(id, Cancel{Client: c})
		c.heard()
		a := p.agents.last()
		a.askPermission(7)
		if got := a.got(&a.replies); !slices.Equal(got, []string{refused}) {
			t.Errorf("the agent got %q", got)
		}
		if said := texts(c.heard()); len(said) != 0 {
			t.Errorf("the client was asked: %q", said)
		}
	})
}

func TestAQuestionLeftByALostSocketIsAskedAgain(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		a := p.agents.last()
		a.askPermission(7)
		c.leave()
		a.say("meanwhile")
		a.ask(8, acp.MethodPermission, `{"sessionId":"inner-1","toolCall":{},"options":[{"optionId":"x","name":"x","kind":"reject_once"}]}`)
		if got := a.got(&a.replies); len(got) != 0 {
			t.Fatalf("answered without anybody: %q", got)
		}
		again := p.client("", 0)
		again.resume(id, "[]")
		said := texts(again.heard())
		if len(said) != 4 || said[1] != "meanwhile" || !strings.HasPrefix(said[2], "ask ") || !strings.Contains(said[3], `"x"`) {
			t.Fatalf("%q", said)
		}
		again.reply("0", `{"outcome":{"outcome":"selected","optionId":"once"}}`, nil)
		again.reply("1", `{"outcome":{"outcome":"selected","optionId":"x"}}`, nil)
		if got := a.got(&a.replies); !slices.Equal(got, []string{chosen, `8 {"outcome":{"outcome":"selected","optionId":"x"}}`}) {
			t.Errorf("%q", got)
		}
	})
}

func TestWhatAnAgentMayNotAskIsRefusedAtOnce(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		c.opened("[]")
		a := p.agents.last()
		for _, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create", "_mcp/connect", "_acpod/x", "mcp/message", ""} {
			a.ask(9, method, `{"sessionId":"inner-1"}`)
			if got := a.got(&a.replies); !slices.Equal(got, []string{"9 error -32601"}) {
				t.Errorf("%q: %q", method, got)
			}
		}
		a.ask(9, acp.MethodPermission, `{"sessionId":"another","toolCall":{},"options":[{"optionId":"x","name":"x","kind":"allow_once"}]}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{`9 {"outcome":{"outcome":"cancelled"}}`}) {
			t.Errorf("a question about another session: %q", got)
		}
		a.note("_acpod/turn_ended", `{}`)
		a.note("mcp/message", `{}`)
		a.note("_vendor/thing", `{"sessionId":"another"}`)
		if said := c.heard(); len(said) != 0 {
			t.Errorf("the client heard %q", said)
		}
	})
}

// A question waits in two copies, the agent's line and what its client is sent: both are paid for, or it does not wait.
func TestAQuestionThatWaitsIsPaidFor(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		a := p.agents.last()
		used := func() int64 {
			node, _ := p.node("test/sessions/" + acp.TreeName(id))
			return node.Account.Used
		}
		before := used()
		const size = 100 << 10
		question := fmt.Sprintf(`{"sessionId":%q,"toolCall":{"toolCallId":"%s"},"options":[{"optionId":"once","name":"A","kind":"allow_once"}]}`, a.id(), strings.Repeat("t", size))
		a.ask(1, acp.MethodPermission, question)
		if got := used() - before; got < size {
			t.Errorf("%d bytes are paid for a question of %d", got, size)
		}
		node, _ := p.node("test/sessions/" + acp.TreeName(id))
		ref, _ := c.session(id)
		rest, err := ref.Account().Acquire(node.Account.Limit - node.Account.Used - size/2)
		if err != nil {
			t.Fatal(err)
		}
		a.ask(2, acp.MethodPermission, question)
		if got := a.lastReplies(); len(got) != 1 || !strings.Contains(got[0], "cancelled") {
			t.Errorf("the agent heard %q", got)
		}
		rest.Release()
		a.end(`{"stopReason":"end_turn"}`)
		if got := used(); got > before {
			t.Errorf("%d bytes are still paid for", got-before)
		}
	})
}
