package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What `config show` prints is a config that means the same: with nothing to mask, it can be given back.
func TestAShownConfigIsAConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"the default":      "",
		"an empty file":    "# nothing\n",
		"one with much":    with(baseConfig, "agent.workdir", `"/"`, "acp.allowed_origins", `["https://a.example", "chrome-extension://abc"]`, "agent.command", `["x", "a \"b\" \\ \u001b"]`, "limits.frame_bytes", "12345"),
		"one without acps": with(baseConfig[:strings.Index(baseConfig, "[[mcp")], "agent.workdir", `"/"`) + "[debug]\nlisten = \"\"\n",
		"nobody admitted":  "[mcp]\nacp_servers = []\n",
		"permissions":      "[[agent.permission]]\nserver = \"s\"\ntool = \"*\"\ndecision = \"deny\"\n",
	} {
		var from []string
		if text != "" {
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".toml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			from = []string{"--config", file}
		}
		code, shown, problem := run(t, nil, append([]string{"config", "show"}, from...)...)
		if code != 0 || problem != "" {
			t.Fatalf("%s: %d %s", name, code, problem)
		}
		again := filepath.Join(dir, "again.toml")
		if err := os.WriteFile(again, []byte(shown), 0o600); err != nil {
			t.Fatal(err)
		}
		values := func(arguments ...string) string {
			code, out, problem := run(t, nil, append([]string{"config", "show", "--json"}, arguments...)...)
			var entries []struct{ Key, Value, Origin any }
			if err := json.Unmarshal([]byte(out), &entries); code != 0 || err != nil || len(entries) < 40 {
				t.Fatalf("%s: %d %v %s%s", name, code, err, problem, out)
			}
			var all strings.Builder
			for _, e := range entries {
				if e.Origin == nil || e.Origin == "" {
					t.Errorf("%s: %v has no origin", name, e.Key)
				}
				fmt.Fprintln(&all, e.Key, e.Value)
			}
			return all.String()
		}
		if before, after := values(from...), values("--config", again); before != after {
			t.Errorf("%s reads back otherwise:\n%s\n%s", name, before, after)
		}
	}
}

// The search order of the contract, on the binary: the flag, the variable, here, the user's folder.
func TestTheConfigIsSearchedInOrder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(path, keepalive string) string {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("[acp]\nkeepalive = \""+keepalive+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := []string{"XDG_CONFIG_HOME=" + home + "/xdg"}
	shows := func(want string, arguments ...string) {
		t.Helper()
		command := exec.Command(builtBinary, append([]string{"config", "show"}, arguments...)...)
		command.Dir = home
		command.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, env...)
		code, out, text := runCommand(t, command)
		if code != 0 || !strings.Contains(out, "\nkeepalive = \""+want+"\"") {
			t.Errorf("want %s: exit %d\n%.2000s\n%.2000s", want, code, out, text)
		}
	}
	shows("20s")
	write("xdg/acpod/acpod.toml", "1s")
	shows("1s")
	write("acpod.toml", "2s")
	shows("2s")
	env = append(env, "ACPOD_CONFIG="+write("variable.toml", "3s"))
	shows("3s")
	flag := write("flag.toml", "4s")
	shows("4s", "--config", flag)
	env = append(env, "ACPOD_ACP__KEEPALIVE=5s")
	shows("5s", "--config", flag)
	shows("6s", "--config", flag, "--set", "acp.keepalive=6s")
}

