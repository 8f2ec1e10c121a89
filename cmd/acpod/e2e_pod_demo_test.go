package main

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each line of the demo agent's script does through the pod what the contract says.
func TestTheDemoAgentDoesWhatItsTableSays(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click", "katashiro.screenshot")
	server.run = func(name string, arguments json.RawMessage) (any, *rpcError, bool) {
		switch {
		case name == "katashiro.screenshot":
			return object{"content": []any{
				object{"type": "text", "text": "here:"},
				object{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(make([]byte, 1234))},
			}}, nil, false
		case strings.Contains(string(arguments), "fail"):
			return object{"content": []any{object{"type": "text", "text": "it is stuck"}}, "isError": true}, nil, false
		}
		return textResult("clicked " + string(arguments)), nil, false
	}
	e.other = func(f frame) (any, *rpcError, bool) {
		if f.Method != "session/request_permission" {
			return nil, methodNotFound, true
		}
		return object{"outcome": object{"outcome": "selected", "optionId": "reject"}}, nil, true
	}
	session := e.open(server)
	for line, want := range map[string]string{
		"hello":                               "echo: hello\n",
		"  two  words ":                       "echo:   two  words \n",
		"one\n\ntwo":                          "echo: one\necho: two\n",
		"/nonsense x":                         "echo: /nonsense x\n",
		"/search click":                       "katashiro.click\n",
		"/call katashiro.click {\"a\":1.5}":   "clicked {\"a\":1.5}\n",
		"/call katashiro.click":               "clicked {}\n",
		"/call katashiro.click {\"fail\":1}":  "error: it is stuck\n",
		"/call katashiro.screenshot":          "here:\n[image image/png 1234 bytes]\n",
		"/ask":                                "choice: reject\n",
		"/sleep 1ms":                          "",
		"/emit 100000":                        strings.Repeat("e", 100000),
		"/emit 3000000\nafter":                strings.Repeat("e", 3000000) + "echo: after\n",
		"/garbage\nafter":                     "echo: after\n",
		"/stderr 5000\nafter":                 "echo: after\n",
		"/sleep soon":                         "error: /sleep takes a duration like 2s, not \"soon\"\n",
		"/call katashiro.click {\"not closed": "error: the arguments are not JSON: {\"not closed\n",
	} {
		e.says(session, line, want)
	}
	e.mu.Lock()
	from := len(e.frames)
	e.mu.Unlock()
	e.prompt(session, "/flood 300")
	n := 0
	e.mu.Lock()
	for _, f := range e.frames[from:] {
		if text := chunk(f, session); text != "" {
			if n++; len(text) != 1024 {
				t.Errorf("an update of the flood has %d bytes", len(text))
			}
		}
	}
	e.mu.Unlock()
	if n != 300 {
		t.Errorf("the flood has %d updates", n)
	}

	calls, updates := 0, 0
	for _, f := range e.received("session/update") {
		switch {
		case strings.Contains(f.raw, `"sessionUpdate":"tool_call"`):
			calls++
		case strings.Contains(f.raw, `"sessionUpdate":"tool_call_update"`):
			updates++
		}
	}
	if calls != 5 || updates != 5 { // the search and four calls that were made
		t.Errorf("%d tool_call, %d tool_call_update", calls, updates)
	}

	began := time.Now()
	sleeping := e.sendPrompt(session, "/sleep 1h")
	e.notify("session/cancel", object{"sessionId": session})
	if f := e.answer(sleeping); stopReason(f) != "cancelled" || time.Since(began) > patience/2 {
		t.Errorf("a cancelled sleep: %s", f.raw)
	}

	streamed, _ := e.prompt(session, "/new")
	var params struct {
		CWD        string
		MCPServers []struct {
			Type, Name, URL string
			Headers         []struct{ Name, Value string }
		}
	}
	if err := json.Unmarshal([]byte(streamed), &params); err != nil || len(params.MCPServers) != 1 || params.MCPServers[0].Name != "openab" ||
		params.MCPServers[0].URL != "http://"+p.Facade+"/mcp" || params.MCPServers[0].Headers[0].Value != "Bearer ***" && !strings.HasPrefix(params.MCPServers[0].Headers[0].Value, "Bearer ${") {
		t.Errorf("/new: %v %s", err, streamed)
	}

	first := p.agentOf(session)
	_, crashed := e.prompt(session, "before\n/crash\nafter")
	if crashed.Error == nil || crashed.Error.Code != -32603 || crashed.Error.Data["reason"] != "agent_exited" {
		t.Errorf("/crash: %s", crashed.raw)
	}
	e.says(session, "again", "echo: again\n")
	if second := p.agentOf(session); second == first {
		t.Error("the same process answers after it crashed")
	}
}

// The transcript is under the state folder of the user, his alone.
func TestWhereTheDemoAgentKeepsItsTranscript(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ inherit, variable, under string }{
		"the default":    {"", "", ".local/state/acpod-demo"},
		"XDG_STATE_HOME": {"XDG_STATE_HOME", "state", "state/acpod-demo"},
		"a relative one": {"XDG_STATE_HOME", "./relative", ".local/state/acpod-demo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := baseConfig
			if row.inherit != "" {
				config = with(config, "agent.inherit_env", `["XDG_STATE_HOME"]`)
			}
			p := startPod(t, config, func(c *exec.Cmd) {
				if value := row.variable; value != "" {
					if !strings.HasPrefix(value, ".") {
						value = filepath.Join(filepath.Dir(c.Dir), value)
					}
					c.Env = append(c.Env, "XDG_STATE_HOME="+value)
				}
			})
			e := dial(t, p)
			e.says(e.open(), "remember this", "echo: remember this\n")
			found := 0
			err := filepath.WalkDir(filepath.Join(p.home, row.under), func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				info, _ := entry.Info()
				if strings.Contains(string(text), "remember this") && info.Mode().Perm() == 0o600 {
					found++
				}
				return err
			})
			if err != nil || found != 1 {
				t.Errorf("%d transcripts: %v", found, err)
			}
		})
	}
}
