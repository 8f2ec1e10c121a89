package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

var lines = func(text string) []any { return []any{object{"type": "text", "text": text}} }

// A session is its owner's: whatever a stranger asks of it is answered like an unknown id, and does nothing.
func TestASessionOfSomebodyElseIsAnUnknownOne(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	owner, stranger, nobody := dial(t, p), dial(t, p), dial(t, p)
	owner.hello(object{"acpod.dev/client": "the secret of the owner"})
	stranger.hello(object{"acpod.dev/client": "the secret of a stranger"})
	nobody.hello()
	server := newServer("katashiro", genA, "katashiro.click")
	session := owner.openMore(server)
	public := nobody.openMore()
	id := owner.sendPrompt(session, "/sleep 1h")
	p.turn(session, "running", true)

	uuid := strings.TrimPrefix(session, "sess_")
	for who, e := range map[string]*extension{"a stranger": stranger, "a client without a secret": nobody} {
		unknown := e.refused(-32602, "session/resume", object{"sessionId": "sess_00000000-0000-4000-8000-000000000000", "cwd": "/", "mcpServers": []any{}})
		for method, params := range map[string]object{
			"session/prompt": {"prompt": lines("x")}, "session/close": {}, "session/resume": {"cwd": "/", "mcpServers": e.declare(newServer("katashiro", genA, "x"))},
		} {
			params["sessionId"] = session
			failed := e.refused(-32602, method, params)
			said := strings.Replace(failed.Message, tagOf(session), tagOf("sess_00000000-0000-4000-8000-000000000000"), 1) // of the id that was asked for
			if method == "session/resume" && (said != unknown.Message || fmt.Sprint(failed.Data) != fmt.Sprint(unknown.Data)) {
				t.Errorf("%s can tell a session of somebody else from none: %+v, %+v", who, failed, unknown)
			}
		}
		e.notify("session/cancel", object{"sessionId": session})
		e.refused(-32602, "session/prompt", object{"sessionId": session, "prompt": lines("after the cancel")})
		if n := len(e.received("mcp/connect")); n != 0 {
			t.Errorf("%s opened %d tunnels", who, n)
		}
	}
	if ids := stranger.sessions(); len(ids) != 0 {
		t.Errorf("a stranger lists %v", ids)
	}
	if ids := nobody.sessions(); len(ids) != 1 || ids[0] != public {
		t.Errorf("a client without a secret lists %v", ids)
	}
	if ids := owner.sessions(); len(ids) != 1 || ids[0] != session {
		t.Errorf("the owner lists %v", ids)
	}
	// Without a secret a session is every client's of that key who has its id; it is listed for those who opened or resumed it.
	other := dial(t, p)
	other.hello()
	if ids := other.sessions(); len(ids) != 0 {
		t.Errorf("a newcomer lists %v", ids)
	}
	other.resume(public)
	if ids := other.sessions(); len(ids) != 1 || ids[0] != public {
		t.Errorf("who resumed it lists %v", ids)
	}

	p.turn(session, "running", true) // no stranger's cancel has reached it
	for _, spelling := range []string{strings.ToUpper(session), "sess_" + strings.ToUpper(uuid), uuid, "sess_" + strings.ReplaceAll(uuid, "-", ""),
		"sess_{" + uuid + "}", session + " ", " " + session, "SESS_" + uuid, "acp_" + uuid, "sess_urn:uuid:" + uuid, session + "\x00", ""} {
		for method, params := range map[string]object{
			"session/prompt": {"prompt": lines("x")}, "session/close": {}, "session/resume": {"cwd": "/", "mcpServers": []any{}},
		} {
			params["sessionId"] = spelling
			owner.refused(-32602, method, params)
		}
		owner.notify("session/cancel", object{"sessionId": spelling})
	}
	p.turn(session, "running", true)
	owner.notify("session/cancel", object{"sessionId": session})
	if reason := stopReason(owner.answer(id)); reason != "cancelled" {
		t.Errorf("the turn ended with %q", reason)
	}
	owner.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
	if owner.told("_acpod/turn_ended", session) != 0 {
		t.Error("the end of a turn was told beside its answer")
	}
}

