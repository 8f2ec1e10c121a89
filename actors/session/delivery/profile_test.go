package delivery

import (
	"strings"
	"testing"
)

func TestAnAgentIsKnownByItsNameThenByItsCommand(t *testing.T) {
	for _, row := range []struct {
		configured, name string
		command          []string
		want             string
		honours          bool
	}{
		{"auto", "@agentclientprotocol/Claude-agent-acp", nil, "claude", true},
		{"auto", "codex-acp", nil, "codex", true},
		{"auto", "gemini-cli", nil, "gemini", true},
		{"auto", "OpenCode", nil, "opencode", true},
		{"auto", "Kiro CLI Agent", nil, "kiro", false},
		{"auto", "cursor-agent", nil, "cursor", false},
		{"auto", "acpod-demo", nil, "generic", true},
		{"auto", "acpod-chaos", nil, "generic", true},
		{"auto", "somebody", nil, "generic", true},
		{"auto", "claudette", nil, "generic", true},
		{"auto", "somebody", []string{"/usr/bin/cursor-agent", "acp"}, "cursor", false},
		{"auto", "codex-acp", []string{"cursor-agent"}, "codex", true},
		{"auto", "", []string{"acpod", "agent", "demo"}, "generic", true},
		{"auto", "", []string{"npx", "-y", "@agentclientprotocol/claude-agent-acp@latest"}, "claude", true},
		{"auto", "", []string{"node", "/srv/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"}, "claude", true},
		{"auto", "", []string{"node", "/srv/node_modules/@openai/codex-acp/index.mjs"}, "codex", true},
		{"auto", "", []string{"opencode", "acp"}, "opencode", true},
		{"auto", "", []string{"/opt/gemini", "--acp"}, "gemini", true},
		{"auto", "", []string{"/home/claude/agent"}, "generic", true},
		{"auto", "", nil, "generic", true},
		{"auto", "x", []string{"/opt/acpod-agent"}, "generic", true},
		{"generic", "claude", []string{"claude"}, "generic", true},
		{"kiro", "claude", []string{"claude"}, "kiro", false},
	} {
		if p := profileOf(row.configured, row.name, row.command); p.Name != row.want || p.Honours != row.honours {
			t.Errorf("%q, %q, %q is %s (honours %v), not %s", row.configured, row.name, row.command, p.Name, p.Honours, row.want)
		}
	}
}

func TestAutoIsTheEntryOfTheSessionUnlessTheAgentDoesNotUseItElseTheFile(t *testing.T) {
	for _, row := range []struct {
		configured Mode
		profile    string
		agent      *Agent
		want       Mode
	}{
		{Auto, "claude", &Agent{HTTP: true}, ACP},
		{Auto, "claude", &Agent{}, File},
		{Auto, "claude", nil, ACP},
		{Auto, "generic", &Agent{HTTP: true}, ACP},
		{Auto, "generic", &Agent{}, File},
		{Auto, "generic", nil, ACP},
		{Auto, "cursor", &Agent{HTTP: true}, File},
		{Auto, "kiro", &Agent{HTTP: true}, File},
		{ACP, "cursor", &Agent{}, ACP},
		{Proxy, "claude", &Agent{HTTP: true}, Proxy},
		{Bridge, "claude", &Agent{HTTP: true}, Bridge},
	} {
		if got := choose(row.configured, profileNamed(row.profile), row.agent); got != row.want {
			t.Errorf("%s for %s, %+v: %s, not %s", row.configured, row.profile, row.agent, got, row.want)
		}
	}
	demo := profileOf("auto", "acpod-demo", nil)
	if got := choose(Auto, demo, &Agent{HTTP: true}); got != ACP {
		t.Errorf("the demo agent: %s", got)
	}
}

// The token stands in an entry of session/new alone, and there not for an agent that would show it.
func TestTheEntryOfASession(t *testing.T) {
	const http = `[{"type":"http","name":"openab","url":"` + facadeURL + `","headers":[{"name":"Authorization","value":"Bearer `
	const stdio = `[{"name":"openab","command":"/opt/acpod","args":["bridge"],"env":[{"name":"OPENAB_BROWSER_SOCKET","value":"/run/acpod.sock"}]}]`
	b := newBed(t)
	for _, row := range []struct {
		mode  Mode
		agent Agent
		want  string
	}{
		{ACP, Agent{"any", true}, http + `tok"}]}]`},
		{ACP, Agent{"gemini", true}, http + `tok"}]}]`},
		{ACP, Agent{"claude", true}, http + `${OPENAB_SESSION_TOKEN}"}]}]`},
		{ACP, Agent{"any", false}, stdio},
		{Bridge, Agent{"any", true}, stdio},
		{Bridge, Agent{"cursor", true}, ""},
		{Bridge, Agent{"kiro", true}, ""},
		{File, Agent{"claude", true}, ""},
		{Proxy, Agent{"claude", true}, ""},
	} {
		got, err := b.pod(row.mode, "auto").Servers(row.mode, row.agent, "tok")
		if err != nil || string(got) != row.want {
			t.Errorf("%s for %+v: %s, %v", row.mode, row.agent, got, err)
		}
	}
	none := b.pod(ACP, "auto", func(c *Config) { c.Bridge = BridgeCommand{} })
	if got, err := none.Servers(ACP, Agent{"any", false}, "tok"); err == nil || got != nil {
		t.Errorf("%s %v", got, err)
	}
	if p := b.prepare(b.pod(Bridge, "auto", func(c *Config) { c.Bridge = BridgeCommand{} })); p.State != Failed || !strings.Contains(p.Reason, "bridge_socket") {
		t.Errorf("%+v", p)
	}
}

func TestTheEntryOfTheBridgeInAFile(t *testing.T) {
	for profile, row := range map[string]struct{ file, want string }{
		"cursor": {".cursor/mcp.json", `{"mcpServers":{"openab":{"command":"/opt/acpod","args":["bridge"],"env":{"OPENAB_BROWSER_SOCKET":"/run/acpod.sock"}}}}` + "\n"},
		"kiro":   {".kiro/settings/mcp.json", `{"mcpServers":{"openab":{"command":"/opt/acpod","args":["bridge"],"env":{"OPENAB_BROWSER_SOCKET":"/run/acpod.sock"}}}}` + "\n"},
	} {
		b := newBed(t)
		ready(t, b.prepare(b.pod(Bridge, profile)))
		b.wants(row.file, row.want)
		ready(t, b.prepare(b.pod(File, profile)))
		if text := b.read(row.file); strings.Contains(text, "bridge") || !strings.Contains(text, facadeURL) {
			t.Error(text)
		}
		ready(t, b.prepare(b.pod(Bridge, profile)))
		b.wants(row.file, row.want)
	}
	bridge := BridgeCommand{"/opt/acpod", "/run/x"}
	if got := object(profileNamed("opencode").Files[0].stdio(bridge)); got != `{"type":"local","command":["/opt/acpod","bridge"],"environment":{"OPENAB_BROWSER_SOCKET":"/run/x"}}` {
		t.Error(got)
	}
	c, _ := (&tomlDocument{}).insert("mcp_servers", "openab", profileNamed("codex").Files[0].stdio(bridge))
	if d, err := readTOML([]byte(c.with)); err != nil || digest(d.all()) != digest(map[string]any{"mcp_servers": map[string]any{"openab": map[string]any{
		"command": "/opt/acpod", "args": []any{"bridge"}, "env": map[string]any{"OPENAB_BROWSER_SOCKET": "/run/x"}}}}) {
		t.Errorf("%s: %v", c.with, err)
	}
}
