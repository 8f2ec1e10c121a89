package session

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// accountOf reads `_meta["acpod.dev/session"]`.
func accountOf(t *testing.T, a *answered) (got struct {
	State, Agent               string
	MissedUpdates, MissedBytes int
	LastTurn                   any
}) {
	t.Helper()
	if a == nil || a.err != nil {
		t.Fatalf("the resume was answered %+v", a)
	}
	var result struct {
		Meta struct {
			Session struct {
				State         string `json:"state"`
				Agent         string `json:"agent"`
				MissedUpdates int    `json:"missed_updates"`
				MissedBytes   int    `json:"missed_bytes"`
				LastTurn      any    `json:"last_turn"`
			} `json:"acpod.dev/session"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(a.result), &result); err != nil {
		t.Fatalf("%s: %v", a.result, err)
	}
	m := result.Meta.Session
	got.State, got.Agent, got.MissedUpdates, got.MissedBytes, got.LastTurn = m.State, m.Agent, m.MissedUpdates, m.MissedBytes, m.LastTurn
	return got
}

func TestWhatWasSaidWithoutAClientComesAfterTheResume(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened(roomServer)
		c.prompt(id, "hello")
		a := p.agents.last()
		c.leave()
		a.say("1", "2")
		if n, _ := a.credits.Taken(); n != 0 {
			t.Errorf("the agent waits for nobody: %d credits are out", n)
		}
		a.end(`{"stopReason":"max_tokens"}`)
		again := p.client("k", 1)
		req := again.resume(id, roomServer)
		got := accountOf(t, again.answer(req))
		if got.State != "idle" || got.Agent != "alive" || got.MissedUpdates != 0 || fmt.Sprint(got.LastTurn) != "map[stopReason:max_tokens]" {
			t.Errorf("%+v", got)
		}
		said := texts(again.heard())
		if want := []string{fmt.Sprintf("answer %d", req), "1", "2", acp.MethodTurnEnded}; !slices.Equal(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
		third := p.client("k", 1)
		third.resume(id, "[]")
		if said := texts(third.heard()); len(said) != 1 {
			t.Errorf("what was told came twice: %q", said)
		}
	})
}

func TestWhatDoesNotFitIsCountedAndTheEndsAreKept(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		a := p.agents.last()
		c.leave()
		toolCall(p, "tool_call_update", "completed")
		big := strings.Repeat("x", 300<<10)
		for i := range 6 {
			a.say(fmt.Sprintf("%d%s", i, big))
		}
		a.end(`{"stopReason":"end_turn"}`)
		again := p.client("", 0)
		got := accountOf(t, again.answer(again.resume(id, "[]")))
		frame := len(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"0%s"}}}}`, id, big))
		if got.MissedUpdates != 3 || got.MissedBytes != 3*frame {
			t.Errorf("%+v, frames have %d bytes", got, frame)
		}
		said := texts(again.heard())
		if len(said) != 6 || said[1] != "update" || said[2][0] != '3' || said[4][0] != '5' || said[5] != acp.MethodTurnEnded {
			t.Errorf("%d frames", len(said))
		}
		if got := accountOf(t, again.answer(again.resume(id, "[]"))); got.MissedUpdates != 0 {
			t.Errorf("what was missed is told twice: %+v", got)
		}
	})
}

// What was given to a socket and never left it is not lost.
func TestWhatWasQueuedOnALostSocketComesAgain(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		a := p.agents.last()
		a.say("written")
		c.mu.Lock()
		c.slow = true
		c.mu.Unlock()
		a.say("queued 1", "queued 2")
		c.leave()
		a.say("kept")
		again := p.client("", 0)
		again.resume(id, "[]")
		if said := texts(again.heard()); !slices.Equal(said[1:], []string{"queued 1", "queued 2", "kept"}) {
			t.Errorf("%q", said)
		}
	})
}

// What is kept for the next client is paid by the session, and given back when it has left.
func TestWhatIsKeptIsPaidFor(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		c.mu.Lock()
		c.slow = true
		c.mu.Unlock()
		p.agents.last().say(strings.Repeat("x", 100<<10))
		c.leave()
		node, ok := p.node("test/sessions/" + acp.TreeName(id))
		if !ok || node.Account.Used < 100<<10 {
			t.Errorf("%v: the session pays for %d bytes", ok, node.Account.Used)
		}
		p.client("", 0).resume(id, "[]")
		if node, _ = p.node("test/sessions/" + acp.TreeName(id)); node.Account.Used >= 100<<10 {
			t.Errorf("it still pays for %d bytes", node.Account.Used)
		}
	})
}

