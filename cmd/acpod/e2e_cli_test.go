package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryCommandHasHelpWithAnExampleAndTheDocumentedExitCodes(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{}, {"serve"}, {"agent"}, {"agent", "demo"}, {"config"}, {"config", "check"}, {"config", "show"}, {"tree"}, {"version"}} {
		code, out, _ := run(t, nil, append(command, "--help")...)
		if code != 0 || !strings.Contains(out, "acpod") {
			t.Errorf("%v --help: %d %q", command, code, out)
		}
		if len(command) > 0 && !strings.Contains(out, "Example") {
			t.Errorf("%v --help shows no example: %q", command, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("[acp]\nlisten = \"127.0.0.1:0\"\nno_such_key = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name      string
		arguments []string
		code      int
		says      string
	}{
		{"an unknown command", []string{"nonsense"}, 2, "nonsense"},
		{"an unknown flag", []string{"serve", "--nonsense"}, 2, "nonsense"},
		{"a bad config", []string{"config", "check", "--config", bad}, 1, "no_such_key"},
		{"serve with a bad config", []string{"serve", "--config", bad}, 1, "bad.toml"},
		{"serve with a missing config", []string{"serve", "--config", "/nowhere/acpod.toml"}, 1, "/nowhere/acpod.toml"},
		{"a log level that is none", []string{"version", "--log-level", "loud"}, 2, "loud"},
	} {
		code, out, text := run(t, nil, row.arguments...)
		if code != row.code || !strings.Contains(text, row.says) || strings.Count(strings.TrimSpace(text), "\n") > 0 || out != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", row.name, code, out, text)
		}
	}
	if _, _, text := run(t, nil, "config", "check", "--config", bad); !strings.Contains(text, "bad.toml:3") {
		t.Errorf("the error names no line: %q", text)
	}
}

func TestTheExampleConfigIsWhatThePodDoesWithoutOne(t *testing.T) {
	t.Parallel()
	example, err := filepath.Abs("../../docs/acpod.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, text := run(t, nil, "config", "check", "--config", example); code != 0 {
		t.Errorf("the example is refused: %s", text)
	}
}

func TestTheEffectiveConfigTellsWhereAValueIsFromAndNoSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "acpod.toml")
	if err := os.WriteFile(file, []byte("[acp]\nauth_key = \"very.secret-key\"\nkeepalive = \"7s\"\n[agent]\nmax_sessions = 3\nenv = { TOKEN = \"also-secret\" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"ACPOD_ACP__KEEPALIVE=9s", "OPENAB_ACP_ALLOWED_ORIGINS=https://a.example, https://b.example", "OPENAB_SOMETHING_ELSE=x", "GATEWAY_LISTEN=0.0.0.0:1"}
	code, out, text := run(t, env, "config", "show", "--config", file, "--json")
	if code != 0 {
		t.Fatal(text)
	}
	var values []struct {
		Key    string
		Value  any
		Origin string
	}
	if err := json.Unmarshal([]byte(out), &values); err != nil {
		t.Fatal(err)
	}
	found := map[string][2]any{}
	for _, value := range values {
		found[value.Key] = [2]any{value.Value, value.Origin}
	}
	if got := found["acp.keepalive"]; got[0] != "9s" || !strings.Contains(got[1].(string), "ACPOD_ACP__KEEPALIVE") {
		t.Errorf("acp.keepalive: %v", got)
	}
	if got := found["agent.max_sessions"]; got[0] != 3.0 || !strings.Contains(got[1].(string), "acpod.toml") {
		t.Errorf("agent.max_sessions: %v", got)
	}
	if got := found["acp.pong_timeout"]; got[0] != "20s" {
		t.Errorf("acp.pong_timeout: %v", got)
	}
	_, shown, _ := run(t, env, "config", "show", "--config", file)
	for _, secret := range []string{"very.secret-key", "also-secret"} {
		if strings.Contains(out+shown, secret) {
			t.Errorf("%q is shown:\n%s%s", secret, out, shown)
		}
	}
	if !strings.Contains(shown, "[acp]") || !strings.Contains(shown, "# ") {
		t.Errorf("shown as TOML:\n%s", shown)
	}
}

func TestVersionAndTree(t *testing.T) {
	t.Parallel()
	code, out, _ := run(t, nil, "version", "--json")
	var version struct{ Version, Commit, Go string }
	if err := json.Unmarshal([]byte(out), &version); code != 0 || err != nil || version.Version == "" || version.Commit == "" || !strings.HasPrefix(version.Go, "go1.27") {
		t.Errorf("version --json: %d %q", code, out)
	}
	p := startPod(t, baseConfig)
	e := dial(t, p)
	e.open()
	code, out, text := run(t, nil, "tree", "--addr", "http://"+p.Debug)
	if code != 0 || !strings.Contains(out, "gateway") || !strings.Contains(out, "conn-1") || !strings.Contains(out, "sess-") {
		t.Errorf("tree: %d %q %q", code, out, text)
	}
	if code, out, text = run(t, nil, "tree", "--json", "--addr", "http://"+p.Debug); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("tree --json: %d %q %q", code, out, text)
	}
	if code, _, text = run(t, nil, "tree", "--addr", "http://127.0.0.1:1"); code != 1 || strings.Count(strings.TrimSpace(text), "\n") > 0 {
		t.Errorf("tree without a pod: %d %q", code, text)
	}
}

// Without any config there is a pod: all three listeners on loopback, the demo agent, the page.
func TestTheEmbeddedDefaultRuns(t *testing.T) {
	t.Parallel()
	p := startPod(t, "", func(c *exec.Cmd) {
		c.Args = []string{c.Args[0], "serve", "--ready-file", c.Args[len(c.Args)-1]}
		c.Env = append(c.Env, "ACPOD_ACP__LISTEN=127.0.0.1:0", "ACPOD_MCP__LISTEN=127.0.0.1:0", "ACPOD_DEBUG__LISTEN=127.0.0.1:0")
	})
	if !strings.Contains(string(p.get("http://"+p.Public+"/")), "playground") {
		t.Error("no page at /")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		p.get("http://" + p.Public + path)
	}
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	e.says(e.open(server), "/call katashiro.click {}", "katashiro.click {}\n")
	for _, name := range []string{"listener=public", "listener=facade", "listener=debug", "transport=stateless"} {
		if !strings.Contains(p.log.String(), name) {
			t.Errorf("the log does not say %s:\n%s", name, p.log)
		}
	}
}
