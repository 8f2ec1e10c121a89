package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An agent that cannot be had says why, by the contract's words, and leaves nothing: no session, no tunnel, no process.
func TestEachWayAnAgentFailsHasItsReason(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		mode   string
		code   int
		reason string // "" = the agent's own error, as it came
		turn   bool   // it opens, and fails in a prompt
	}{
		{"exits at start", -32603, "agent_exited", false},
		{"exits at initialize", -32603, "agent_exited", false},
		{"refuses initialize", -32603, "agent_exited", false},
		{"is silent", -32603, "agent_timeout", false},
		{"exits at session/new", -32603, "agent_exited", false},
		{"is silent at session/new", -32603, "agent_timeout", false},
		{"names no session", -32603, "internal", false},
		{"wants a login", -32000, "", false},
		{"exits in a prompt", -32603, "agent_exited", true},
	} {
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			config := scripted(t, with(baseConfig, "agent.new_timeout", `"500ms"`, "agent.stop_grace", `"300ms"`), row.mode, "")
			if row.mode == "is silent" {
				config = with(config, "agent.start_timeout", `"1s"`)
			}
			p := startPod(t, config)
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			e.hello()
			method, params := "session/new", any(object{"cwd": "/", "mcpServers": e.declare(server)})
			session := ""
			if row.turn {
				session = e.openMore(server)
				method, params = "session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": "go"}}}
			}
			failed := e.refused(row.code, method, params)
			switch reason, _ := failed.Data["reason"].(string); {
			case row.reason != "" && reason != row.reason:
				t.Errorf("the reason is %q: %+v", reason, failed)
			case row.reason == "" && (failed.Message != "log in first" || failed.Data["theirs"] != 1.5 || failed.Data["scope"] != nil):
				t.Errorf("the agent's error did not pass as it came: %+v", failed)
			}
			if row.turn { // the next prompt starts another, which does the same
				e.refused(row.code, method, params)
				if told := e.told("_acpod/agent", session); told == 0 {
					t.Error("the client was not told that the agent has forgotten")
				}
				e.call("session/close", object{"sessionId": session})
			}
			if ids := e.sessions(); len(ids) != 0 {
				t.Errorf("sessions %v are left", ids)
			}
			p.await("the end of the session", func() bool { return p.tree().Pod.Sessions == 0 })
			e.await("the end of its tunnels", func() bool { return server.connects() == len(server.ended()) })
			p.restOf(e)
			if left := p.processes(); len(left) > 1 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// Some agents refuse a session, or hang, over an MCP server: then it opens without, says so, and the token is dead.
func TestAnAgentThatDoesNotTakeTheFacadesEntryOpensWithoutIt(t *testing.T) {
	t.Parallel()
	for mode, tries := range map[string]int{"refuses the entry": 2, "hangs with the entry": 2} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			p := startPod(t, scripted(t, with(baseConfig, "agent.new_timeout", `"1s"`), mode, record))
			e := dial(t, p)
			e.hello()
			opened := e.call("session/new", object{"cwd": "/", "mcpServers": e.declare(newServer("katashiro", genA, "katashiro.click"))})
			var result struct {
				SessionID string
				Meta      struct {
					Servers struct {
						Facade struct{ State, Reason, Delivery string }
					} `json:"acpod.dev/servers"`
				} `json:"_meta"`
			}
			if err := json.Unmarshal(opened, &result); err != nil {
				t.Fatal(err)
			}
			facade := result.Meta.Servers.Facade
			if facade.State != "failed" || facade.Reason == "" || facade.Delivery != "acp" || strings.ContainsAny(facade.Reason, "\n\x1b") {
				t.Errorf("the facade is reported as %+v", facade)
			}
			e.ready(result.SessionID, "katashiro")
			if live := p.tree().Pod.TokensLive; live != 0 {
				t.Errorf("%d tokens are live", live)
			}
			if refusal := p.callerOf(result.SessionID).execute("katashiro.click", "").refusal(); refusal != "unknown" {
				t.Errorf("the token of the first try: %q", refusal)
			}
			e.says(result.SessionID, "go", "here")
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			news := []string{}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, `"session/new"`) {
					news = append(news, line)
				}
			}
			if len(news) != tries || !strings.Contains(news[len(news)-1], `"mcpServers":[]`) {
				t.Errorf("the agent was asked %q", news)
			}
		})
	}
}

func TestAnAgentThatStartsSlowlyIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := startPod(t, scripted(t, baseConfig, "starts slowly", ""))
	e := dial(t, p)
	session := e.open(newServer("katashiro", genA, "katashiro.click"))
	if facade := e.facadeState(session); facade != "ready" {
		t.Errorf("the facade is %q", facade)
	}
	e.says(session, "go", "here")
}