// While nobody reads, the agent does not wait; for a client that came back, it does again, or a slow one would miss what it
// was there for.
func TestAnAgentWaitsAgainForAClientThatCameBack(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.prompt(id, "hello")
		c.leave()
		again := p.client("", 0)
		again.resume(id, "[]")
		again.mu.Lock()
		again.slow = true
		again.mu.Unlock()
		a := p.agents.last()
		for range agent.CreditLines + 50 {
			if _, err := a.credits.Take(canceled(), 10); err != nil {
				return
			}
		}
		t.Error("the agent's reader waits for nobody")
	})
}

func TestANewerConnectionTakesOver(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		old, young := p.client("k", 1), p.client("k", 1)
		id := old.opened(roomServer)
		req := old.prompt(id, "hello")
		a := p.agents.last()
		a.askPermission(1)
		old.heard()
		got := accountOf(t, young.answer(young.resume(id, roomServer)))
		if got.State != "running" || got.Agent != "alive" {
			t.Errorf("%+v", got)
		}
		old.wantError(req, jsonrpc.Busy, "superseded")
		if _, owns := old.session(id); owns {
			t.Error("the former owner still owns it")
		}
		if old.frames("mcp/disconnect") != 1 || young.frames("mcp/disconnect") != 0 || young.frames("mcp/connect") != 1 {
			t.Errorf("old %q\nyoung %q", old.mcp, young.mcp)
		}
		if said := texts(old.heard()); !slices.Contains(said, "ask withdrawn") {
			t.Errorf("the former owner was not told that its answer is not wanted: %q", said)
		}
		if said := texts(young.heard()); len(said) != 2 || !strings.HasPrefix(said[1], "ask ") {
			t.Errorf("the open permission request was not asked again: %q", said)
		}
		a.say("to the new owner")
		a.end(`{"stopReason":"end_turn"}`)
		if said := texts(young.heard()); !slices.Equal(said, []string{"to the new owner", "ask withdrawn", acp.MethodTurnEnded}) && !slices.Equal(said, []string{"to the new owner", acp.MethodTurnEnded, "ask withdrawn"}) {
			t.Errorf("%q", said)
		}
		if said := texts(old.heard()); len(said) != 0 {
			t.Errorf("the former owner heard %q", said)
		}
	})
}

// The answer of a turn says that all of it was said. To a client that loses the session before it could read the last words,
// it is not given: the words are the new owner's, and so is the end of the turn.
func TestATakeoverBeforeTheLastWordsTakesTheAnswerToo(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		old, young := p.client("k", 1), p.client("k", 1)
		id := old.opened("[]")
		req := old.prompt(id, "hello")
		old.mu.Lock()
		old.full = true
		old.mu.Unlock()
		a := p.agents.last()
		a.say("the last words")
		a.end(`{"stopReason":"end_turn"}`)
		if old.answer(req) != nil {
			t.Fatal("the answer overtook the last words")
		}
		got := accountOf(t, young.answer(young.resume(id, "[]")))
		old.wantError(req, jsonrpc.Busy, "superseded")
		if got.State != "idle" || !strings.Contains(fmt.Sprint(got.LastTurn), "end_turn") {
			t.Errorf("%+v", got)
		}
		if said := texts(young.heard()); len(said) != 2 || said[1] != "the last words" {
			t.Errorf("the new owner heard %q", said)
		}
	})
}

// A takeover that says nothing of servers leaves none of the former owner's: they are on a socket that lost the session.
func TestATakeoverEndsTheFormersTunnelsWhateverItDeclares(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		old, young := p.client("k", 1), p.client("k", 1)
		id := old.opened(roomServer)
		got := young.answer(young.resume(id, ""))
		if old.frames("mcp/disconnect") != 1 || young.frames("mcp/connect") != 0 {
			t.Errorf("old %q\nyoung %q", old.mcp, young.mcp)
		}
		if !strings.Contains(got.result, `"name":"room","id":"r1","state":"superseded"`) {
			t.Errorf("what has ended is reported otherwise: %s", got.result)
		}
		p.settle()
		if old.frames("mcp/disconnect") != 1 {
			t.Errorf("ended twice: %q", old.mcp)
		}
	})
}

