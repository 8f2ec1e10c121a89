package main

import (
	"strings"
	"testing"
)

// agent.max_sessions counts running agents: at the cap the longest idle session is suspended. It is gone from the tree, its
// token is dead, and a resume starts it again, with an agent that has forgotten and a token of its own.
func TestAtTheCapAnIdleSessionGivesItsPlaceAndComesBack(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.max_sessions", "1", "agent.stop_grace", `"300ms"`))
	one, two := dial(t, p), dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	first := one.open(server)
	one.says(first, "remember", "echo: remember\n")
	pid := p.agentOf(first)
	old := p.callerOf(first)
	if text := old.execute("katashiro.click", `{}`).text(); text != "katashiro.click {}" {
		t.Fatalf("the token does not work: %q", text)
	}

	second := two.open(newServer("katashiro", genA, "katashiro.click"))
	one.await("the word that it is suspended", func() bool {
		for _, f := range one.frames {
			if f.Method == "_acpod/suspended" && strings.Contains(f.raw, first) {
				return true
			}
		}
		return false
	})
	one.await("the end of its tunnel", func() bool { return len(server.ended()) == 1 })
	one.refused(-32602, "session/prompt", object{"sessionId": first, "prompt": []any{object{"type": "text", "text": "x"}}})
	if refusal := old.execute("katashiro.click", `{}`).refusal(); refusal != "unknown" {
		t.Errorf("the token of the suspended session: %q", refusal)
	}
	for _, left := range p.processes() {
		if left == pid {
			t.Errorf("the agent %d of the suspended session lives", pid)
		}
	}
	tree := p.tree()
	if _, there := tree.find("/" + treeName(first)); there || tree.Pod.Agents != 1 || tree.Pod.TokensLive != 1 || tree.Pod.Sessions != 1 {
		t.Errorf("the suspended session is in the tree: %v, %+v", there, *tree.Pod)
	}
	if ids := one.sessions(); len(ids) != 1 || ids[0] != first {
		t.Errorf("its client lists %v", ids)
	}

	got := one.resume(first, server)
	if got.State != "idle" || got.Agent != "restored" || got.MissedUpdates != 0 || got.LastTurn == nil || got.LastTurn.StopReason != "end_turn" {
		t.Errorf("resumed: %+v", got)
	}
	one.ready(first, "katashiro")
	one.says(first, "/call katashiro.click {}", "katashiro.click {}\n")
	young := p.callerOf(first)
	if young.token == old.token {
		t.Error("the next agent has the token of the one before")
	}
	if refusal := old.execute("katashiro.click", `{}`).refusal(); refusal != "unknown" {
		t.Errorf("the old token after the resume: %q", refusal)
	}
	if _, there := p.tree().find("/" + treeName(second)); there {
		t.Error("two sessions live in one place")
	}

	id := one.sendPrompt(first, "/sleep 1h")
	p.turn(first, "running", true)
	for method, params := range map[string]object{
		"session/new":    {"cwd": "/", "mcpServers": two.declare(newServer("katashiro", genA, "katashiro.click"))},
		"session/resume": {"sessionId": second, "cwd": "/", "mcpServers": []any{}},
	} {
		full := two.refused(-32000, method, params)
		if full.Data["scope"] != "max_sessions" || full.Data["limit"] != 1.0 || full.Data["used"] != 1.0 {
			t.Errorf("%s with all busy: %+v", method, full)
		}
	}
	if n := len(two.received("mcp/connect")); n != 1 {
		t.Errorf("a refused session/new opened a tunnel: %d connects", n)
	}
	one.notify("session/cancel", object{"sessionId": first})
	if reason := stopReason(one.answer(id)); reason != "cancelled" {
		t.Errorf("the turn ended with %q", reason)
	}
	two.resume(second)
	two.says(second, "mine again", "echo: mine again\n")
	if opened, ended := server.connects(), len(server.ended()); opened != 2 || ended != 2 {
		t.Errorf("%d tunnels of the first were opened, %d ended", opened, ended)
	}
}

