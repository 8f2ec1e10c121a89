package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var noAgent = with(baseConfig, "agent.driver", `"none"`)

const granted = "katashiro.click katashiro.navigate katashiro.read_dom katashiro.screenshot katashiro.type"

func tools(names string) (list []object) {
	for _, name := range strings.Fields(names) {
		list = append(list, object{"name": name, "description": "d", "inputSchema": object{"type": "object"}})
	}
	return list
}

// Catalog = fetched and granted, computed when it is read: no early list, late list or cache shows more.
func TestExactlyTheGrantedToolsAreSeen(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	e.hello()
	server := newServer("katashiro", genA)
	server.early = tools(granted + " katashiro.secret katashiro.cookies")
	hold := make(chan struct{})
	server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
		if method == "tools/list" {
			select {
			case <-hold:
			case <-time.After(patience):
			}
		}
		return nil, nil, false, false
	}
	server.tools = tools(granted + " katashiro.secret katashiro.cookies")
	session := e.newSession(server)
	agent := e.facadeOf(session)
	want := strings.Fields(granted)
	early := []string{}
	for _, one := range agent.search(`{"limit":100}`).Capabilities {
		early = append(early, one.Name)
	}
	if !slices.Equal(early, want) {
		t.Errorf("the early list shows %v", early)
	}
	close(hold)
	e.ready(session, "katashiro")
	check := func(when string) {
		t.Helper()
		answer := agent.search(`{"limit":100}`)
		names := []string{}
		for _, one := range answer.Capabilities {
			names = append(names, one.Name)
			if one.Provider != "openab-browser" || one.Availability != "ready" {
				t.Errorf("%s: %+v", when, one)
			}
		}
		if !slices.Equal(names, want) || answer.Total != 5 {
			t.Errorf("%s the search shows %v (total %d)", when, names, answer.Total)
		}
	}
	check("after the list")
	server.snapshot(func() {
		server.tools = tools(granted + " katashiro.secret katashiro.cookies katashiro.more katashiro.most")
	})
	e.notify("mcp/message", object{"connectionId": server.connected[0], "method": "notifications/tools/list_changed"})
	state := e.state(session, "katashiro", "ready")
	e.await("the late list", func() bool {
		for _, s := range e.serverStates(session) {
			if s.Tools != nil && s.Tools.Withheld == 4 {
				state = s
				return true
			}
		}
		return false
	})
	if state.Tools.Offered != 5 {
		t.Errorf("offered %+v", *state.Tools)
	}
	check("after the late list")
	if result := agent.execute("katashiro.secret", `{}`); result.refusal() != "tool_not_granted" {
		t.Errorf("a tool that is not granted: %s", result.raw)
	}
	if slices.Contains(server.calls, "katashiro.secret") {
		t.Error("a refused call reached the client")
	}
}

func TestEachRefusalReadsDifferentlyAndReachesNobody(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	katashiro := newServer("katashiro", genA, "katashiro.click", "katashiro.secret")
	katashiro.tools[0]["inputSchema"] = object{"type": "object", "properties": object{"selector": object{"type": "string"}}, "required": []any{"selector"}, "additionalProperties": false}
	evil := newServer("evil", genA, "evil.tool")
	e.hello()
	session := e.newSession(katashiro, evil)
	e.ready(session, "katashiro")
	e.state(session, "evil", "refused")
	agent := e.facadeOf(session)
	texts := map[string]string{}
	for _, row := range []struct{ name, arguments, refusal string }{
		{"nobody.tool", `{}`, "unknown"},
		{"click", `{}`, "malformed_name"},
		{"evil.tool", `{}`, "server_not_granted"},
		{"katashiro.secret", `{}`, "tool_not_granted"},
		{"katashiro.click", `{}`, "bad_arguments"},
		{"katashiro.click", `{"selector":7,"x":1}`, "bad_arguments"},
		{"katashiro.click", `[]`, "bad_arguments"},
	} {
		result := agent.execute(row.name, row.arguments)
		if result.refusal() != row.refusal {
			t.Errorf("%s %s: %s, not %s", row.name, row.arguments, result.raw, row.refusal)
		}
		if other, seen := texts[result.text()]; seen && other != row.refusal {
			t.Errorf("%s reads like %s: %q", row.refusal, other, result.text())
		}
		texts[result.text()] = row.refusal
	}
	if katashiro.callCount()+evil.callCount()+evil.connects() != 0 {
		t.Errorf("%v, %v reached the clients; evil was connected %d times", katashiro.calls, evil.calls, evil.connects())
	}
	if result := agent.execute("katashiro.click", `{"selector":"#a"}`); result.IsError {
		t.Errorf("a good call: %s", result.raw)
	}

	// Without a token, or with one that is not live, nothing of a session exists.
	for _, caller := range []agentClient{anonymous(t, p), {t, agent.url, "not-a-token"}} {
		if names := caller.names(); len(names) != 0 {
			t.Errorf("a caller without a live token sees %v", names)
		}
		for _, name := range []string{"katashiro.click", "evil.tool", "katashiro.secret", "nobody.tool", "click"} {
			if result := caller.execute(name, `{"selector":"#a"}`); result.refusal() != "unknown" {
				t.Errorf("%s without a token: %s", name, result.raw)
			}
		}
	}
}