// A newer connection takes over: the former owner is told so by each of its requests, its tunnels end on its own socket, and
// the turn goes on for the newer one.
func TestANewerConnectionTakesTheTurnOver(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	secret := object{"acpod.dev/client": "the secret of two tabs"}
	old, young := dial(t, p), dial(t, p)
	old.hello(secret)
	young.hello(secret)
	first := newServer("katashiro", genA, "katashiro.click")
	session := old.openMore(first)
	caller := p.callerOf(session)
	id := old.sendPrompt(session, "/sleep 3s\nlast words")
	p.turn(session, "running", true)
	second := newServer("katashiro", genA, "katashiro.click")
	second.run = func(string, json.RawMessage) (any, *rpcError, bool) { return textResult("the newer one"), nil, false }
	got := young.resume(session, second)
	if got.State != "running" || got.Agent != "alive" || got.LastTurn != nil || got.MissedUpdates != 0 {
		t.Errorf("resumed: %+v", got)
	}
	answer := old.answer(id)
	if answer.Error == nil || answer.Error.Code != -32001 || answer.Error.Data["reason"] != "superseded" {
		t.Errorf("the former owner's prompt: %s", answer.raw)
	}
	old.refused(-32602, "session/prompt", object{"sessionId": session, "prompt": lines("x")})
	old.refused(-32602, "session/close", object{"sessionId": session})
	old.notify("session/cancel", object{"sessionId": session})
	old.await("the end of its tunnel", func() bool { return len(first.ended()) == 1 })
	for range 3 {
		refused := old.refused(-32001, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": old.declare(newServer("katashiro", genA, "x"))})
		if refused.Data["reason"] != "superseded" {
			t.Errorf("an older connection's resume: %+v", refused)
		}
	}
	if n := len(old.received("mcp/connect")); n != 1 {
		t.Errorf("a refused resume opened tunnels: %d connects", n)
	}
	young.ready(session, "katashiro")
	if text := caller.execute("katashiro.click", `{}`).text(); text != "the newer one" {
		t.Errorf("the agent's call reached %q", text)
	}
	young.await("the end of the turn", func() bool {
		for _, f := range young.frames {
			if f.Method == "_acpod/turn_ended" && strings.Contains(f.raw, session) && strings.Contains(f.raw, `"stopReason":"end_turn"`) {
				return true
			}
		}
		return false
	})
	young.mu.Lock()
	heard := young.heard(session)
	young.mu.Unlock()
	if heard != "echo: last words\n" {
		t.Errorf("the newer connection heard %q", heard)
	}
	young.says(session, "mine", "echo: mine\n")
	if a, b := young.told("_acpod/turn_ended", session), old.told("_acpod/turn_ended", session); a != 1 || b != 0 {
		t.Errorf("the end of a turn was told %d times to the newer and %d times to the former", a, b)
	}
	if n := old.told("session/update", session); n != 0 {
		t.Errorf("the former owner still got %d updates", n)
	}

	// Once the newer one is gone the older may have it back.
	young.hangUp()
	p.await("the loss", func() bool {
		node, _ := p.tree().find("/" + treeName(session))
		_, has := node.Attrs["client"]
		return !has
	})
	if got := old.resume(session, first); got.LastTurn == nil || got.LastTurn.StopReason != "end_turn" {
		t.Errorf("resumed: %+v", got)
	}
	old.ready(session, "katashiro")
	old.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
	if opened, ended := first.connects(), len(first.ended()); opened != 2 || ended != 1 {
		t.Errorf("%d tunnels of the older were opened, %d ended", opened, ended)
	}
}

// A permission request left open by a lost socket is asked again of the client that resumes, and answered once.
func TestAPermissionLeftOpenIsAskedAgain(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	secret := object{"acpod.dev/client": "the secret of this client"}
	first, second, third := dial(t, p), dial(t, p), dial(t, p)
	var mu sync.Mutex
	asked := map[*extension][]frame{}
	for _, e := range []*extension{first, second, third} {
		e.hello(secret)
		e.other = func(f frame) (any, *rpcError, bool) {
			if f.Method != "session/request_permission" {
				return nil, methodNotFound, f.ID != nil
			}
			mu.Lock()
			asked[e] = append(asked[e], f)
			mu.Unlock()
			return nil, nil, false
		}
	}
	count := func(e *extension) int { mu.Lock(); defer mu.Unlock(); return len(asked[e]) }
	session := first.openMore()
	first.sendPrompt(session, "/ask\nand on")
	first.await("the question", func() bool { return count(first) == 1 })
	first.hangUp()
	p.turn(session, "running", false)

	if got := second.resume(session); got.State != "running" {
		t.Errorf("resumed: %+v", got)
	}
	second.await("the question again", func() bool { return count(second) == 1 })
	// It is taken over with the question open: the former is told that its answer is not wanted, and its answer counts no more.
	third.resume(session)
	third.await("the question again", func() bool { return count(third) == 1 })
	second.await("the cancel of its question", func() bool {
		for _, f := range second.frames {
			if f.Method == "$/cancel_request" && strings.Contains(f.raw, fmt.Sprintf(`"requestId":%s`, asked[second][0].ID)) {
				return true
			}
		}
		return false
	})
	second.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`, asked[second][0].ID))
	second.refused(-32602, "session/prompt", object{"sessionId": session, "prompt": lines("in order after that answer")})
	third.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}`, asked[third][0].ID))
	third.await("the end of the turn", func() bool { return strings.Contains(third.lastFrames(len(third.frames)), "_acpod/turn_ended") })
	third.mu.Lock()
	heard := third.heard(session)
	third.mu.Unlock()
	if heard != "choice: reject\necho: and on\n" {
		t.Errorf("the agent was answered %q", heard)
	}
	for _, e := range []*extension{first, second, third} {
		if n := count(e); n != 1 {
			t.Errorf("asked %d times", n)
		}
	}
}

