package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, text string, environ ...string) (*Loaded, error) {
	t.Helper()
	return LoadBytes("acpod.toml", []byte(text), Options{Environ: environ})
}

func TestErrorsNamePlaceKeyAndWhatIsAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		environ []string
		line    int
		key     string
		says    []string
	}{
		"unknown key":                {"[acp]\nlisten = \"127.0.0.1:1\"\nkeepalife = \"20s\"\n", nil, 3, "acp.keepalife", []string{"unknown key", "did you mean keepalive?", "pong_timeout"}},
		"unknown section":            {"\n[acq]\n", nil, 2, "acq", []string{"unknown key", "pod, acp, agent"}},
		"unknown key in other case":  {"[acp]\nListen = \"127.0.0.1:1\"", nil, 2, "acp.Listen", []string{"unknown key"}},
		"unknown key in a table":     {"[mcp]\n[[mcp.acp_servers]]\nname = \"a\"\n[[mcp.acp_servers]]\nname = \"b\"\ntoolz = []\n", nil, 6, "mcp.acp_servers[1].toolz", []string{"did you mean tools?"}},
		"unknown key inline":         {"[mcp]\nacp_servers = [\n  {name = \"a\"},\n  {name = \"b\",\n   x = 1},\n]\n", nil, 5, "mcp.acp_servers[1].x", []string{"unknown key", "name and tools"}},
		"dotted key":                 {"acp.listen = \"127.0.0.1:1\"\nacp.nope = 1\n", nil, 2, "acp.nope", nil},
		"syntax":                     {"[acp]\nlisten = \n", nil, 2, "", []string{"not TOML"}},
		"key given twice":            {"[acp]\nplayground = true\nplayground = false\n", nil, 3, "playground", []string{"not TOML", "already defined"}},
		"string for a number":        {"[limits]\noutbound_frames = \"many\"\n", nil, 2, "limits.outbound_frames", []string{"is a string", "a whole number from 1 to 1000000"}},
		"number for a string":        {"[agent]\ndriver = 5\n", nil, 2, "agent.driver", []string{"is a whole number (5)", "process or none"}},
		"fraction":                   {"[agent]\nqueue = 1.5\n", nil, 2, "agent.queue", []string{"a number with a fraction (1.5)"}},
		"number for a duration":      {"[acp]\nkeepalive = 20\n", nil, 2, "acp.keepalive", []string{"is a whole number (20)", `a duration from 10ms to 24h, such as "25s"`}},
		"bad duration":               {"[acp]\nkeepalive = \"soon\"\n", nil, 2, "acp.keepalive", []string{`"soon"`}},
		"bad size":                   {"[limits]\nframe_bytes = \"8MB\"\n", nil, 2, "limits.frame_bytes", []string{`"8MB" is none`, `such as "8MiB"`}},
		"size out of range":          {"[limits]\nframe_bytes = \"2GiB\"\n", nil, 2, "limits.frame_bytes", []string{"2GiB is out of range", "from 1KiB to 1GiB"}},
		"number out of range":        {"[limits]\nconnections = 0\n", nil, 2, "limits.connections", []string{"0 is out of range"}},
		"negative duration":          {"[mcp]\norphan_window = \"-1s\"\n", nil, 2, "mcp.orphan_window", []string{"out of range"}},
		"word":                       {"[agent]\npermissions = \"maybe\"\n", nil, 2, "agent.permissions", []string{`"maybe"`, "relay, allow or deny"}},
		"no delivery":                {"[agent]\ndelivery = \"facade\"\n", nil, 2, "agent.delivery", []string{`"facade"`, "auto, acp, file, bridge or proxy"}},
		"no profile":                 {"[agent]\nprofile = \"vim\"\n", nil, 2, "agent.profile", []string{`"vim"`, "auto, generic, claude, codex, gemini, opencode, cursor or kiro"}},
		"a list for a section":       {"acp = []\n", nil, 1, "acp", []string{"is a list", "a section with listen"}},
		"a table for tables":         {"[mcp.acp_servers]\nname = \"a\"\n", nil, 1, "mcp.acp_servers", []string{"is a table", "a list of tables"}},
		"a grant without a name":     {"[[mcp.acp_servers]]\ntools = []\n", nil, 1, "mcp.acp_servers[0]", []string{"has no name"}},
		"a grant's bad name":         {"[[mcp.acp_servers]]\nname = \"a.b\"\n", nil, 2, "mcp.acp_servers[0].name", []string{`"a.b" does not fit`, "1 to 64 of A-Z"}},
		"one name granted twice":     {"[[mcp.acp_servers]]\nname = \"a\"\n[[mcp.acp_servers]]\nname = \"a\"\n", nil, 4, "mcp.acp_servers[1].name", []string{"has a grant already"}},
		"list item of other type":    {"[agent]\ncommand = [\"a\",\n 5]\n", nil, 3, "agent.command[1]", []string{"is a whole number (5)"}},
		"origin":                     {"[acp]\nallowed_origins = [\"*\"]\n", nil, 2, "acp.allowed_origins[0]", []string{`"*" does not fit`, "an exact origin"}},
		"origin with a wildcard":     {"[acp]\nallowed_origins = [\"https://*.example\"]\n", nil, 2, "acp.allowed_origins[0]", []string{"does not fit", "an exact origin"}},
		"facade beyond loopback":     {"[mcp]\nlisten = \"0.0.0.0:8848\"\n", nil, 2, "mcp.listen", []string{"a loopback ip:port"}},
		"facade by name":             {"[mcp]\nlisten = \"localhost:8848\"\n", nil, 2, "mcp.listen", []string{"a loopback ip:port"}},
		"no port":                    {"[acp]\nlisten = \"127.0.0.1\"\n", nil, 2, "acp.listen", []string{"host:port"}},
		"port too large":             {"[acp]\nlisten = \"127.0.0.1:65536\"\n", nil, 2, "acp.listen", []string{"host:port"}},
		"missing variable":           {"[acp]\nauth_key = \"${env:NOT_THERE}\"\n", nil, 2, "acp.auth_key", []string{"NOT_THERE is not set"}},
		"unclosed reference":         {"[acp]\nauth_key = \"${env:X\"\n", []string{"X=1"}, 2, "acp.auth_key", []string{"without its }"}},
		"two names of a timeout":     {"[mcp]\ntunnel_timeout = \"1s\"\ntunnel_timeout_seconds = 1\n", nil, 3, "mcp.tunnel_timeout_seconds", []string{"means the same as tunnel_timeout"}},
		"acp beyond loopback":        {"[acp]\nlisten = \"0.0.0.0:8080\"\n", nil, 2, "acp.listen", []string{"is not loopback and there is no key"}},
		"acp on every interface":     {"[acp]\nlisten = \":8080\"\n", nil, 2, "acp.listen", []string{"is not loopback"}},
		"acp by a foreign name":      {"[acp]\nlisten = \"example.org:8080\"\n", nil, 2, "acp.listen", []string{"is not loopback"}},
		"empty key is no key":        {"[acp]\nlisten = \"0.0.0.0:8080\"\nauth_key = \"\"\n", nil, 2, "acp.listen", []string{"is not loopback"}},
		"debug beyond loopback":      {"[debug]\nlisten = \"0.0.0.0:8849\"\n", nil, 2, "debug.listen", []string{"debug.auth_key"}},
		"key of spaces":              {"[acp]\nauth_key = \"   \"\n", nil, 2, "acp.auth_key", []string{"is only spaces"}},
		"debug key of spaces":        {"[debug]\nauth_key = \" \"\n", nil, 2, "debug.auth_key", []string{"is only spaces"}},
		"key with a newline":         {"[acp]\nauth_key = \"a\\nb\"\n", nil, 2, "acp.auth_key", []string{"cannot be sent in a header"}},
		"two keys of one kind":       {"[acp]\nauth_key = \"a\"\nauth_key_file = \"b\"\n", nil, 3, "acp.auth_key_file", []string{"stands beside acp.auth_key"}},
		"key file missing":           {"[acp]\nauth_key_file = \"/nowhere/key\"\n", nil, 2, "acp.auth_key_file", []string{"cannot be read", "no such file"}},
		"facade key file missing":    {"[mcp]\nauth_key_file = \"/nowhere/key\"\n", nil, 2, "mcp.auth_key_file", []string{"cannot be read"}},
		"a client without a key":     {"[[acp.keys]]\nname = \"a\"\n", nil, 2, "acp.keys[0]", []string{"neither key nor key_file"}},
		"a client's key of spaces":   {"[[acp.keys]]\nname = \"a\"\nkey = \" \"\n", nil, 3, "acp.keys[0].key", []string{"is only spaces"}},
		"two clients of one name":    {"[[acp.keys]]\nname = \"a\"\nkey = \"1\"\n[[acp.keys]]\nname = \"a\"\nkey = \"2\"\n", nil, 5, "acp.keys[1].name", []string{"is taken"}},
		"two clients of one key":     {"[[acp.keys]]\nname = \"a\"\nkey = \"1\"\n[[acp.keys]]\nname = \"b\"\nkey = \"1\"\n", nil, 5, "acp.keys[1]", []string{"is the same key as acp.keys[0]"}},
		"session too small":          {"[limits]\nsession_bytes = \"20MiB\"\n", nil, 2, "limits.session_bytes", []string{"does not hold one agent_line_bytes (16MiB) and one result_bytes (8MiB)", "at least 24MiB"}},
		"line outgrows a session":    {"[limits]\nagent_line_bytes = \"30MiB\"\n", nil, 2, "limits.session_bytes", []string{"at least 38MiB"}},
		"outbound too small":         {"[limits]\noutbound_bytes = \"8MiB\"\n", nil, 2, "limits.outbound_bytes", []string{"does not hold one agent_line_bytes (16MiB)"}},
		"no command":                 {"[agent]\ncommand = []\n", nil, 2, "agent.command", []string{"is empty"}},
		"workdir missing":            {"[agent]\nworkdir = \"/nowhere/at/all\"\n", nil, 2, "agent.workdir", []string{"no such file"}},
		"environment: unknown":       {"", []string{"ACPOD_ACP__LISTN=x"}, 0, "acp.listn", []string{"env ACPOD_ACP__LISTN", "unknown key"}},
		"environment: type":          {"", []string{"ACPOD_ACP__KEEPALIVE=20"}, 0, "acp.keepalive", []string{"env ACPOD_ACP__KEEPALIVE", `"20" is none`}},
		"environment: a section":     {"", []string{"ACPOD_ACP__LISTEN__X=20"}, 0, "acp.listen.x", []string{"unknown key"}},
		"environment: tables":        {"", []string{"ACPOD_MCP__ACP_SERVERS=x"}, 0, "mcp.acp_servers", []string{"write it into the file"}},
		"environment: one _":         {"", []string{"ACPOD_ACP_LISTEN=127.0.0.1:1"}, 0, "", []string{"env ACPOD_ACP_LISTEN", "did you mean ACPOD_ACP__LISTEN?"}},
		"environment: one _ of more": {"", []string{"ACPOD_LIMITS_FRAME_BYTES=1MiB"}, 0, "", []string{"did you mean ACPOD_LIMITS__FRAME_BYTES?"}},
		"environment: openab":        {"", []string{"OPENAB_BROWSER_MODE=window"}, 0, "agent.delivery", []string{"env OPENAB_BROWSER_MODE", "auto, acp, file, bridge or proxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text, c.environ...)
			var problem *Error
			if !errors.As(err, &problem) {
				t.Fatalf("want an *Error, got %v", err)
			}
			line := problem.Error()
			if strings.ContainsAny(line, "\n\r") {
				t.Errorf("more than one line: %q", line)
			}
			if problem.At.Line != c.line || problem.Key != c.key {
				t.Errorf("at line %d, key %q; want line %d, key %q\n%s", problem.At.Line, problem.Key, c.line, c.key, line)
			}
			if c.line > 0 && !strings.HasPrefix(line, "acpod.toml:") {
				t.Errorf("does not start with its file: %s", line)
			}
			for _, s := range c.says {
				if !strings.Contains(line, s) {
					t.Errorf("%q is not in: %s", s, line)
				}
			}
		})
	}
}

