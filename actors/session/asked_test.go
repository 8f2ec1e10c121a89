package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

const everything = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}}}`

// able is a client that serves everything.
func (p *pod) able(secret byte) *client {
	c := p.client("", secret)
	c.caps = []byte(everything)
	return c
}

func TestWhatTheClientDeclaredIsAskedOfIt(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(0)
		id := c.opened("[]")
		a := p.agents.last()
		if string(a.cfg.Client) != everything {
			t.Errorf("the agent is told %s", a.cfg.Client)
		}
		c.prompt(id, "hello")
		for n, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/wait_for_exit", "_vendor/ask"} {
			a.ask(int64(n), method, `{ "sessionId":"inner-1","x":1.50,"_meta":{"a":1}}`)
			if said := c.heard(); !slices.Equal(said, []string{"ask " + method + ` { "sessionId":"` + id + `","x":1.50,"_meta":{"a":1}}`}) {
				t.Fatalf("%s: the client was asked %q", method, said)
			}
			c.reply(fmt.Sprint(n), `{"content": "\ud800","n":1e3}`, nil)
			if got := a.got(&a.replies); !slices.Equal(got, []string{fmt.Sprintf(`%d {"content": "\ud800","n":1e3}`, n)}) {
				t.Errorf("%s: the agent was answered %q", method, got)
			}
		}
		a.ask(8, "_vendor/ask", `[1.50]`)
		a.ask(8, "_vendor/ask", `{"sessionId":"inner-1","sessionId":"another"}`)
		if said, got := c.heard(), a.got(&a.replies); !slices.Equal(said, []string{"ask _vendor/ask [1.50]"}) || !slices.Equal(got, []string{"8 error -32602"}) {
			t.Errorf("the client was asked %q, the agent answered %q", said, got)
		}
		c.reply("5", "null", nil)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"8 null"}) {
			t.Errorf("the agent was answered %q", got)
		}
		a.ask(9, "terminal/kill", `{"sessionId":"inner-1"}`)
		c.reply("6", "", jsonrpc.ParseError([]byte(`{"code":-32002,"message":"gone"}`)))
		if got := a.got(&a.replies); !slices.Equal(got, []string{"9 error -32002"}) {
			t.Errorf("the client's error came as %q", got)
		}
		a.ask(9, "fs/read_text_file", `{"sessionId":"another"}`)
		a.ask(10, "fs/read_text_file", `{"path":"/x"}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"9 error -32602", "10 error -32602"}) {
			t.Errorf("no session of its own: %q", got)
		}
		c.close(id)
		p.atRest()
	})
}

// What one client declared is not asked of the next, whatever the agent was told.
func TestTheClientThatIsThereDecidesWhatIsAsked(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(1)
		id := c.opened("[]")
		a := p.agents.last()
		next := p.client("", 1)
		next.caps = []byte(`{"fs":{"readTextFile":true}}`)
		next.resume(id, "")
		next.heard()
		a.ask(1, "terminal/create", `{"sessionId":"inner-1"}`)
		a.ask(2, "fs/read_text_file", `{"sessionId":"inner-1"}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"1 error -32601"}) || len(next.heard()) != 1 {
			t.Errorf("the agent was answered %q", got)
		}
		a.exit(0)
		next.prompt(id, "hello")
		if got := string(p.agents.last().cfg.Client); got != `{"fs":{"readTextFile":true}}` {
			t.Errorf("the next agent is told %s", got)
		}
	})
}

// A permission waits for the client that comes; what only the lost one could do is an error at once.
func TestOpenRequestsWhenTheSocketIsLost(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(1)
		id := c.opened("[]")
		a := p.agents.last()
		c.prompt(id, "hello")
		a.ask(1, "terminal/wait_for_exit", `{"sessionId":"inner-1"}`)
		a.askPermission(2)
		c.leave()
		a.ask(3, "fs/read_text_file", `{"sessionId":"inner-1"}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"1 error -32603", "3 error -32603"}) {
			t.Errorf("the agent was answered %q", got)
		}
		next := p.able(1)
		next.resume(id, "")
		if said := next.heard(); len(said) != 2 || !strings.HasPrefix(said[1], `ask {"sessionId":"`+id) {
			t.Errorf("the next client heard %q", said)
		}
		a.ask(4, "terminal/output", `{"sessionId":"inner-1"}`)
		p.able(1).resume(id, "")
		if got := a.got(&a.replies); !slices.Equal(got, []string{"4 error -32603"}) {
			t.Errorf("after a takeover the agent was answered %q", got)
		}
		if said := strings.Join(next.heard(), " "); !strings.Contains(said, "ask withdrawn") {
			t.Errorf("the former client heard %s", said)
		}
	})
}

