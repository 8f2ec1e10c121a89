package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A refused request touches no tunnel: success is the only permission to open or end one.
func TestARefusedRequestTouchesNoTunnel(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.sessions_per_connection", "2", "limits.servers_per_session", "2"))
	stranger := dial(t, p)
	stranger.hello(object{"acpod.dev/client": "a secret of somebody else"})
	foreign := stranger.openMore()
	nobody := dial(t, p)
	open := nobody.open() // a session that e may resume, as neither has a secret

	e := dial(t, p)
	e.refused(-32002, "session/new", object{"cwd": "/", "mcpServers": e.declare(newServer("katashiro", genA, "katashiro.click"))})
	e.refused(-32002, "session/resume", object{"sessionId": foreign, "cwd": "/", "mcpServers": []any{}})
	live := newServer("katashiro", genA, "katashiro.click")
	session := e.open(live)
	fresh := func(n int) []any {
		var servers []*mcpServer
		for i := range n {
			servers = append(servers, newServer(fmt.Sprintf("other%d", i), genA, "x"))
		}
		return e.declare(servers...)
	}
	rows := []struct {
		name, method string
		code         int
		params       any
	}{
		{"new without cwd", "session/new", -32602, object{"mcpServers": fresh(1)}},
		{"new with a cwd that is not there", "session/new", -32602, object{"cwd": "/nowhere/at/all", "mcpServers": fresh(1)}},
		{"new with too many servers", "session/new", -32000, object{"cwd": "/", "mcpServers": fresh(3)}},
		{"new with servers that are no array", "session/new", -32602, object{"cwd": "/", "mcpServers": 7}},
		{"resume without an id", "session/resume", -32602, object{"cwd": "/", "mcpServers": fresh(1)}},
		{"resume of an unknown id", "session/resume", -32602, object{"sessionId": "sess_00000000-0000-4000-8000-000000000000", "cwd": "/", "mcpServers": fresh(1)}},
		{"resume of another spelling of the id", "session/resume", -32602, object{"sessionId": strings.ToUpper(session), "cwd": "/", "mcpServers": fresh(1)}},
		{"resume of another client's id", "session/resume", -32602, object{"sessionId": foreign, "cwd": "/", "mcpServers": fresh(1)}},
		{"resume with too many servers", "session/resume", -32000, object{"sessionId": session, "cwd": "/", "mcpServers": fresh(3)}},
		{"resume with a bad cwd", "session/resume", -32602, object{"sessionId": session, "cwd": "relative", "mcpServers": fresh(1)}},
	}
	check := func(name string) {
		t.Helper()
		e.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
		if n, ended := len(e.received("mcp/connect")), len(e.received("mcp/disconnect")); n != 1 || ended != 0 {
			t.Errorf("after %s there were %d connects and %d disconnects", name, n, ended)
		}
	}
	for _, row := range rows {
		e.refused(row.code, row.method, row.params)
		check(row.name)
	}

	id := e.sendPrompt(session, "/sleep 1h")
	if busy := e.refused(-32001, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": fresh(1)}); busy.Data["reason"] != "busy" {
		t.Errorf("busy: %+v", busy)
	}
	e.notify("session/cancel", object{"sessionId": session})
	e.answer(id)
	check("a resume while busy")

	e.newSession()
	full := e.refused(-32000, "session/new", object{"cwd": "/", "mcpServers": fresh(1)})
	if full.Data["scope"] != "sessions_per_connection" || full.Data["limit"] != 2.0 || full.Data["used"] != 2.0 {
		t.Errorf("at the cap: %+v", full)
	}
	check("a new session at the cap")
	full = e.refused(-32000, "session/resume", object{"sessionId": open, "cwd": "/", "mcpServers": fresh(1)})
	if full.Data["scope"] != "sessions_per_connection" {
		t.Errorf("a resume at the cap: %+v", full)
	}
	check("a resume at the cap")
	if n := len(nobody.received("mcp/connect")) + len(nobody.received("mcp/disconnect")); n != 0 {
		t.Errorf("the owner of that session got %d frames about tunnels", n)
	}
}