// Two tabs with one secret take one session from each other, in any order: every request is answered once, whoever has the
// session can use it, and nothing is left.
func TestTabsThatFightForASession(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.session_ttl", `"1s"`, "agent.stop_grace", `"300ms"`))
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			secret := object{"acpod.dev/client": fmt.Sprint("the secret of the tabs of seed ", seed)}
			open := func() *tab {
				e := dial(t, p)
				e.t = t
				e.hello(secret)
				return &tab{extension: e, server: newServer("katashiro", genA, "katashiro.click")}
			}
			tabs := []*tab{open(), open()}
			session := tabs[0].openMore(tabs[0].server)
			for range 60 {
				n := random.IntN(len(tabs))
				e := tabs[n]
				switch random.IntN(8) {
				case 0, 1, 2:
					e.sent = append(e.sent, e.send("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": e.declare(e.server)}))
				case 3, 4:
					e.sent = append(e.sent, e.sendPrompt(session, fmt.Sprintf("/flood %d\n/call katashiro.click {}", random.IntN(400))))
				case 5:
					e.notify("session/cancel", object{"sessionId": session})
				case 6:
					e.sent = append(e.sent, e.send("session/list", object{}))
				case 7:
					if random.IntN(3) == 0 {
						e.hangUp()
						tabs[n] = open()
					}
				}
			}
			for _, e := range tabs {
				for _, id := range e.sent {
					f := e.answer(id) // the harness fails on a second answer
					if f.Error != nil && f.Error.Code != -32001 && f.Error.Code != -32602 {
						t.Errorf("answered %s", f.raw)
					}
				}
			}
			last := open() // the newest of all
			got := last.resume(session, last.server)
			if got.State == "running" {
				last.notify("session/cancel", object{"sessionId": session})
				p.turn(session, "idle", true)
			}
			last.ready(session, "katashiro")
			streamed, answer := last.prompt(session, "/call katashiro.click {}")
			if !strings.HasSuffix(streamed, "katashiro.click {}\n") || stopReason(answer) != "end_turn" {
				t.Errorf("the last one to resume: %q, %s", streamed, answer.raw)
			}
			if n := last.server.callCount(); n != 1 {
				t.Errorf("%d calls reached the last one", n)
			}
			for _, e := range tabs {
				e.refused(-32001, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
				e.await("the end of its tunnels", func() bool { return e.server.connects() == len(e.server.ended()) })
				e.hangUp()
			}
			last.hangUp()
		})
	}
	p.rest()
	if left := p.processes(); len(left) > 1 {
		t.Errorf("processes %v are left", left)
	}
}

type tab struct {
	*extension
	server *mcpServer
	sent   []string
}
