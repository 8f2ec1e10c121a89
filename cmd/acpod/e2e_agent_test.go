package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of what a client declares, an agent gets its working directory and the facade. Nothing that the client names is
// started, dialled or handed on.
func TestNothingOfAClientsCommandsReachesTheAgent(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.forward_meta", `["kept"]`))
	marker := filepath.Join(p.home, "ran")
	touch := object{"name": "evil", "command": "/usr/bin/touch", "args": []any{marker}, "env": []any{}}
	e := dial(t, p)
	e.hello()
	opened := e.call("session/new", object{
		"cwd": "/",
		"mcpServers": []any{
			touch,
			object{"type": "stdio", "name": "evil2", "command": "/usr/bin/touch", "args": []any{marker}, "env": []any{}},
			object{"type": "http", "name": "far", "url": "http://127.0.0.1:9/", "headers": []any{}},
			object{"type": "sse", "name": "far2", "url": "http://127.0.0.1:9/", "headers": []any{}},
		},
		"_meta": object{
			"claudeCode":  object{"options": object{"mcpServers": object{"evil3": touch}}},
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			"kept":        object{"a": 1}, "dropped": "secret-of-the-client",
		},
		"unknownMember": touch,
	})
	var session struct{ SessionID string }
	if err := json.Unmarshal(opened, &session); err != nil {
		t.Fatal(err)
	}
	streamed, _ := e.prompt(session.SessionID, "/new")
	var given struct {
		Cwd        string
		McpServers []struct {
			Type, Name, URL string
			Headers         []struct{ Name, Value string }
		}
		Meta map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(streamed), &given); err != nil {
		t.Fatalf("%v in %q", err, streamed)
	}
	for _, word := range []string{"evil", "touch", "far", "claudeCode", "dropped", "unknownMember", "secret-of"} {
		if strings.Contains(streamed, word) {
			t.Errorf("%q reached the agent: %s", word, streamed)
		}
	}
	if given.Meta["traceparent"] == nil || given.Meta["kept"] == nil || len(given.Meta) != 2 {
		t.Errorf("_meta: %v", given.Meta)
	}
	work, err := filepath.EvalSymlinks(filepath.Join(p.home, "work"))
	if err != nil {
		t.Fatal(err)
	}
	if given.Cwd != work {
		t.Errorf("cwd is %q, not %q", given.Cwd, work)
	}
	if len(given.McpServers) != 1 || given.McpServers[0].Name != "openab" || given.McpServers[0].Type != "http" ||
		given.McpServers[0].URL != "http://"+p.Facade+"/mcp" || given.McpServers[0].Headers[0].Value != "Bearer ***" {
		t.Errorf("mcpServers: %+v", given.McpServers)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a command of the client's ran")
	}
}

func TestOnlyDirectoriesInsideTheWorkdirAreTaken(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	work, err := filepath.EvalSymlinks(filepath.Join(p.home, "work"))
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []error{
		os.MkdirAll(filepath.Join(work, "inside", "deep"), 0o755),
		os.MkdirAll(filepath.Join(p.home, "work-beside"), 0o755),
		os.WriteFile(filepath.Join(work, "file"), nil, 0o600),
		os.Symlink("/etc", filepath.Join(work, "out")),
		os.Symlink(filepath.Join(work, "inside"), filepath.Join(work, "in")),
	} {
		if made != nil {
			t.Fatal(made)
		}
	}
	e := dial(t, p)
	e.hello()
	for _, row := range []struct {
		name, cwd  string
		additional []string
		want       string // "" = refused
	}{
		{"the root means the workdir", "/", nil, work},
		{"the workdir itself", work, nil, work},
		{"a folder inside", work + "/inside/deep", nil, work + "/inside/deep"},
		{"a link inside", work + "/in", nil, work + "/inside"},
		{"a folder through dots", work + "/inside/../inside", nil, work + "/inside"},
		{"another folder as well", "/", []string{work + "/inside"}, work},
		{"the parent", work + "/..", nil, ""},
		{"dots", "..", nil, ""},
		{"relative", "inside", nil, ""},
		{"empty", "", nil, ""},
		{"a sibling with the same beginning", p.home + "/work-beside", nil, ""},
		{"a file", work + "/file", nil, ""},
		{"missing", work + "/missing", nil, ""},
		{"a link out", work + "/out", nil, ""},
		{"elsewhere", "/etc", nil, ""},
		{"with a NUL", work + "\x00", nil, ""},
		{"another folder elsewhere", "/", []string{"/etc"}, ""},
		{"another folder by a link out", "/", []string{work + "/out"}, ""},
		{"another folder that is relative", "/", []string{"inside"}, ""},
	} {
		params := object{"cwd": row.cwd, "mcpServers": []any{}}
		if row.additional != nil {
			params["additionalDirectories"] = row.additional
		}
		answer := e.answer(e.send("session/new", params))
		if row.want == "" {
			if answer.Error == nil || answer.Error.Code != -32602 || answer.Error.Data["reason"] != "cwd" {
				t.Errorf("%s: %s", row.name, answer.raw)
			}
			continue
		}
		var opened struct{ SessionID string }
		if answer.Error != nil || json.Unmarshal(answer.Result, &opened) != nil {
			t.Errorf("%s: %s", row.name, answer.raw)
			continue
		}
		streamed, _ := e.prompt(opened.SessionID, "/new")
		if !strings.Contains(streamed, fmt.Sprintf(`"cwd":%q`, row.want)) {
			t.Errorf("%s: the agent got %s", row.name, streamed)
		}
		for _, directory := range row.additional {
			if !strings.Contains(streamed, directory) {
				t.Errorf("%s: the agent got %s", row.name, streamed)
			}
		}
		e.call("session/close", object{"sessionId": opened.SessionID})
	}
}

