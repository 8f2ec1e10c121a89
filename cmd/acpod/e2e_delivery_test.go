package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolsOf is what the answer of session/new says of the facade.
type toolsOf struct{ State, Reason, Delivery string }

// openAt opens a session in that folder and gives what is said of its tools.
func (e *extension) openAt(cwd string, servers ...*mcpServer) (session string, tools toolsOf) {
	e.t.Helper()
	var result struct {
		SessionID string
		Meta      struct {
			Servers struct{ Facade toolsOf } `json:"acpod.dev/servers"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(e.call("session/new", object{"cwd": cwd, "mcpServers": e.declare(servers...)}), &result); err != nil {
		e.t.Fatal(err)
	}
	return result.SessionID, result.Meta.Servers.Facade
}

// bench is a workdir and a state folder that outlive a pod.
type bench struct {
	t           *testing.T
	work, state string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, work, t.TempDir()}
}

func (b *bench) config(pairs ...string) string {
	return with(with(baseConfig, "agent.workdir", fmt.Sprintf("%q", b.work), "state.dir", fmt.Sprintf("%q", b.state)), pairs...)
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	full := filepath.Join(b.work, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// read gives the text of a file; "absent" when there is none.
func (b *bench) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.work, name))
	if os.IsNotExist(err) {
		return "absent"
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bench) wants(name, text string) {
	b.t.Helper()
	if got := b.read(name); got != text {
		b.t.Errorf("%s is\n%s\nnot\n%s", name, got, text)
	}
}

// nowhere fails when a secret stands in a file of the pod's, or in what a process was started with.
func (b *bench) nowhere(p *pod, secret string) {
	b.t.Helper()
	for _, root := range []string{b.work, b.state, p.home} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() { // else it went meanwhile, or is a socket
				if text, failed := os.ReadFile(path); failed == nil && strings.Contains(string(text), secret) {
					b.t.Errorf("the token stands in %s", path)
				}
			}
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	for _, pid := range p.processes() {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(text), secret) {
			b.t.Errorf("the token stands in the arguments of %d: %q", pid, text)
		}
	}
}

// One pod after the other over one folder: each delivery gives a session its tools and cleans up what the former wrote.
func TestEachDeliveryGivesASessionItsToolsAndCleansUpTheFormers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const settings, agentFile = "{\n  // mine\n  \"mcpServers\": {\n    \"mine\": {\"command\": \"x\"}, // of mine\n  },\n}\n", `{"name":"a","allowedTools":["read"]}`
	before := map[string]string{".kiro/settings/mcp.json": settings, ".kiro/agents/a.json": agentFile, ".cursor/mcp.json": settings,
		".codex/config.toml": "absent", ".openab/mcp-facade.json": "absent"}
	for name, text := range before {
		if text != "absent" {
			b.write(name, text)
		}
	}
	for _, step := range []struct {
		profile, delivery, is string
		written               []string
	}{
		{"kiro", "file", "file", []string{".kiro/settings/mcp.json", ".kiro/agents/a.json"}},
		{"cursor", "file", "file", []string{".cursor/mcp.json"}},
		{"auto", "auto", "acp", nil},
		{"codex", "file", "file", []string{".codex/config.toml"}},
		{"auto", "file", "file", []string{".openab/mcp-facade.json"}},
		{"auto", "acp", "acp", nil},
	} {
		p := startPod(t, b.config("agent.profile", fmt.Sprintf("%q", step.profile), "agent.delivery", fmt.Sprintf("%q", step.delivery)))
		e := dial(t, p)
		e.hello()
		server := newServer("katashiro", genA, "katashiro.click")
		first, tools := e.openAt("/", server)
		second, again := e.openAt("/")
		if tools != (toolsOf{State: "ready", Delivery: step.is}) || again != tools {
			t.Errorf("%+v: %+v, %+v", step, tools, again)
		}
		e.ready(first, "katashiro")
		caller := p.callerOf(first)
		if got := caller.execute("katashiro.click", `{}`); got.refusal() != "" {
			t.Errorf("%+v: %s", step, got.raw)
		}
		for name, text := range before {
			now := b.read(name)
			if written := contains(step.written, name); !written && now != text {
				t.Errorf("%+v: %s is %s, not %s", step, name, now, text)
			} else if written && (strings.Count(now, "OPENAB_SESSION_TOKEN") != 1 || !strings.Contains(now, "http://"+p.Facade+"/mcp")) && name != ".kiro/agents/a.json" {
				t.Errorf("%+v: %s is %s", step, name, now)
			}
			if !contains(step.written, name) {
				continue
			}
			if info, err := os.Stat(filepath.Join(b.work, name)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", name, info, err)
			}
		}
		b.nowhere(p, caller.token)
		b.nowhere(p, p.callerOf(second).token)
		p.stop()
	}
}

func contains(list []string, one string) bool {
	for _, s := range list {
		if s == one {
			return true
		}
	}
	return false
}

// In one pod, before each agent: what is provably ours goes, what only looks so leaves the session without tools, and the doctor says so.
func TestWhatLeadsAroundThePolicyGoesOrKeepsTheToolsAway(t *testing.T) {
	t.Parallel()
	const bridge = `{"command":"openab","args":["browser-bridge"]}`
	const proxy = `{"url":"http://127.0.0.1:40123/mcp","headers":{"Authorization":"Bearer 2f1c7a52-9a5e-4b0f-8c7e-0d6f0c4b7a11"}}`
	b := newBench(t)
	b.write(".cursor/mcp.json", `{"mcpServers":{"openab-browser":`+bridge+`}}`)
	p := startPod(t, b.config())
	p.await("the first look", func() bool { return b.read(".cursor/mcp.json") == `{"mcpServers":{}}` })
	e := dial(t, p)
	e.hello()
	doctor := func(pairs ...string) (int, string) {
		file := filepath.Join(t.TempDir(), "acpod.toml")
		if err := os.WriteFile(file, []byte(b.config(append([]string{"state.dir", `"` + t.TempDir() + `"`}, pairs...)...)), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, _ := run(t, nil, "doctor", "--config", file)
		return code, out
	}
	for _, row := range []struct {
		name, file, text, after, cwd string
		state                        string
	}{
		{"the bridge", ".kiro/settings/mcp.json", "{\"mcpServers\": {\n  \"openab-browser\": " + bridge + ",\n  \"mine\": {} // mine\n}}", "{\"mcpServers\": {\n  \"mine\": {} // mine\n}}", "/", "ready"},
		{"the proxy below the session's folder", "a/.cursor/mcp.json", `{"mcpServers":{"mine":{},"openab-browser":` + proxy + `}}`, `{"mcpServers":{"mine":{}}}`, "a", "ready"},
		{"the grant", ".kiro/agents/one.json", `{"allowedTools":["read","@openab-browser"]}`, `{"allowedTools":["read"]}`, "/", "ready"},
		{"other arguments", ".cursor/mcp.json", `{"mcpServers":{"openab-browser":{"command":"openab","args":["browser-bridge","-v"]}}}`, "", "/", "bypass"},
		{"an extra key", ".kiro/settings/mcp.json", `{"mcpServers":{"openab-browser":{"command":"openab","args":["browser-bridge"],"disabled":true}}}`, "", "/", "bypass"},
		{"a remote url", ".kiro/agents/one.json", `{"mcpServers":{"openab-browser":` + strings.Replace(proxy, "127.0.0.1", "192.0.2.1", 1) + `}}`, "", "/", "bypass"},
	} {
		b.write(row.file, row.text)
		if row.cwd != "/" {
			row.cwd = filepath.Join(b.work, row.cwd)
		}
		session, tools := e.openAt(row.cwd)
		if tools.State != row.state || tools.Delivery != "acp" || (tools.Reason == "") != (row.state == "ready") {
			t.Errorf("%s: %+v", row.name, tools)
		}
		if row.after == "" {
			row.after = row.text
			for _, entry := range environ(t, p.agentOf(session)) {
				if strings.HasPrefix(entry, "OPENAB_SESSION_TOKEN=") {
					t.Errorf("%s: the agent has a token", row.name)
				}
			}
			if streamed, _ := e.prompt(session, "/new"); !strings.Contains(streamed, `"mcpServers":[]`) {
				t.Errorf("%s: the agent got %s", row.name, streamed)
			}
			if node, _ := p.tree().find("/" + treeName(session)); node.Attrs["facade"] != "bypass" {
				t.Errorf("%s: the tree shows %v", row.name, node.Attrs)
			}
			if code, out := doctor(); code != 1 || !strings.Contains(out, "BROKEN   leftovers: "+row.file) {
				t.Errorf("%s: the doctor says %d %s", row.name, code, out)
			}
			if code, out := doctor("agent.allow_direct", "true"); code != 0 || !strings.Contains(out, "warning  leftovers: "+row.file) {
				t.Errorf("%s: the doctor says %d %s", row.name, code, out)
			}
		}
		b.wants(row.file, row.after)
		if err := os.Remove(filepath.Join(b.work, row.file)); err != nil {
			t.Fatal(err)
		}
		e.call("session/close", object{"sessionId": session})
	}
	if live := p.tree().Pod.TokensLive; live != 0 {
		t.Errorf("%d tokens are live", live)
	}
	if log := p.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "state=bypass") {
		t.Error("the log does not say it")
	}
	p.stop()
	b.write(".cursor/mcp.json", `{"mcpServers":{"openab-browser":{}}}`)
	p = startPod(t, b.config("agent.allow_direct", "true"))
	e = dial(t, p)
	e.hello()
	if _, tools := e.openAt("/"); tools != (toolsOf{State: "ready", Delivery: "acp"}) {
		t.Errorf("with agent.allow_direct: %+v", tools)
	}
	b.wants(".cursor/mcp.json", `{"mcpServers":{"openab-browser":{}}}`)
}

// An agent that takes no HTTP, one that nobody knows, and one whose delivery cannot be set up.
func TestTheDeliveryFollowsTheAgent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mode, delivery, profile, block string
		want                           toolsOf
		entry                          string // in what the agent was asked
	}{
		"auto, takes no http":    {"takes no http", "auto", "claude", "", toolsOf{"ready", "", "file"}, `"mcpServers":[]`},
		"auto, known":            {"calls itself claude", "auto", "auto", "", toolsOf{"ready", "", "acp"}, `"value":"Bearer ${OPENAB_SESSION_TOKEN}"`},
		"auto, unknown":          {"", "auto", "auto", "", toolsOf{"ready", "", "acp"}, `"headers":[{"name":"Authorization","value":"Bearer `},
		"auto, uses them not":    {"", "auto", "cursor", "", toolsOf{"ready", "", "file"}, `"mcpServers":[]`},
		"acp, takes no http":     {"takes no http", "acp", "auto", "", toolsOf{"ready", "", "acp"}, `"args":["bridge"]`},
		"file, it is in the way": {"", "file", "gemini", ".gemini", toolsOf{"failed", "cannot be written", "file"}, `"mcpServers":[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if row.block != "" {
				b.write(row.block, "")
			}
			if row.mode == "" {
				row.mode = "does as it is told"
			}
			record := filepath.Join(t.TempDir(), "record")
			p := startPod(t, with(scripted(t, b.config(), row.mode, record), "agent.delivery", fmt.Sprintf("%q", row.delivery), "agent.profile", fmt.Sprintf("%q", row.profile)))
			e := dial(t, p)
			e.hello()
			session, tools := e.openAt("/")
			if tools.State != row.want.State || tools.Delivery != row.want.Delivery || !strings.Contains(tools.Reason, row.want.Reason) {
				t.Errorf("%+v", tools)
			}
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), row.entry) {
				t.Errorf("the agent was asked %s", text)
			}
			if row.want.State == "failed" {
				if live := p.tree().Pod.TokensLive; live != 0 {
					t.Errorf("%d tokens are live", live)
				}
				e.says(session, "go", "here")
			}
		})
	}
}