// An agent that died has forgotten: who comes back is told so, whether another runs by then or not, and once.
func TestWhoComesBackIsToldThatTheAgentHasForgotten(t *testing.T) {
	for name, prompt := range map[string]bool{"no other runs": false, "another runs": true} {
		t.Run(name, func(t *testing.T) {
			inPod(t, nil, func(p *pod) {
				c := p.client("k", 1)
				id := c.opened("[]")
				c.prompt(id, "hello")
				p.agents.last().exit(3)
				if prompt {
					c.prompt(id, "again")
					p.agents.last().end(`{"stopReason":"end_turn"}`)
				}
				c.leave()
				again := p.client("k", 1)
				if got := accountOf(t, again.answer(again.resume(id, "[]"))); got.Agent != "fresh" {
					t.Errorf("%+v", got)
				}
				if got := accountOf(t, again.answer(again.resume(id, "[]"))); got.Agent != "alive" {
					t.Errorf("told twice: %+v", got)
				}
			})
		})
	}
}

func TestAnOlderConnectionDoesNotTakeANewerOnesSession(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		old, young := p.client("", 0), p.client("", 0)
		id := young.opened(roomServer)
		old.wantError(old.resume(id, roomServer), jsonrpc.Busy, "superseded")
		if len(old.mcp) != 0 || young.frames("mcp/disconnect") != 0 {
			t.Errorf("a refused resume touched a tunnel: %q, %q", old.mcp, young.mcp)
		}
		if listed := old.listed(); strings.Contains(listed, id) {
			t.Errorf("a refused resume made the session one of its own: %s", listed)
		}
		req := young.prompt(id, "hello")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		young.want(req, `{"stopReason":"end_turn"}`)
		young.leave()
		if got := old.answer(old.resume(id, "[]")); got.err != nil {
			t.Errorf("the newer connection is gone, and still: %v", got.err)
		}
	})
}

// listed is the raw answer of session/list.
func (c *client) listed() string {
	c.p.t.Helper()
	c.p.req++
	req := c.p.req
	if err := c.p.sessions.Tell(List{Client: c, Req: req}); err != nil {
		c.p.t.Fatal(err)
	}
	c.p.settle()
	return c.answer(req).result
}

func TestAResumeOnTheSameConnection(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		id := c.opened(roomServer)
		turn := c.prompt(id, "hello")
		c.wantError(c.resume(id, "[]"), jsonrpc.Busy, "busy")
		if c.frames("mcp/disconnect") != 0 {
			t.Fatal("a refused resume withdrew a server")
		}
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(turn, `{"stopReason":"end_turn"}`)

		c.resume(id, roomServer)
		if c.frames("mcp/connect") != 1 || c.frames("mcp/disconnect") != 0 {
			t.Errorf("an identical live tunnel was not kept: %q", c.mcp)
		}
		c.resume(id, "")
		c.resume(id, "null")
		if c.frames("mcp/connect") != 1 || c.frames("mcp/disconnect") != 0 {
			t.Errorf("no array withdraws nothing: %q", c.mcp)
		}
		got := c.answer(c.resume(id, `[{"type":"acp","id":"r2","name":"room"}]`))
		if c.frames("mcp/connect") != 2 || c.frames("mcp/disconnect") != 1 || !strings.Contains(strings.Join(c.mcp, "\n"), "mcp/disconnect c-r1") {
			t.Errorf("another id replaces: %q", c.mcp)
		}
		if !strings.Contains(got.result, `"id":"r1","state":"withdrawn"`) {
			t.Errorf("%s", got.result)
		}
		got = c.answer(c.resume(id, `[]`))
		if c.frames("mcp/disconnect") != 2 || !strings.Contains(got.result, `"id":"r2","state":"withdrawn"`) || strings.Contains(got.result, `"r1"`) {
			t.Errorf("an empty array withdraws all: %q, %s", c.mcp, got.result)
		}
	})
}

func TestStrangersResumeNothing(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		mine := p.client("k", 1)
		id := mine.opened(roomServer)
		unknown := p.client("k", 1)
		unknown.wantError(unknown.resume(newID(), "[]"), jsonrpc.InvalidParams, "")
		message := func(c *client, req uint64) string {
			return strings.ReplaceAll(c.answer(req).err.Message, acp.SessionTag(id), "#")
		}
		for name, c := range map[string]*client{"another client": p.client("k", 2), "no secret": p.client("k", 0), "another key": p.client("l", 1)} {
			req := c.resume(id, roomServer)
			c.wantError(req, jsonrpc.InvalidParams, "")
			if len(c.mcp) != 0 || mine.frames("mcp/disconnect") != 0 {
				t.Errorf("%s: a tunnel was touched", name)
			}
			if got := message(c, req); strings.Contains(got, id) || got != "unknown session #" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if _, ok := mine.session(id); !ok {
			t.Error("the owner lost it")
		}
	})
}