// Time suspends a session whose client has gone, and no other.
func TestTimeSuspendsOnlyTheSessionsThatNobodyIsAttachedTo(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.session_ttl", `"500ms"`, "agent.stop_grace", `"300ms"`))
	stays, leaves := dial(t, p), dial(t, p)
	secret := object{"acpod.dev/client": "a secret of the one that leaves"}
	leaves.hello(secret)
	kept, left := stays.open(newServer("katashiro", genA, "katashiro.click")), leaves.openMore()
	p.agentOf(kept)
	leaves.sendPrompt(left, "/sleep 2s\nlast words")
	p.turn(left, "running", true)
	leaves.hangUp()
	p.turn(left, "running", false) // longer than the ttl: a turn is not cut
	for range 2 {
		p.await("the suspension", func() bool { _, there := p.tree().find("/" + treeName(left)); return !there })
		again := dial(t, p)
		again.hello(secret)
		if ids := again.sessions(); len(ids) != 1 || ids[0] != left {
			t.Errorf("its client lists %v", ids)
		}
		got := again.resume(left)
		if got.Agent != "restored" || got.State != "idle" || got.LastTurn == nil || got.LastTurn.StopReason != "end_turn" {
			t.Errorf("resumed: %+v", got)
		}
		again.hangUp()
	}
	stays.says(kept, "/call katashiro.click {}", "katashiro.click {}\n")
	if told := stays.told("_acpod/suspended", kept); told != 0 {
		t.Error("a session with a client was suspended")
	}
}

// What a client was not there for, and nobody kept, is counted: nothing is lost uncounted.
func TestWhatIsMissedIsCountedExactly(t *testing.T) {
	t.Parallel()
	const all = 3000
	p := startPod(t, baseConfig)
	secret := object{"acpod.dev/client": "a secret of this client"}
	first := dial(t, p)
	first.hello(secret)
	session := first.openMore()
	first.sendPrompt(session, "/sleep 1s\n/flood 3000")
	p.turn(session, "running", true)
	first.hangUp()
	p.turn(session, "idle", false)

	again := dial(t, p)
	again.hello(secret)
	got := again.resume(session)
	again.await("the end of the turn", func() bool {
		for _, f := range again.frames {
			if f.Method == "_acpod/turn_ended" {
				return true
			}
		}
		return false
	})
	updates := again.received("session/update")
	if got.MissedUpdates == 0 || got.MissedUpdates+len(updates) != all {
		t.Fatalf("%d missed and %d received of %d", got.MissedUpdates, len(updates), all)
	}
	if want := got.MissedUpdates * len(updates[0].raw); got.MissedBytes != want { // the updates of a flood are of one length
		t.Errorf("%d bytes are missed, want %d", got.MissedBytes, want)
	}
	for i, f := range updates {
		var n int
		if text := chunk(f, session); scan(text, &n) != nil || n != got.MissedUpdates+i {
			t.Fatalf("update %d says %.20q", i, text)
		}
	}
	if got.State != "idle" || got.Agent != "alive" || got.LastTurn == nil || got.LastTurn.StopReason != "end_turn" {
		t.Errorf("%+v", got)
	}
	third := dial(t, p)
	third.hello(secret)
	if got := third.resume(session); got.MissedUpdates != 0 || got.MissedBytes != 0 {
		t.Errorf("told twice: %+v", got)
	}
	third.says(session, "on", "echo: on\n")
	if n := len(third.received("session/update")); n != 1 {
		t.Errorf("what was told came again: %d updates", n)
	}
}

