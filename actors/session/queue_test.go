package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

const endTurn = `{"stopReason":"end_turn"}`

func TestPromptsWaitInOrder(t *testing.T) {
	inPod(t, func(c *Config) { c.Queue = 2 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		one, two, three := c.prompt(id, "one"), c.prompt(id, "two"), c.prompt(id, "three")
		c.wantError(c.prompt(id, "four"), jsonrpc.Busy, "busy")
		c.wantError(c.prompt(id, " "), jsonrpc.Busy, "busy")
		for n, req := range []uint64{one, two, three} {
			if got := a.see(&a.prompts); len(got) != n+1 || c.answer(req) != nil {
				t.Fatalf("before turn %d ends the agent was given %q", n, got)
			}
			a.end(endTurn)
			c.want(req, endTurn)
		}
		if got := a.see(&a.prompts); !strings.Contains(got[0], "one") || !strings.Contains(got[1], "two") || !strings.Contains(got[2], "three") {
			t.Errorf("in the order %q", got)
		}
		c.close(id)
		p.atRest()
	})
}

func TestAWaitingPromptIsTakenBackByItself(t *testing.T) {
	inPod(t, func(c *Config) { c.Queue = 2 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		one, two, three := c.prompt(id, "one"), c.prompt(id, "two"), c.prompt(id, "three")
		c.cancel(id, two)
		c.want(two, string(cancelledResult))
		a.end(endTurn)
		c.want(one, endTurn)
		if got := a.see(&a.prompts); len(got) != 2 || !strings.Contains(got[1], "three") {
			t.Errorf("the agent was given %q", got)
		}
		a.end(endTurn)
		c.want(three, endTurn)
	})
}

// A session/cancel in the frame after a prompt cancels that prompt, also when it waits.
func TestACancelOfTheSessionTakesTheWaitingToo(t *testing.T) {
	inPod(t, func(c *Config) { c.Queue = 2 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		a := p.agents.last()
		one, two := c.prompt(id, "one"), c.promptSoon(id, "two")
		c.cancel(id, 0)
		c.want(two, string(cancelledResult))
		a.end(endTurn)
		c.want(one, string(cancelledResult))
		if got := a.see(&a.prompts); len(got) != 1 {
			t.Errorf("the agent was given %q", got)
		}
	})
}

func TestWhateverEndsTheSessionAnswersWhatWaits(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(c *client, id string)
		want func(c *client, req uint64)
	}{
		"close": {func(c *client, id string) { c.close(id) }, func(c *client, req uint64) { c.want(req, string(cancelledResult)) }},
		"another owner": {func(c *client, id string) { c.p.client("", 1).resume(id, "") }, func(c *client, req uint64) {
			c.wantError(req, jsonrpc.Busy, "superseded")
			a := c.p.agents.last()
			a.end(endTurn)
			if got := a.see(&a.prompts); len(got) != 1 {
				c.p.t.Errorf("what the former owner asked for was begun: %q", got)
			}
		}},
		"the agent": {func(c *client, _ string) { c.p.agents.last().exit(1) }, func(c *client, _ uint64) {
			if a := c.p.agents.last(); a.n != 2 || len(a.see(&a.prompts)) != 1 {
				c.p.t.Errorf("the next agent was given %q", a.see(&a.prompts))
			}
		}},
		"the drain": {func(c *client, _ string) {
			c.p.s.draining.Store(true)
			c.p.agents.last().end(endTurn)
		}, func(c *client, req uint64) { c.wantError(req, jsonrpc.Overload, "draining") }},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(c *Config) { c.Queue = 1 }, func(p *pod) {
				c := p.client("", 1)
				id := c.opened("[]")
				c.prompt(id, "one")
				p.agents.last().say("words") // so that its exit is no silence
				req := c.prompt(id, "two")
				row.end(c, id)
				row.want(c, req)
			})
		})
	}
}

// A user who closes the laptop has asked for both.
func TestAWaitingPromptRunsWithoutItsClient(t *testing.T) {
	inPod(t, func(c *Config) { c.Queue = 1 }, func(p *pod) {
		c := p.client("", 1)
		id := c.opened("[]")
		a := p.agents.last()
		c.prompt(id, "one")
		c.prompt(id, "two")
		c.leave()
		a.end(endTurn)
		if got := a.see(&a.prompts); len(got) != 2 {
			t.Fatalf("the agent was given %q", got)
		}
		a.end(`{"stopReason":"refusal"}`)
		again := p.client("", 1)
		again.resume(id, "")
		ended := `{"jsonrpc":"2.0","method":"_acpod/turn_ended","params":{"sessionId":"` + id + `","stopReason":%q}}`
		said := strings.Join(again.heard(), "\n")
		if !strings.Contains(said, fmt.Sprintf(ended, "end_turn")) || !strings.Contains(said, fmt.Sprintf(ended, "refusal")) {
			t.Errorf("the next client heard %s", said)
		}
		again.leave()
		p.after(5 * time.Hour)
		p.atRest()
	})
}