func TestASessionThatNobodyComesBackToIsSuspended(t *testing.T) {
	inPod(t, func(c *Config) { c.SessionTTL = time.Minute }, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened(roomServer)
		c.prompt(id, "hello")
		a := p.agents.last()
		c.leave()
		p.after(5 * time.Minute)
		if a.isDead() {
			t.Fatal("suspended in the midst of a turn")
		}
		a.say("kept, then lost")
		a.end(`{"stopReason":"end_turn"}`)
		p.after(time.Minute - time.Second)
		if a.isDead() {
			t.Fatal("suspended too early")
		}
		p.after(time.Second)
		p.atRest()
		again := p.client("k", 1)
		got := accountOf(t, again.answer(again.resume(id, roomServer)))
		if got.State != "idle" || got.Agent != "fresh" || got.MissedUpdates != 1 || fmt.Sprint(got.LastTurn) != "map[stopReason:end_turn]" {
			t.Errorf("%+v", got)
		}
		req := again.prompt(id, "again")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		again.want(req, `{"stopReason":"end_turn"}`)
		if p.agents.count() != 2 {
			t.Errorf("%d agents were started", p.agents.count())
		}
		if got := accountOf(t, again.answer(again.resume(id, ""))); got.Agent != "alive" {
			t.Errorf("the client was told already: %+v", got)
		}
	})
}

func TestTheRecordOfASuspendedSessionIsKeptForItsRetention(t *testing.T) {
	inPod(t, func(c *Config) { c.SessionTTL, c.Retention = time.Second, time.Hour }, func(p *pod) {
		c := p.client("", 0)
		kept, forgotten := c.opened("[]"), c.opened("[]")
		c.leave()
		p.after(50 * time.Minute)
		again := p.client("", 0)
		if got := again.answer(again.resume(kept, "[]")); got.err != nil {
			t.Error(got.err)
		}
		p.after(2 * time.Hour)
		again.wantError(again.resume(forgotten, "[]"), jsonrpc.InvalidParams, "")
		if got := again.answer(again.resume(kept, "[]")); got.err != nil {
			t.Errorf("a session that lives was forgotten: %v", got.err)
		}
	})
}

func TestAtTheCapTheLongestIdleIsSuspended(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 2 }, func(p *pod) {
		p.agents.slow = 3 * time.Second
		c := p.client("", 0)
		first := c.opened(roomServer)
		one := p.agents.last()
		p.after(time.Second)
		second := c.opened("[]")
		two := p.agents.last()
		c.heard()
		req := c.open("[]")
		if !one.isDead() || two.isDead() {
			t.Fatalf("suspended: first %v, second %v", one.isDead(), two.isDead())
		}
		if _, ok := resolves(p.s.tokens, one.token()); ok {
			t.Error("its token works")
		}
		if p.agents.count() != 2 {
			t.Error("a third agent was started while two were there")
		}
		if _, owns := c.session(first); owns || !slices.Contains(texts(c.heard()), methodSuspended) {
			t.Error("its client was not told")
		}
		p.after(3 * time.Second)
		if got := c.answer(req); got == nil || got.err != nil {
			t.Fatalf("%+v", got)
		}
		if c.frames("mcp/disconnect") != 1 {
			t.Errorf("%q", c.mcp)
		}
		c.prompt(second, "work")
		req = c.resume(first, "[]")
		p.after(3 * time.Second)
		if got := accountOf(t, c.answer(req)); got.Agent != "fresh" {
			t.Errorf("%+v", got)
		}
	})
}

// What a slow socket still held of a session when that was suspended is missed, and counted.
func TestWhatASuspendedSessionHadNotSaidIsCounted(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		c.prompt(id, "hello")
		c.mu.Lock()
		c.slow = true
		c.mu.Unlock()
		p.agents.last().say("1", "2", "3")
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		other := p.client("k", 2)
		other.opened("[]")
		p.settle()
		if _, lives := c.session(id); lives {
			t.Fatal("it was not suspended")
		}
		c.flow()
		again := p.client("k", 1)
		got := accountOf(t, again.answer(again.resume(id, "[]")))
		if got.Agent != "fresh" || got.MissedUpdates != 3 {
			t.Errorf("%+v", got)
		}
	})
}