// Without an agent: no place of max_sessions, no prompt, a token that its client keeps for as long as the session is open.
func TestSessionsWithoutAnAgentTakeNoPlace(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(noAgent, "agent.max_sessions", "1"))
	e := dial(t, p)
	e.hello(object{"acpod.dev/client": "a secret of this client"})
	server := newServer("katashiro", genA, "katashiro.click")
	one := e.openMore(server)
	two, three := e.openMore(), e.openMore()
	if root := p.tree(); root.Pod.Agents != 0 || root.Pod.Sessions != 3 {
		t.Errorf("%+v", *root.Pod)
	}
	for _, session := range []string{one, two, three} {
		failed := e.refused(-32603, "session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": "x"}}})
		if failed.Data["reason"] != "no_agent" {
			t.Errorf("%+v", failed)
		}
	}
	caller, stranger := e.facadeOf(one), e.facadeOf(two)
	if caller.token == stranger.token {
		t.Fatal("two sessions have one token")
	}
	if text := caller.execute("katashiro.click", `{}`).text(); text != "katashiro.click {}" {
		t.Errorf("the token does not work: %q", text)
	}
	if refusal := stranger.execute("katashiro.click", `{}`).refusal(); refusal != "unknown" {
		t.Errorf("a tool of another session: %q", refusal)
	}
	e.hangUp()
	again := dial(t, p)
	again.hello(object{"acpod.dev/client": "a secret of this client"})
	resumed := again.answer(again.send("session/resume", object{"sessionId": one, "cwd": "/", "mcpServers": again.declare(server)}))
	if !strings.Contains(resumed.raw, `"token":"`+caller.token+`"`) || !strings.Contains(resumed.raw, `"url":"`+caller.url+`"`) {
		t.Errorf("a session that lived on has another token: %s", resumed.raw)
	}
	again.ready(one, "katashiro")
	if text := caller.execute("katashiro.click", `{}`).text(); text != "katashiro.click {}" {
		t.Errorf("the token does not work after the resume: %q", text)
	}
	again.call("session/close", object{"sessionId": one})
	if refusal := caller.execute("katashiro.click", `{}`).refusal(); refusal != "unknown" {
		t.Errorf("the token after the close: %q", refusal)
	}
}

// session/close ends it at once and for good, also in a running turn with a call on its way.
func TestACloseInARunningTurnAnswersAllAndLeavesNothing(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.stop_grace", `"300ms"`))
	e := dial(t, p)
	e.hello(object{"acpod.dev/client": "a secret of this client"})
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = heldCall
	session := e.openMore(server)
	caller := p.callerOf(session)
	pid := p.agentOf(session)
	id := e.sendPrompt(session, "/fork\n/call katashiro.click {}")
	e.await("the call", func() bool { return server.callCount() == 1 })
	closing := e.send("session/close", object{"sessionId": session})
	if reason := stopReason(e.answer(id)); reason != "cancelled" {
		t.Errorf("the turn ended with %q", reason)
	}
	if f := e.answer(closing); f.Error != nil {
		t.Errorf("closed: %s", f.raw)
	}
	if refusal := caller.execute("katashiro.click", `{}`).refusal(); refusal != "unknown" {
		t.Errorf("the token after the close: %q", refusal)
	}
	for method, params := range map[string]object{
		"session/prompt": {"sessionId": session, "prompt": []any{object{"type": "text", "text": "x"}}},
		"session/resume": {"sessionId": session, "cwd": "/", "mcpServers": []any{}},
		"session/close":  {"sessionId": session},
	} {
		e.refused(-32602, method, params)
	}
	if ids := e.sessions(); len(ids) != 0 {
		t.Errorf("listed: %v", ids)
	}
	e.await("the cancel of the call", func() bool { return server.cancelled() > 0 })
	e.await("the end of its tunnel", func() bool { return len(server.ended()) == 1 })
	p.await("the end of its processes", func() bool { return len(p.processes()) == 1 })
	p.restOf(e)
	if len(server.ended()) != 1 || server.ended()[0] != server.connected[0] {
		t.Errorf("%v were opened and %v ended", server.connected, server.ended())
	}
	if agentLives(pid) {
		t.Errorf("the agent %d lives", pid)
	}
}