// The reference system's words for how an agent reaches a browser are taken, and acpod's own variable wins.
func TestTheBrowserModeIsADelivery(t *testing.T) {
	for _, row := range []struct {
		environ []string
		want    string
	}{
		{[]string{"OPENAB_BROWSER_MODE=proxy"}, "proxy"},
		{[]string{"OPENAB_BROWSER_MODE=bridge"}, "bridge"},
		{[]string{"OPENAB_BROWSER_MODE=facade"}, "auto"},
		{[]string{"OPENAB_BROWSER_MODE="}, "file"},
		{[]string{"OPENAB_BROWSER_MODE=proxy", "ACPOD_AGENT__DELIVERY=acp"}, "acp"},
	} {
		loaded, err := LoadBytes("t", []byte("[agent]\ndelivery = \"file\"\n"), Options{Environ: row.environ})
		if err != nil || loaded.Agent.Delivery != row.want {
			t.Errorf("%v: %v, %v", row.environ, loaded, err)
		}
	}
}

func TestLaterLayersWinAndSayWhoTheyAre(t *testing.T) {
	text := "[acp]\nlisten = \"127.0.0.1:1\"\nkeepalive = \"1s\"\npong_timeout = \"2s\"\n"
	loaded, err := LoadBytes("f.toml", []byte(text), Options{
		Environ: []string{"ACPOD_ACP__KEEPALIVE=3s", "ACPOD_ACP__PONG_TIMEOUT=4s", "ACPOD_AGENT__ENV__Path__x=y", "ACPOD_ACP__PLAYGROUND=false",
			"OPENAB_ACP_ALLOWED_ORIGINS= https://a.example , ,https://b.example"},
		Settings: []Setting{{"--set", "acp.pong_timeout", "5s"}, {"--set", "mcp.tunnel_timeout_seconds", "7"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		got    any
		want   any
		origin string
	}{
		{"acp.listen", loaded.ACP.Listen, "127.0.0.1:1", "f.toml:2"},
		{"acp.keepalive", loaded.ACP.Keepalive, 3 * time.Second, "env ACPOD_ACP__KEEPALIVE"},
		{"acp.pong_timeout", loaded.ACP.PongTimeout, 5 * time.Second, "flag --set"},
		{"acp.write_timeout", loaded.ACP.WriteTimeout, 30 * time.Second, "default"},
		{"acp.playground", loaded.ACP.Playground, false, "env ACPOD_ACP__PLAYGROUND"},
		{"agent.env.Path__x", loaded.Agent.Env["Path__x"], "y", "env ACPOD_AGENT__ENV__Path__x"},
		{"acp.allowed_origins", strings.Join(loaded.ACP.AllowedOrigins, " "), "https://a.example https://b.example", "env OPENAB_ACP_ALLOWED_ORIGINS"},
		{"mcp.tunnel_timeout", loaded.MCP.TunnelTimeout, 7 * time.Second, "flag --set"},
	} {
		if c.got != c.want || loaded.Origin(c.path).String() != c.origin {
			t.Errorf("%s = %v from %s; want %v from %s", c.path, c.got, loaded.Origin(c.path), c.want, c.origin)
		}
	}
}

func TestOwnNameBeatsTheReferenceSystemsName(t *testing.T) {
	loaded, err := load(t, "", "OPENAB_ACP_AUTH_KEY=theirs", "ACPOD_ACP__AUTH_KEY=ours")
	if err != nil || loaded.Secrets.ACP[0].Key != "ours" {
		t.Errorf("%v, %v", loaded, err)
	}
	loaded, err = load(t, "[acp]\nauth_key = \"file\"\n", "OPENAB_ACP_AUTH_KEY=", "OPENAB_SOMETHING=1", "GATEWAY_LISTEN=0.0.0.0:1", "ACPOD_PORT=tcp://x", "ACPOD_ACP_PORT=tcp://x", "ACPOD_PORT_8080_TCP_ADDR=x", "ACPOD_SERVICE_HOST=x", "ACPOD_CONFIG=x")
	if err != nil || loaded.Secrets.ACP[0].Key != "file" {
		t.Errorf("an empty name must count as unset and foreign ones be ignored: %v", err)
	}
}

func TestFacadeIsThereOnlyWhenAsked(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		environ    []string
		on         bool
		grants     int
	}{
		"no file at all":        {"", "", nil, true, 1},
		"a file without [mcp]":  {"f", "[acp]\n", nil, false, 0},
		"an empty file":         {"f", "", nil, false, 0},
		"a file with [mcp]":     {"f", "[mcp]\n", nil, true, 1},
		"only a table":          {"f", "[[mcp.acp_servers]]\nname = \"a\"\n[[mcp.acp_servers]]\nname = \"b\"\n", nil, true, 2},
		"nobody":                {"f", "[mcp]\nacp_servers = []\n", nil, true, 0},
		"asked by the variable": {"f", "", []string{"ACPOD_MCP__LISTEN=127.0.0.1:0"}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := LoadBytes(c.file, []byte(c.text), Options{Environ: c.environ})
			if err != nil {
				t.Fatal(err)
			}
			if (loaded.MCP != nil) != c.on {
				t.Fatalf("facade: %v, want %v", loaded.MCP != nil, c.on)
			}
			if c.on && len(loaded.MCP.ACPServers) != c.grants {
				t.Errorf("%d grants, want %d", len(loaded.MCP.ACPServers), c.grants)
			}
		})
	}
	loaded, err := load(t, "[mcp]\ntunnel_timeout_seconds = 170\n")
	if err != nil || loaded.MCP.TunnelTimeout != 170*time.Second {
		t.Errorf("the former name of the tunnel timeout: %v", err)
	}
}

func TestVariablesAreExpandedInEveryString(t *testing.T) {
	loaded, err := load(t, `
[acp]
auth_key = "${env:K}"
keepalive = "${env:D}"
[agent]
command = ["${env:P}/bin/agent", "--x=${env:K}-${env:EMPTY}"]
env = { TOKEN = "a${env:K}b" }
[limits]
frame_bytes = "${env:S}"
[[mcp.acp_servers]]
name = "${env:N}"
tools = ["${env:N}.t"]
`, "K=secret", "D=3s", "P=/opt", "EMPTY=", "S=4MiB", "N=name")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{loaded.ACP.AuthKey, loaded.ACP.Keepalive, loaded.Agent.Command[0], loaded.Agent.Command[1], loaded.Agent.Env["TOKEN"],
		loaded.Limits.FrameBytes, loaded.MCP.ACPServers[0].Name, loaded.MCP.ACPServers[0].Tools[0]}
	want := []any{"secret", 3 * time.Second, "/opt/bin/agent", "--x=secret-", "asecretb", 4 * MiB, "name", "name.t"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestKeyFilesAreReadAndJudged(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, empty, spaces := write("good", "  the key\n"), write("empty", ""), write("spaces", " \n\t\n")
	loaded, err := load(t, "[acp]\nlisten = \"0.0.0.0:8080\"\nauth_key_file = \""+good+"\"\n[mcp]\nauth_key_file = \""+good+"\"\n")
	if err != nil || loaded.Secrets.ACP[0].Key != "the key" || loaded.Secrets.MCP != "the key" {
		t.Errorf("%v", err)
	}
	for _, path := range []string{empty, spaces, dir} {
		if _, err := load(t, "[acp]\nauth_key_file = \""+path+"\"\n"); err == nil || !strings.Contains(err.Error(), "acpod.toml:2: acp.auth_key_file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSearchOrder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, listen string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("[acp]\nlisten = \"127.0.0.1:"+listen+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	o := Options{Environ: []string{"XDG_CONFIG_HOME=" + dir + "/xdg", "HOME=" + dir}}
	expect := func(listen string) {
		t.Helper()
		loaded, err := Load(o)
		if err != nil || loaded.ACP.Listen != "127.0.0.1:"+listen {
			t.Errorf("%v, want port %s", err, listen)
		}
	}
	expect("8080")
	nowhere := o
	nowhere.Environ = []string{"XDG_CONFIG_HOME=/dev/null", "HOME=/dev/null"}
	if loaded, err := Load(nowhere); err != nil || loaded.File != "" {
		t.Errorf("a home that is no folder: %v", err)
	}
	write("xdg/acpod/acpod.toml", "3")
	expect("3")
	write("acpod.toml", "2")
	expect("2")
	o.Environ = append(o.Environ, "ACPOD_CONFIG="+write("named.toml", "4"))
	expect("4")
	o.File = write("flag.toml", "5")
	expect("5")
	o.File = filepath.Join(dir, "missing.toml")
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "missing.toml: cannot be opened") {
		t.Errorf("a file that was named must exist: %v", err)
	}
}

func TestSizesAndDurationsReadBack(t *testing.T) {
	for text, want := range map[string]Size{"8MiB": 8 * MiB, "64 KiB": 64 * KiB, "1GiB": GiB, "12B": 12, "7": 7, "1TiB": TiB} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q = %d, %v", text, s, err)
		}
		var back Size
		if err := back.UnmarshalText([]byte(s.String())); err != nil || back != s {
			t.Errorf("%q printed as %q", text, s)
		}
	}
	for _, text := range []string{"", "8MB", "-1KiB", "1.5MiB", "MiB", "+3", "9223372036854775807KiB", "0x10"} {
		var s Size
		if s.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was taken as %d", text, s)
		}
	}
	for d, want := range map[time.Duration]string{4 * time.Hour: "4h", 25 * time.Second: "25s", 90 * time.Minute: "1h30m", 0: "0s", time.Minute: "1m", 170 * time.Second: "2m50s"} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v printed as %s, want %s", d, got, want)
		}
	}
}