func TestAFailedHandshakeIsReportedAndStillDisconnected(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		answer func(method string) (any, *rpcError, bool, bool)
		owed   bool
	}{
		{"connect is refused", func(method string) (any, *rpcError, bool, bool) {
			return nil, &rpcError{Code: -32603, Message: "no\nway"}, false, method == "mcp/connect"
		}, false},
		{"connect gives no id", func(method string) (any, *rpcError, bool, bool) { return object{}, nil, false, method == "mcp/connect" }, false},
		{"connect gives an id that is too long", func(method string) (any, *rpcError, bool, bool) {
			return object{"connectionId": strings.Repeat("x", 1025)}, nil, false, method == "mcp/connect"
		}, false},
		{"initialize fails", func(method string) (any, *rpcError, bool, bool) {
			return nil, &rpcError{Code: -32603, Message: "not today"}, false, method == "initialize"
		}, true},
		{"initialize speaks another version", func(method string) (any, *rpcError, bool, bool) {
			return object{"protocolVersion": "1999-01-01"}, nil, false, method == "initialize"
		}, true},
		{"tools/list fails", func(method string) (any, *rpcError, bool, bool) {
			return nil, &rpcError{Code: -32603, Message: "no list"}, false, method == "tools/list"
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, baseConfig)
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) { return row.answer(method) }
			e.hello()
			session := e.newSession(server)
			if failed := e.state(session, "katashiro", "failed"); failed.Reason == "" || strings.ContainsAny(failed.Reason, "\n\r\x1b") {
				t.Errorf("the reason is %q", failed.Reason)
			}
			if row.owed {
				e.await("the disconnect", func() bool { return len(server.ended()) > 0 })
			}
			e.says(session, "still here", "echo: still here\n")
			e.call("session/close", object{"sessionId": session})
			p.restOf(e)
			if ended := server.ended(); row.owed && (len(ended) != 1 || ended[0] != server.connected[0]) {
				t.Errorf("%v were opened and %v ended", server.connected, ended)
			}
		})
	}
}

// A server declared again under its name takes over: its predecessor is ended once, by its own id, on its own socket, and
// nobody waits for what it answers.
func TestAReplacedTunnelIsEndedOnceWithItsOwnID(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	e.hello(object{"acpod.dev/client": "the secret of one tab"})
	first := newServer("katashiro", genA, "katashiro.click")
	first.deaf = true // it never answers its disconnect
	first.run = func(string, json.RawMessage) (any, *rpcError, bool) { return textResult("first"), nil, false }
	session := e.openMore(first)
	e.says(session, "/call katashiro.click {}", "first\n")

	// A disconnect is waited for 4 s, by nobody else. A machine may be slow for once, but not each time.
	var took time.Duration
	replaced := []*mcpServer{}
	former, second := first, first
	for round := range 3 {
		second = newServer("katashiro", genA, "katashiro.click")
		second.deaf = true
		second.run = func(string, json.RawMessage) (any, *rpcError, bool) {
			return textResult(fmt.Sprint("successor ", round)), nil, false
		}
		began := time.Now()
		e.call("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": e.declare(second)})
		e.await("the next tunnel", func() bool { return second.connects() == 1 })
		e.ready(session, "katashiro")
		e.says(session, "/call katashiro.click {}", fmt.Sprintf("successor %d\n", round))
		took = time.Since(began)
		e.await("the disconnect of the one before", func() bool { return len(former.ended()) == 1 })
		replaced = append(replaced, former)
		if former = second; took < 4*time.Second {
			break
		}
	}
	if took >= 4*time.Second {
		t.Errorf("each successor took its time, the last one %v, as if it waited for its predecessor", took)
	}

	// The same from another connection: the old socket is told, the new one serves.
	other := dial(t, p)
	other.hello(object{"acpod.dev/client": "the secret of one tab"})
	third := newServer("katashiro", genA, "katashiro.click")
	third.run = func(string, json.RawMessage) (any, *rpcError, bool) { return textResult("third"), nil, false }
	other.call("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": other.declare(third)})
	other.await("the third tunnel", func() bool { return third.connects() == 1 })
	other.ready(session, "katashiro")
	other.says(session, "/call katashiro.click {}", "third\n")
	e.await("the last disconnect, on the first socket", func() bool { return len(second.ended()) == 1 })
	e.refused(-32602, "session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": "x"}}})
	for _, server := range append(replaced, second) {
		if ended := server.ended(); len(ended) != 1 || ended[0] != server.connected[0] {
			t.Errorf("%v was opened, %v ended", server.connected, ended)
		}
	}
	if len(third.ended()) != 0 {
		t.Error("the living tunnel was ended")
	}
}