func TestServersOfOneSessionWithTheSameToolAreBothReached(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(noAgent, "mcp.anonymous", "true")+"[[mcp.acp_servers]]\nname = \"another\"\ntools = [\"*\"]\n")
	e := dial(t, p)
	one, two := newServer("other", genA, "click"), newServer("another", genA, "click")
	agent := e.facadeOf(e.open(one, two))
	names := agent.names()
	if len(names) != 2 {
		t.Fatalf("the search shows %v", names)
	}
	for _, server := range []*mcpServer{one, two} {
		server.run = func(string, json.RawMessage) (any, *rpcError, bool) {
			return textResult("from " + server.name), nil, false
		}
	}
	reached := map[string]string{}
	for _, name := range append(names, "other.click", "another.click") {
		result := agent.execute(name, `{}`)
		if result.IsError {
			t.Fatalf("%s: %s", name, result.raw)
		}
		reached[name] = result.text()
	}
	if reached["other.click"] != "from other" || reached["another.click"] != "from another" || reached[names[0]] == reached[names[1]] {
		t.Errorf("reached %v", reached)
	}
	for _, called := range append(one.calls, two.calls...) {
		if called != "click" { // the name as its server published it
			t.Errorf("a server was called with %q", called)
		}
	}
}

func TestSessionsWithTheSameServerReachOnlyTheirOwnClient(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	const n = 8
	type party struct {
		e      *extension
		server *mcpServer
		agent  agentClient
	}
	var parties []party
	for i := range n {
		e := dial(t, p)
		server := newServer("katashiro", generation("ABC0"[i%4]), "katashiro.click")
		server.run = func(_ string, arguments json.RawMessage) (any, *rpcError, bool) {
			return textResult(fmt.Sprintf("client %d got %s", i, arguments)), nil, false
		}
		parties = append(parties, party{e, server, e.facadeOf(e.open(server))})
	}
	done := make(chan string, n)
	for i, one := range parties {
		go func() {
			for round := range 20 {
				arguments := fmt.Sprintf(`{"caller":%d,"round":%d}`, i, round)
				want := fmt.Sprintf("client %d got %s", i, arguments)
				if got := one.agent.execute("katashiro.click", arguments); got.text() != want {
					done <- fmt.Sprintf("caller %d: %s", i, got.raw)
					return
				}
			}
			done <- ""
		}()
	}
	for range n {
		if wrong := <-done; wrong != "" {
			t.Error(wrong)
		}
	}
	// A token ends with its session: what its bearer then sees is nothing.
	parties[0].e.call("session/close", object{"sessionId": parties[0].e.sessions()[0]})
	if result := parties[0].agent.execute("katashiro.click", `{}`); result.refusal() != "unknown" {
		t.Errorf("after the session was closed: %s", result.raw)
	}
	if result := parties[1].agent.execute("katashiro.click", `{}`); result.IsError {
		t.Errorf("the neighbour: %s", result.raw)
	}
}

// sessions lists the sessions that this connection may see.
func (e *extension) sessions() (ids []string) {
	e.t.Helper()
	var listed struct {
		Sessions []struct{ SessionID string }
	}
	if err := json.Unmarshal(e.call("session/list", object{}), &listed); err != nil {
		e.t.Fatal(err)
	}
	for _, session := range listed.Sessions {
		ids = append(ids, session.SessionID)
	}
	return ids
}