func TestAnAgentTakesItsRequestBack(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(1)
		c.opened("[]")
		a := p.agents.last()
		a.ask(1, "terminal/wait_for_exit", `{"sessionId":"inner-1"}`)
		a.note("$/cancel_request", `{"requestId":2}`)
		a.note("$/cancel_request", `{"requestId":1}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"1 error -32800"}) {
			t.Errorf("the agent was answered %q", got)
		}
		if said := strings.Join(c.heard(), " "); !strings.Contains(said, "ask withdrawn") {
			t.Errorf("the client heard %s", said)
		}
	})
}

func TestWhatAnAgentAsksIsBounded(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(1)
		id := c.opened("[]")
		a := p.agents.last()
		for n := range int64(maxAsks) {
			a.ask(n, "terminal/wait_for_exit", `{"sessionId":"inner-1"}`)
		}
		a.ask(maxAsks, "fs/read_text_file", `{"sessionId":"inner-1"}`)
		a.askPermission(maxAsks + 1)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"64 error -32603", `65 {"outcome":{"outcome":"cancelled"}}`}) {
			t.Errorf("the agent was answered %q", got)
		}
		p.after(31 * time.Minute)
		if got := a.got(&a.replies); len(got) != maxAsks || !strings.HasSuffix(got[0], " error -32603") {
			t.Errorf("after mcp.call_max the agent was answered %q", got)
		}
		c.close(id)
		p.atRest()
	})
}

// A question about a request of the client names it by the client's own id, and does not wait behind what waits for it.
func TestAQuestionAboutARequestIsAskedByTheClientsId(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.able(1)
		id := c.opened("[]")
		a := p.agents.last()
		c.heard()
		req := c.prompt(id, "hello")
		c.pass(id, "_vendor/thing", "")
		a.ask(1, "elicitation/create", `{"mode":"form","requestId":1,"message":"m"}`)
		a.ask(2, "elicitation/create", `{"mode":"url","requestId":2,"message":"m"}`)
		want := []string{
			fmt.Sprintf(`ask at once elicitation/create {"mode":"form","requestId":"r%d","message":"m"}`, req),
			fmt.Sprintf(`ask at once elicitation/create {"mode":"url","requestId":"r%d","message":"m"}`, req+1),
		}
		if said := c.heard(); !slices.Equal(said, want) {
			t.Errorf("the client was asked %q", said)
		}
		a.ask(3, "elicitation/create", `{"mode":"form","requestId":7,"message":"m"}`)
		a.ask(4, "elicitation/create", `{"mode":"mind","requestId":1,"message":"m"}`)
		if got := a.got(&a.replies); !slices.Equal(got, []string{"3 error -32602", "4 error -32601"}) {
			t.Errorf("the agent was answered %q", got)
		}
	})
}

// An agent may say something of itself before its session has an id.
func TestWhatAnAgentNotesReachesTheClientInItsPlace(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		p.agents.is(func(a *agents) { a.mute = true })
		c := p.able(1)
		req := c.open("[]")
		a := p.agents.last()
		a.note("_auth/status_update", `{"state":"in"}`)
		if said := c.heard(); len(said) != 0 {
			t.Errorf("before the session has an id the client heard %q", said)
		}
		a.end(`{"sessionId":"inner-1"}`)
		var id string
		for id = range c.sessions {
		}
		a.say("one")
		a.note("_vendor/note", `{"sessionId":"inner-1","x":1.0}`)
		a.say("two")
		a.note("elicitation/complete", `{"elicitationId":"e"}`)
		a.note("mcp/message", `{"serverId":"x"}`)
		want := []string{
			fmt.Sprint("answer ", req), "_auth/status_update", "one", "_vendor/note", "two", "elicitation/complete",
		}
		said := c.heard()
		if got := texts(said); !slices.Equal(got, want) {
			t.Errorf("the client heard %q, want %q", got, want)
		}
		if !slices.Contains(said, `{"jsonrpc":"2.0","method":"_vendor/note","params":{"sessionId":"`+id+`","x":1.0}}`) {
			t.Errorf("the client heard %q", said)
		}
	})
}
