package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong first is said first: the order of checks of session/new, session/resume and session/prompt.
func TestTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.sessions_per_connection", "2", "limits.servers_per_session", "2", "limits.prompts_per_connection", "1"))
	e := dial(t, p)
	three := []any{}
	for i := range 3 { // without a grant they count all the same
		three = append(three, object{"type": "acp", "name": fmt.Sprintf("ungranted%d", i), "id": fmt.Sprint(i)})
	}
	for _, method := range []string{"session/new", "session/resume", "session/prompt", "session/close", "session/list"} {
		e.refused(-32002, method, object{"mcpServers": 7})
	}
	e.hello()
	scope := func(method string, params any) string {
		t.Helper()
		failed := e.answer(e.send(method, params))
		if failed.Error == nil {
			t.Fatalf("%s %v: %s", method, params, failed.raw)
		}
		if failed.Error.Code == -32602 {
			return "-32602"
		}
		for _, key := range []string{"scope", "reason"} {
			if word, ok := failed.Error.Data[key].(string); ok {
				return word
			}
		}
		return failed.raw
	}
	expect := func(want, method string, params any) {
		t.Helper()
		if got := scope(method, params); got != want {
			t.Errorf("%s %v: %s, want %s", method, params, got, want)
		}
	}
	expect("servers_per_session", "session/new", object{"cwd": "/", "mcpServers": three})
	expect("servers_per_session", "session/new", object{"cwd": "relative", "mcpServers": three})
	if ids := e.sessions(); len(ids) != 0 || p.tree().Pod.Sessions != 0 {
		t.Errorf("a refused session/new opened %v", ids)
	}
	one, two := e.openMore(), e.openMore()
	expect("-32602", "session/new", object{"mcpServers": three})
	expect("sessions_per_connection", "session/new", object{"cwd": "relative", "mcpServers": three})

	unknown := "sess_00000000-0000-4000-8000-000000000000"
	expect("-32602", "session/resume", object{"sessionId": unknown, "mcpServers": three})
	expect("servers_per_session", "session/resume", object{"sessionId": "x", "cwd": "/", "mcpServers": three})
	expect("-32602", "session/resume", object{"sessionId": "x", "cwd": "/", "mcpServers": []any{}})
	expect("sessions_per_connection", "session/resume", object{"sessionId": unknown, "cwd": "relative", "mcpServers": []any{}})
	e.resume(one)

	id := e.sendPrompt(one, "/sleep 1h")
	p.turn(one, "running", true)
	expect("busy", "session/resume", object{"sessionId": one, "cwd": "/", "mcpServers": []any{}})
	expect("prompts_per_connection", "session/prompt", object{})
	expect("prompts_per_connection", "session/prompt", object{"sessionId": two, "prompt": lines("x")})
	e.notify("session/cancel", object{"sessionId": one})
	e.answer(id)
	expect("-32602", "session/prompt", object{"prompt": lines("x")})
	expect("-32602", "session/prompt", object{"sessionId": unknown, "prompt": lines("x")})
	expect("-32602", "session/prompt", object{"sessionId": two, "prompt": []any{}})
	e.says(two, "free", "echo: free\n")
}

// Busy is said before the content is looked at.
func TestABusySessionDoesNotReadThePrompt(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	session := e.open()
	id := e.sendPrompt(session, "/sleep 1h")
	for _, prompt := range []any{nil, []any{}, lines(" "), lines("good")} {
		if failed := e.refused(-32001, "session/prompt", object{"sessionId": session, "prompt": prompt}); failed.Data["reason"] != "busy" {
			t.Errorf("%+v", failed)
		}
	}
	e.notify("session/cancel", object{"sessionId": session})
	e.answer(id)
	e.says(session, "free", "echo: free\n")
}