func TestABusySessionIsPassedOverWhenItTurnsOutBusy(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.promptSoon(id, "hello") // the supervisor does not know it yet
		req := c.open("[]")
		c.wantError(req, jsonrpc.Overload, "max_sessions")
		if p.agents.last().isDead() || p.agents.count() != 1 {
			t.Error("a busy agent was stopped")
		}
	})
}

func TestAnAgentThatIsGoneTakesNoPlace(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("", 0)
		first := c.opened("[]")
		p.agents.last().exit(0)
		second := c.opened("[]")
		if _, owns := c.session(first); !owns {
			t.Error("a session without an agent was suspended for its place")
		}
		req := c.prompt(first, "hello") // takes the place of the second, which is idle
		if got := p.agents.last(); got.n != 3 || len(got.see(&got.prompts)) != 1 {
			t.Fatalf("agent %d got %q", got.n, got.see(&got.prompts))
		}
		if _, owns := c.session(second); owns {
			t.Error("two agents at a cap of one")
		}
		p.agents.last().end(`{"stopReason":"end_turn"}`)
		c.want(req, `{"stopReason":"end_turn"}`)
	})
}

func TestResumesOfOneSessionComeInTurn(t *testing.T) {
	inPod(t, func(c *Config) { c.SessionTTL = time.Second }, func(p *pod) {
		c := p.client("", 0)
		id := c.opened("[]")
		c.leave()
		p.after(time.Second)
		p.agents.is(func(a *agents) { a.mute = true })
		a, b := p.client("", 0), p.client("", 0)
		one, two := a.resume(id, roomServer), b.resume(id, roomServer)
		p.agents.is(func(a *agents) { a.mute = false })
		a.wantError(one, jsonrpc.Busy, "superseded")
		p.agents.last().do(func(*kernel.Ctx) error {
			f := p.agents.last()
			f.turn.Answer(replyFor(`{"sessionId":"`+f.id()+`"}`), nil)
			return nil
		})
		if got := accountOf(t, b.answer(two)); got.Agent != "fresh" {
			t.Errorf("%+v", got)
		}
		if a.frames("mcp/disconnect") != 1 || b.frames("mcp/connect") != 1 || p.agents.count() != 2 {
			t.Errorf("%q, %q, %d agents", a.mcp, b.mcp, p.agents.count())
		}
	})
}

func TestAResumeThatMeetsTheEndWaitsForIt(t *testing.T) {
	inPod(t, func(c *Config) { c.SessionTTL = time.Second }, func(p *pod) {
		p.agents.slow = 10 * time.Second
		c := p.client("", 0)
		id := c.opened("[]")
		c.leave()
		p.after(2 * time.Second) // being suspended: its agent takes its time
		again := p.client("", 0)
		req := again.resume(id, "[]")
		if again.answer(req) != nil {
			t.Fatal("answered in the midst of the end")
		}
		p.after(10 * time.Second)
		if got := accountOf(t, again.answer(req)); got.Agent != "fresh" {
			t.Errorf("%+v", got)
		}
	})
}

// A connection says that it goes, after all that it sent; the end of its actor may come before or after that.
func TestWhatAClientSentBeforeItWentStillCounts(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("", 0)
		one, two := c.opened("[]"), c.opened("[]")
		ref, _ := c.session(one)
		other, _ := c.session(two)
		c.promptSoon(one, "the last words")
		for _, m := range []kernel.Msg{Detach{Client: c}, Detach{Client: c}} {
			if err := ref.Tell(m); err != nil {
				t.Fatal(err)
			}
		}
		c.leave()
		_ = other.Tell(Close{Client: c, Req: 99})
		p.settle()
		if other.Cause() == nil {
			t.Error("a close that was sent before the socket was lost did not count")
		}
		a := p.agents.all[0]
		if got := a.see(&a.prompts); len(got) != 1 {
			t.Errorf("the agent got %q", got)
		}
		a.end(`{"stopReason":"end_turn"}`)
		again := p.client("", 0)
		if got := accountOf(t, again.answer(again.resume(one, "[]"))); fmt.Sprint(got.LastTurn) != "map[stopReason:end_turn]" {
			t.Errorf("%+v", got)
		}
	})
}