// What an operator should know is said at the start and by `config check`, in one line each, and stops nothing.
func TestWhatIsOpenIsSaid(t *testing.T) {
	t.Parallel()
	real := with(baseConfig, "agent.command", `["/bin/cat"]`)
	closed := with(baseConfig, "acp.auth_key", `"k.1"`, "mcp.anonymous", "false", "agent.command", `["/bin/cat"]`)
	for name, row := range map[string]struct {
		config string
		env    []string
		says   []string
		never  []string
	}{
		"a keyless demo":         {baseConfig, nil, []string{"acp.auth_key is not set", "mcp.anonymous is true"}, []string{"use the agent as you", "GOMEMLIMIT"}},
		"a keyless real agent":   {real, nil, []string{"use the agent as you", "mcp.anonymous is true"}, nil},
		"all closed":             {closed, nil, nil, []string{"auth_key", "anonymous"}},
		"a memory limit too low": {closed, []string{"GOMEMLIMIT=200MiB"}, []string{"GOMEMLIMIT (209715200 bytes) is less than the worst case"}, []string{"auth_key"}},
		"a memory limit":         {closed, []string{"GOMEMLIMIT=64GiB"}, nil, []string{"GOMEMLIMIT"}},
		"a key for no browser":   {with(closed, "acp.auth_key", `"xq zw"`), nil, []string{"cannot travel in a WebSocket subprotocol"}, []string{"xq zw"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, row.config, func(c *exec.Cmd) { c.Env = append(c.Env, row.env...) })
			command := exec.Command(builtBinary, "config", "check", "--config", filepath.Join(p.home, "acpod.toml"))
			command.Dir, command.Env = p.command.Dir, p.command.Env
			code, out, text := runCommand(t, command)
			if code != 0 || !strings.Contains(out, "is valid") {
				t.Errorf("exit %d %s\n%s", code, out, text)
			}
			var warned strings.Builder
			for line := range strings.Lines(p.log.String()) {
				if strings.Contains(line, "level=WARN") {
					warned.WriteString(line)
				}
			}
			for where, text := range map[string]string{"log": warned.String(), "check": out + text} {
				for _, want := range row.says {
					if strings.Count(text, want) != 1 {
						t.Errorf("the %s does not say %q once:\n%s", where, want, text)
					}
				}
				for _, never := range row.never {
					if strings.Contains(text, never) {
						t.Errorf("the %s says %q:\n%s", where, never, text)
					}
				}
			}
		})
	}
}

// Grants as the config has them: nobody, nothing, all.
func TestGrantsOfTheConfigDecideWhatIsSeen(t *testing.T) {
	t.Parallel()
	bare := with(baseConfig[:strings.Index(baseConfig, "[[mcp")], "debug.listen", `"127.0.0.1:0"`, "agent.driver", `"none"`)
	click, odd := "katashiro.click", "katashiro.odd"
	for name, row := range map[string]struct {
		grants string
		state  string
		names  []string
	}{
		"no table: katashiro with its five": {"", "ready", []string{click}},
		"an empty list: nobody":             {"\n[mcp]\nacp_servers = []\n", "refused", nil},
		"an entry without tools: nothing":   {"[[mcp.acp_servers]]\nname = \"katashiro\"\n", "ready", nil},
		"an entry with no tools: nothing":   {"[[mcp.acp_servers]]\nname = \"katashiro\"\ntools = []\n", "ready", nil},
		"a star: all":                       {"[[mcp.acp_servers]]\nname = \"katashiro\"\ntools = [\"*\"]\n", "ready", []string{click, odd}},
		"another server: nobody":            {"[[mcp.acp_servers]]\nname = \"other\"\ntools = [\"*\"]\n", "refused", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := bare
			if strings.Contains(row.grants, "[mcp]") {
				config = with(bare, "mcp.acp_servers", "[]")
			} else {
				config += row.grants
			}
			p := startPod(t, config)
			e := dial(t, p)
			e.hello()
			server := newServer("katashiro", genA, click, odd)
			session := e.newSession(server)
			e.state(session, "katashiro", row.state)
			if got := e.facadeOf(session).names(); strings.Join(got, " ") != strings.Join(row.names, " ") {
				t.Errorf("the agent sees %v, not %v", got, row.names)
			}
			if row.state == "refused" && server.connects() != 0 {
				t.Error("a server without a grant was connected")
			}
		})
	}
}

// The version of a plain build is something, and the same in every place that shows one.
func TestOneVersionEverywhere(t *testing.T) {
	t.Parallel()
	code, out, _ := run(t, nil, "version")
	fields := strings.Fields(out)
	if code != 0 || len(fields) != 4 || fields[0] != "acpod" || !strings.HasPrefix(fields[3], "go1.27") {
		t.Fatalf("%d %q", code, out)
	}
	p := startPod(t, baseConfig)
	if metrics := string(p.get("http://" + p.Debug + "/metrics")); !strings.Contains(metrics, fmt.Sprintf("version=%q", fields[1])) {
		t.Error("the metrics have another version")
	}
	e := dial(t, p)
	if hello := string(e.hello()); !strings.Contains(hello, fmt.Sprintf(`"version":%q`, fields[1])) || !strings.Contains(hello, `"name":"acpod"`) {
		t.Errorf("a client is told %s", hello)
	}
}