// Blocks reach the agent as they came, to the byte; what it does not take is refused by its name.
func TestPromptsReachTheAgentToTheByte(t *testing.T) {
	t.Parallel()
	blocks := `[ {"type":"text","text":"\ud800 \u003cb\u003e  \/ é","n":12345678901234567890.10},{"type":"resource_link","uri":"file:///etc/passwd","name":"n","x":{"b":1,"a":2,"b":3}} ]`
	image := `[{"type":"image","mimeType":"image/png","data":"aGk="}]`
	for mode, takes := range map[string]bool{"is fine": false, "takes images": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			p := startPod(t, scripted(t, baseConfig, mode, record))
			e := dial(t, p)
			session := e.open()
			e.call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":%s,"_meta":{"k":1e3}}`, session, blocks))
			answer := e.answer(e.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":%s}`, session, image)))
			switch {
			case takes && answer.Error != nil:
				t.Errorf("an image for an agent that takes them: %s", answer.raw)
			case !takes && (answer.Error == nil || answer.Error.Code != -32602 || !strings.Contains(answer.Error.Message, "image")):
				t.Errorf("an image for an agent that takes none: %s", answer.raw)
			}
			for _, kind := range []string{"audio", "resource", "video"} {
				failed := e.refused(-32602, "session/prompt", object{"sessionId": session, "prompt": []any{object{"type": kind, "data": "", "mimeType": "a/b", "resource": object{"uri": "x:", "text": "t"}}}})
				if !strings.Contains(failed.Message, kind) {
					t.Errorf("a refused %s reads %q", kind, failed.Message)
				}
			}
			given, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(given), `"prompt":`+blocks) || !strings.Contains(string(given), `"_meta":{"k":1e3}`) || strings.Contains(string(given), session) {
				t.Errorf("the agent was given %s", given)
			}
			if strings.Contains(string(given), image) != takes {
				t.Errorf("the agent was given %s", given)
			}
		})
	}
}

// What becomes of a client's declarations: each is reported, and only what is sound, granted and not said twice is connected.
func TestEachDeclarationIsReported(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	last := newServer("katashiro", genA, "katashiro.click")
	other := newServer("other", genA, "other.x")
	e.declare(last, other)
	acp := func(name, id string) object { return object{"type": "acp", "name": name, "id": id} }
	declared := []any{
		acp("katashiro", "an earlier one of that name"), other.declaration(), acp("other2", other.id), acp("ungranted", "u"),
		acp("bad name", "b"), acp(strings.Repeat("n", 65), "long"), acp("", "empty"), acp("noid", ""), acp("longid", strings.Repeat("i", 1025)),
		object{"type": "stdio", "name": "cmd", "command": "/bin/true", "args": []any{}}, object{"type": "sse", "name": "sse", "url": "http://127.0.0.1:9/"}, last.declaration(),
	}
	// In two sessions: the limit counts what is malformed as well.
	e.call("initialize", object{"protocolVersion": 1, "mcpServers": append(append([]any{}, declared[:4]...), declared[9:]...)})
	opened := e.call("session/new", object{"cwd": "/", "mcpServers": []any{}}) // the array of initialize stands in for an empty one
	var first struct{ SessionID string }
	if err := json.Unmarshal(opened, &first); err != nil {
		t.Fatal(err)
	}
	e.ready(first.SessionID, "katashiro")
	e.ready(first.SessionID, "other")
	got := map[string]string{}
	e.mu.Lock()
	for _, server := range e.serverStates(first.SessionID) {
		got[server.Name+"/"+server.ID[:min(len(server.ID), 4)]] = server.State
		if (server.State == "ready") != (server.Reason == "") {
			t.Errorf("%+v", server)
		}
	}
	e.mu.Unlock()
	want := map[string]string{"katashiro/an e": "superseded", "other/id-o": "ready", "ungranted/u": "refused", "cmd/": "ignored", "sse/": "ignored", "katashiro/id-k": "ready"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	second := e.call("session/new", object{"cwd": "/", "mcpServers": declared[4:9]})
	for _, name := range []string{"bad name", "noid", "longid"} {
		if !strings.Contains(string(second), fmt.Sprintf(`"name":%q`, name)) {
			t.Errorf("%s is not reported: %s", name, second)
		}
	}
	if n := strings.Count(string(second), `"state":"refused"`); n != 5 {
		t.Errorf("%d are refused: %s", n, second)
	}
	if a, b := last.connects(), other.connects(); a != 1 || b != 1 || len(e.received("mcp/connect")) != 2 {
		t.Errorf("%d, %d connects of %d", a, b, len(e.received("mcp/connect")))
	}
}