func TestATurnEndsOnceAndForTheRightReason(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.cancel_timeout", `"500ms"`, "agent.turn_idle_timeout", `"2s"`, "agent.stop_grace", `"300ms"`))
	e := dial(t, p)
	session := e.open()

	t.Run("a cancel in the next frame", func(t *testing.T) {
		for range 20 {
			id := e.sendPrompt(session, "/sleep 1h")
			e.notify("session/cancel", object{"sessionId": session})
			if reason := stopReason(e.answer(id)); reason != "cancelled" {
				t.Fatalf("ended with %q", reason)
			}
		}
	})
	t.Run("a second prompt while one runs", func(t *testing.T) {
		id := e.sendPrompt(session, "/sleep 1h")
		busy := e.refused(-32001, "session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": "x"}}})
		if busy.Data["reason"] != "busy" {
			t.Errorf("%+v", busy)
		}
		e.notify("session/cancel", object{"sessionId": session})
		e.answer(id)
	})
	t.Run("an agent that hangs is stopped and the next prompt starts another", func(t *testing.T) {
		id := e.sendPrompt(session, "/hang")
		e.notify("session/cancel", object{"sessionId": session})
		if reason := stopReason(e.answer(id)); reason != "cancelled" {
			t.Fatalf("ended with %q", reason)
		}
		e.says(session, "again", "echo: again\n")
	})
	t.Run("an agent that dies", func(t *testing.T) {
		for range 10 { // the next prompt comes while the news of the death is still on its way
			answer := e.answer(e.sendPrompt(session, "/crash"))
			if answer.Error == nil || answer.Error.Code != -32603 || answer.Error.Data["reason"] != "agent_exited" {
				t.Fatalf("answered %s", answer.raw)
			}
			e.says(session, "and again", "echo: and again\n")
		}
	})
	t.Run("an agent that says nothing", func(t *testing.T) {
		answer := e.answer(e.sendPrompt(session, "/sleep 1h"))
		if answer.Error == nil || answer.Error.Code != -32603 || answer.Error.Data["reason"] != "idle" {
			t.Fatalf("answered %s", answer.raw)
		}
		e.says(session, "once more", "echo: once more\n")
	})
	t.Run("prompts that are none", func(t *testing.T) {
		for _, blocks := range []any{[]any{}, nil, "text", []any{object{"type": "text", "text": " \n\t"}}, []any{object{"type": "text"}},
			[]any{object{"type": "video", "data": "", "mimeType": "video/mp4"}}, []any{object{"type": "resource_link", "name": "n"}}, []any{object{}}} {
			e.refused(-32602, "session/prompt", object{"sessionId": session, "prompt": blocks})
		}
		e.says(session, "and on", "echo: and on\n")
	})
	t.Run("garbage and a flood on stderr", func(t *testing.T) {
		e.says(session, "/garbage\n/stderr 300000\nstill", "echo: still\n")
	})
}

func TestAPermissionIsAskedOfTheClient(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.permission_timeout", `"1s"`))
	e := dial(t, p)
	asked := make(chan frame, 10)
	answers := make(chan any, 10)
	e.other = func(f frame) (any, *rpcError, bool) {
		if f.Method != "session/request_permission" {
			return nil, methodNotFound, f.ID != nil
		}
		asked <- f
		select {
		case answer := <-answers:
			return answer, nil, true
		default:
			return nil, nil, false // left open
		}
	}
	session := e.open()
	for _, row := range []struct {
		answer any
		want   string
	}{
		{object{"outcome": object{"outcome": "selected", "optionId": "allow"}}, "choice: allow\n"},
		{object{"outcome": object{"outcome": "selected", "optionId": "reject"}}, "choice: reject\n"},
		{object{"outcome": object{"outcome": "cancelled"}}, "choice: cancelled\n"},
		{object{"outcome": object{"outcome": "selected", "optionId": "never offered"}}, "choice: cancelled\n"},
		{nil, "choice: reject\n"}, // nobody answers: the rejecting option, never approval
	} {
		if row.answer != nil {
			answers <- row.answer
		}
		e.says(session, "/ask", row.want)
		if f := <-asked; !strings.Contains(f.raw, session) {
			t.Errorf("asked with another session id: %s", f.raw)
		}
	}
	id := e.sendPrompt(session, "/ask")
	<-asked
	e.notify("session/cancel", object{"sessionId": session})
	if reason := stopReason(e.answer(id)); reason != "cancelled" {
		t.Errorf("ended with %q", reason)
	}
	for mode, want := range map[string]string{"allow": "choice: allow\n", "deny": "choice: reject\n"} {
		p := startPod(t, with(baseConfig, "agent.permissions", fmt.Sprintf("%q", mode)))
		e := dial(t, p)
		e.says(e.open(), "/ask", want)
	}
}