func TestASessionOpensWhileItsServerIsSilent(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
		return nil, nil, true, method == "mcp/connect"
	}
	e.hello()
	session := e.newSession(server) // the demo agent lists its tools during session/new
	e.says(session, "hello", "echo: hello\n")
	if states := e.statesOf(session); len(states) != 1 || states[0].State != "connecting" {
		t.Errorf("states: %+v", states)
	}
}

// statesOf is serverStates for a caller that holds no lock.
func (e *extension) statesOf(session string) []serverState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.serverStates(session)
}

// restOf waits for rest with one connection still open: no session, nothing owed.
func (p *pod) restOf(e *extension) {
	p.t.Helper()
	e.hangUp()
	p.rest()
}

func TestACallInFlightIsAnsweredWhenItsClientVanishes(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.tools = append(server.tools, object{"name": "katashiro.read_dom", "inputSchema": object{"type": "object"}, "annotations": object{"readOnlyHint": true}})
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }
	agent := e.facadeOf(e.open(server))
	results := make(chan [2]string, 2)
	for _, name := range []string{"katashiro.click", "katashiro.read_dom"} {
		go func() {
			result := agent.execute(name, `{}`)
			results <- [2]string{name, result.refusal()}
		}()
	}
	e.await("both calls at the client", func() bool { return server.callCount() == 2 })
	began := time.Now()
	e.hangUp()
	want := map[string]string{"katashiro.click": "outcome_unknown", "katashiro.read_dom": "detached"}
	for range 2 {
		result := <-results
		if want[result[0]] != result[1] {
			t.Errorf("%s was refused as %q, not %q", result[0], result[1], want[result[0]])
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the calls were answered after %v", took)
	}
	if result := agent.execute("katashiro.click", `{}`); result.refusal() != "detached" {
		t.Errorf("a call after that: %s", result.raw)
	}
}

// What a client sends through its tunnel reaches nobody: requests get an error, a changed list is fetched again.
func TestAClientsOwnRequestsReachNobody(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	session := e.open(server)
	connection := server.connected[0]
	for _, method := range []string{"sampling/createMessage", "roots/list", "elicitation/create"} {
		e.refused(-32601, "mcp/message", object{"connectionId": connection, "method": method, "params": object{}})
	}
	e.says(session, "/search read", "nothing found\n")
	server.snapshot(func() {
		server.tools = append(server.tools, object{"name": "katashiro.read_dom", "description": "read the page", "inputSchema": object{"type": "object"}})
	})
	e.notify("mcp/message", object{"connectionId": connection, "method": "notifications/tools/list_changed"})
	e.await("the second list", func() bool {
		lists := 0
		for _, f := range e.frames {
			if f.Method == "mcp/message" && strings.Contains(f.raw, `"tools/list"`) {
				lists++
			}
		}
		return lists >= 2
	})
	for end := time.Now().Add(patience); ; {
		if streamed, _ := e.prompt(session, "/search read"); streamed == "katashiro.read_dom\n" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the new tool was never found")
		}
	}
}
