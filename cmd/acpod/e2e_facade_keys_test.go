package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func keyed(key, arguments string) string {
	return fmt.Sprintf(`{"name":"katashiro.click","arguments":%s,"idempotency_key":%q}`, arguments, key)
}

// The same key never runs the same call twice: a repeat joins while it runs, and gets its result after that.
func TestAKeyRunsItsCallOnce(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click", "katashiro.type")
	server.run = heldCall
	agent := e.facadeOf(e.open(server))
	first := agent.start(e, server, "1", keyed("k", `{"n":1}`))
	id := e.lastCallID()
	joined := agent.send("2", keyed("k", `{"n":1}`))
	if result := agent.tool("execute_capability", keyed("k", `{"n":2}`)); result.refusal() != "bad_arguments" {
		t.Errorf("other arguments while it runs: %s", result.raw)
	}
	if !first.open() || !joined.open() || server.callCount() != 1 {
		t.Errorf("%d calls reached the client", server.callCount())
	}
	first.hangUp() // the one who joined keeps it
	first.wait()
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"once"}],"n":1.0}}`, id))
	if result := joined.wait(); result.text() != "once" {
		t.Errorf("the one who joined: %s", result.raw)
	}
	for range 3 {
		if result := agent.tool("execute_capability", keyed("k", `{"n":1}`)); result.text() != "once" || !strings.Contains(result.raw, `"n":1.0`) {
			t.Errorf("a repeat: %s", result.raw)
		}
	}
	if result := agent.tool("execute_capability", keyed("k", `{"n":2}`)); result.refusal() != "bad_arguments" {
		t.Errorf("other arguments after it: %s", result.raw)
	}
	if n := server.callCount(); n != 1 {
		t.Errorf("%d calls reached the client", n)
	}
	// A key belongs to one capability and one session.
	server.snapshot(func() {
		server.run = func(name string, _ json.RawMessage) (any, *rpcError, bool) {
			return textResult("own " + name), nil, false
		}
	})
	if result := agent.tool("execute_capability", strings.Replace(keyed("k", `{"n":1}`), "katashiro.click", "katashiro.type", 1)); result.text() != "own katashiro.type" {
		t.Errorf("the key at another capability: %s", result.raw)
	}
	f := dial(t, p)
	theirs := f.facadeOf(f.open(newServer("katashiro", genA, "katashiro.click")))
	if result := theirs.tool("execute_capability", keyed("k", `{"n":2}`)); result.text() != `katashiro.click {"n":2}` {
		t.Errorf("the key in another session: %s", result.raw)
	}
	if result := anonymous(t, p).tool("execute_capability", keyed("k", `{"n":1}`)); result.refusal() != "unknown" {
		t.Errorf("the key of nobody: %s", result.raw)
	}
	// A call that was refused before it was sent leaves its key free.
	server.tools = nil
	if result := agent.tool("execute_capability", keyed("free", `[]`)); result.refusal() != "bad_arguments" {
		t.Errorf("%s", result.raw)
	}
	if result := agent.tool("execute_capability", keyed("free", `{}`)); result.text() != "own katashiro.click" {
		t.Errorf("a key whose call was refused: %s", result.raw)
	}
}

// A key whose call was started, and whose end nobody saw, is not run again: not after its client vanished, and not by the next
// life of its session, which has only what stands in the state folder.
func TestAKeyWhoseEndWasNotSeenIsOutcomeUnknown(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(noAgent, "agent.session_ttl", `"500ms"`))
	meta := object{"acpod.dev/client": "the secret of this client"}
	e := dial(t, p)
	e.hello(meta)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = heldCall
	session := e.openMore(server)
	agent := e.facadeOf(session)
	call := agent.start(e, server, "1", keyed("k", `{"n":1}`))
	if text := string(p.file("state/acpod/idempotency.jsonl")); strings.Count(text, `"key":"k"`) != 1 || strings.Contains(text, strings.TrimPrefix(session, "sess_")) {
		t.Errorf("the start is not in the state folder before the call is at the client, or the session's id is: %q", text)
	}
	e.hangUp()
	if result := call.wait(); result.refusal() != "outcome_unknown" {
		t.Errorf("its client has gone: %s", result.raw)
	}
	p.await("the suspension", func() bool { return p.tree().Pod.Sessions == 0 })

	e = dial(t, p)
	e.hello(meta)
	e.resume(session) // its next life knows no tool, and of its server the name alone
	bare := e.facadeOf("acpod.dev/facade")
	for key, want := range map[string]string{"k": "outcome_unknown", "never used": "detached"} {
		if result := bare.tool("execute_capability", keyed(key, `{"n":1}`)); result.refusal() != want {
			t.Errorf("without the server, the key %q: %s", key, result.raw)
		}
	}
	e.hangUp()
	p.await("the suspension", func() bool { return p.tree().Pod.Sessions == 0 })

	e = dial(t, p)
	e.hello(meta)
	server = newServer("katashiro", genA, "katashiro.click")
	e.resume(session, server)
	e.ready(session, "katashiro")
	again := e.facadeOf("acpod.dev/facade") // the answer of a resume has no session id
	for _, row := range [][2]string{{`{"n":2}`, "bad_arguments"}, {`{"n":1}`, "outcome_unknown"}, {`{"n":2}`, "bad_arguments"}, {`{"n":1}`, "outcome_unknown"}} {
		if result := again.tool("execute_capability", keyed("k", row[0])); result.refusal() != row[1] {
			t.Errorf("with %s: %s", row[0], result.raw)
		}
	}
	if again.token == agent.token || server.callCount() != 0 {
		t.Errorf("the same token: %v; %d calls", again.token == agent.token, server.callCount())
	}
	if result := again.tool("execute_capability", keyed("other", `{"n":1}`)); result.text() != `katashiro.click {"n":1}` {
		t.Errorf("another key: %s", result.raw)
	}
}

// A repeat asks what became of its first call, so it is told that also when its server has gone meanwhile; only a key that was never
// used is told that the server is not there.
func TestARepeatIsToldOfItsFirstCallWhenTheServerHasGone(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	if result := agent.tool("execute_capability", keyed("answered", `{"n":1}`)); result.text() != `katashiro.click {"n":1}` {
		t.Fatalf("%s", result.raw)
	}
	server.snapshot(func() { server.run = heldCall })
	given := agent.start(e, server, "1", keyed("given up", `{"n":1}`))
	given.hangUp()
	given.wait()
	e.hangUp()
	p.await("the end of the call", func() bool { return p.tree().Pod.CallsInFlight == 0 })
	for _, row := range []struct{ key, arguments, text, refusal string }{
		{"answered", `{"n":1}`, `katashiro.click {"n":1}`, ""},
		{"given up", `{"n":1}`, "", "outcome_unknown"},
		{"answered", `{"n":2}`, "", "bad_arguments"},
		{"given up", `{"n":2}`, "", "bad_arguments"},
		{"never used", `{"n":1}`, "", "detached"},
	} {
		if result := agent.tool("execute_capability", keyed(row.key, row.arguments)); result.refusal() != row.refusal || row.text != "" && result.text() != row.text {
			t.Errorf("the key %q with %s: %s", row.key, row.arguments, result.raw)
		}
	}
	f := dial(t, p) // of the keys of one session, another learns nothing
	theirs := f.facadeOf(f.open(newServer("katashiro", genA)))
	if result := theirs.tool("execute_capability", keyed("answered", `{"n":1}`)); result.refusal() != "unknown" {
		t.Errorf("another session: %s", result.raw)
	}
	if n := server.callCount(); n != 2 {
		t.Errorf("%d calls reached the client", n)
	}
}

// While a granted server is connecting, a search and a call wait for it, ten seconds and no more; then it is pending, and the
// call is detached when the name is that server's.
func TestWhatWaitsForAServerThatConnects(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	t.Run("it comes", func(t *testing.T) {
		t.Parallel()
		e := dial(t, p)
		e.hello()
		server := newServer("katashiro", genA, "katashiro.click")
		server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
			return nil, nil, true, method == "tools/list"
		}
		session := e.newSession(server)
		agent := e.facadeOf(session)
		e.await("the list's request", func() bool { return strings.Contains(e.lastFrames(4), "tools/list") })
		call := agent.send("1", writing)
		found := make(chan searchAnswer, 1)
		go func() { found <- agent.search(`{}`) }()
		p.await("both wait", func() bool { n, _ := p.tree().find("/" + treeName(session)); return n.Account.Used >= 32<<10 })
		if !call.open() {
			t.Error("the call did not wait")
		}
		list := e.received("mcp/message")
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"katashiro.click","inputSchema":{}}]}}`, list[len(list)-1].ID))
		if result := call.wait(); result.text() != `katashiro.click {"n":1}` {
			t.Errorf("the call got %s", result.raw)
		}
		if got := <-found; got.Total != 1 || len(got.Pending) != 0 {
			t.Errorf("the search got %+v", got)
		}
	})
	t.Run("it does not come", func(t *testing.T) {
		t.Parallel()
		e := dial(t, p)
		e.hello()
		server := newServer("katashiro", genA)
		server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
			return nil, nil, true, method == "mcp/connect"
		}
		other := newServer("other", genA, "other.x")
		session := e.newSession(server, other)
		e.ready(session, "other")
		agent := e.facadeOf(session)
		begun := time.Now()
		known, mine, strange := agent.send("1", `{"name":"other.x"}`), agent.send("2", writing), agent.send("3", `{"name":"nobody.knows"}`)
		if result := known.wait(); result.text() != "other.x {}" {
			t.Errorf("a name that is known: %s", result.raw)
		}
		got := agent.search(`{}`)
		if took := time.Since(begun); took < 9*time.Second {
			t.Errorf("the search came back after %v", took)
		}
		if fmt.Sprint(got.Pending) != "[katashiro]" || got.Total != 1 {
			t.Errorf("the search got %+v", got)
		}
		if result := mine.wait(); result.refusal() != "detached" {
			t.Errorf("a name of the server that connects: %s", result.raw)
		}
		if result := strange.wait(); result.refusal() != "unknown" {
			t.Errorf("another name: %s", result.raw)
		}
	})
	t.Run("its early list stands at once", func(t *testing.T) {
		t.Parallel()
		e := dial(t, p)
		e.hello()
		server := newServer("katashiro", genA)
		server.early = tools("katashiro.click katashiro.secret")
		server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
			return nil, nil, true, method == "mcp/connect"
		}
		agent := e.facadeOf(e.newSession(server))
		begun := time.Now()
		got := agent.search(`{}`)
		if got.Total != 1 || got.Capabilities[0].Name != "katashiro.click" || fmt.Sprint(got.Pending) != "[katashiro]" || time.Since(begun) > 9*time.Second {
			t.Errorf("%+v after %v", got, time.Since(begun))
		}
	})
}