// facadeState reads how the answer that opened a session reports the facade.
func (e *extension) facadeState(session string) string {
	e.t.Helper()
	for _, f := range e.received("") {
		var result struct {
			SessionID string
			Meta      struct {
				Servers struct{ Facade struct{ State string } } `json:"acpod.dev/servers"`
			} `json:"_meta"`
		}
		if json.Unmarshal(f.Result, &result) == nil && result.SessionID == session {
			return result.Meta.Servers.Facade.State
		}
	}
	return ""
}

func TestTheEnvironmentOfAnAgentIsExactlyTheDocumentedOne(t *testing.T) {
	t.Parallel()
	withoutFacade := baseConfig[:strings.Index(baseConfig, "[mcp]")] + baseConfig[strings.Index(baseConfig, "[debug]"):]
	for _, row := range []struct {
		name, config string
		more         []string
	}{
		{"with the facade", baseConfig, []string{"OPENAB_SESSION_TOKEN"}},
		{"without it", withoutFacade, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			config := with(row.config, "agent.env", `{SET = "by the operator", USER = "somebody"}`, "agent.inherit_env", `["LET_THROUGH", "NOT_THERE"]`)
			p := startPod(t, config, func(c *exec.Cmd) {
				c.Env = append(c.Env, "LET_THROUGH=yes", "SECRET_OF_THE_POD=hidden", "OPENAB_SESSION_TOKEN=stale", "OPENAB_ACP_AUTH_KEY=")
			})
			e := dial(t, p)
			session := e.open()
			var names []string
			for _, entry := range environ(t, p.agentOf(session)) {
				name, value, _ := strings.Cut(entry, "=")
				names = append(names, name)
				if want, known := map[string]string{"HOME": p.home, "PATH": os.Getenv("PATH"), "USER": "somebody", "SET": "by the operator", "LET_THROUGH": "yes"}[name]; known && value != want {
					t.Errorf("%s is %q, not %q", name, value, want)
				}
				if name == "OPENAB_SESSION_TOKEN" && len(value) < 32 {
					t.Errorf("the token is %q", value)
				}
			}
			want := append([]string{"HOME", "LET_THROUGH", "PATH", "SET", "USER"}, row.more...)
			if slices.Sort(want); !slices.Equal(names, want) {
				t.Errorf("the agent has %q, want %q", names, want)
			}
			if state := e.facadeState(session); (state == "ready") != (row.more != nil) {
				t.Errorf("the facade is %q", state)
			}
		})
	}
}

// The token is written as that agent reads it without showing it: in nobody's arguments and in no file.
func TestATokenStandsInNoArgumentsAndInNoFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		profile, mode string
		literal       bool
	}{{"claude", "is fine", false}, {"generic", "is fine", true}, {"auto", "is fine", true}, {"auto", "calls itself claude", false}} {
		t.Run(row.profile+" "+row.mode, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			p := startPod(t, scripted(t, with(baseConfig, "agent.profile", `"`+row.profile+`"`), row.mode, record))
			e := dial(t, p)
			session := e.open(newServer("katashiro", genA, "katashiro.click"))
			e.says(session, "go", "here")
			caller := p.callerOf(session)
			if text := caller.execute("katashiro.click", `{}`).text(); text != "katashiro.click {}" {
				t.Errorf("the token in the environment does not work: %q", text)
			}
			given, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{false: `"Bearer ${OPENAB_SESSION_TOKEN}"`, true: `"Bearer ` + caller.token + `"`}[row.literal]
			if !strings.Contains(string(given), want) || strings.Contains(string(given), caller.token) != row.literal {
				t.Errorf("the agent was given %s", strings.ReplaceAll(string(given), caller.token, "***"))
			}
			for _, pid := range append(p.processes(), p.command.Process.Pid) {
				line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
				if err == nil && bytes.Contains(line, []byte(caller.token)) {
					t.Errorf("process %d shows the token", pid)
				}
			}
			files := 0
			err = filepath.WalkDir(p.home, func(path string, entry fs.DirEntry, err error) error {
				if err != nil || !entry.Type().IsRegular() {
					return err
				}
				text, err := os.ReadFile(path)
				if files++; bytes.Contains(text, []byte(caller.token)) {
					t.Errorf("%s holds the token", path)
				}
				return err
			})
			if err != nil || files < 2 { // the config and the ready file at least
				t.Errorf("%d files were read: %v", files, err)
			}
			for where, text := range map[string]string{"log": p.log.String(), "tree": string(p.get("http://" + p.Debug + "/debug/tree")), "metrics": string(p.get("http://" + p.Debug + "/metrics"))} {
				if strings.Contains(text, caller.token) {
					t.Errorf("the %s shows the token", where)
				}
			}
			for _, f := range e.received("session/update") {
				if strings.Contains(f.raw, caller.token) {
					t.Errorf("the client was sent the token")
				}
			}
		})
	}
}
