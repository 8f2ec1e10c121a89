package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// entryText is a server's entry as it stands in a file.
func (s *evilServer) entryText() string { s.t.Helper(); return encode(s.t, s.entry) }

// Comments, trailing commas, a byte order mark, CRLF; a bad entry names its line and does not sink the file.
func TestAnMCPJSONAsPeopleWriteItIsRead(t *testing.T) {
	t.Parallel()
	good, other := newEvil(t, evilScript{Name: "good", Offer: []string{"echo"}}), newEvil(t, evilScript{Name: "other", Offer: []string{"image"}})
	text := "\xef\xbb\xbf// my servers\n{\n  \"mcpServers\": {\n    /* the good one */\n    \"good\": " + good.entryText() + ",\n" +
		"    \"bad\": {\"command\": 5},\n    \"un known\": {\"command\": \"x\"},\n    \"odd\": {\"command\": \"x\", \"toolFilter\": {\"exclude\": [\"*\"]}},\n" +
		"    \"other\": " + other.entryText() + ", // and no more\n  },\n  \"roots\": [\"/srv\",],\n}\n"
	p := startPod(t, providersConfig, mcpText(t, strings.ReplaceAll(text, "\n", "\r\n")))
	agent := anonymous(t, p)
	if found := agent.everything(); !found.has("echo") || !found.has("image") || found.Total != 2 {
		t.Errorf("%+v", found)
	}
	for _, want := range []string{"line=6 server=bad", "command is a number", "line=7", "line=8 server=odd", "write tool_filter"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, p.log)
		}
	}
}

func TestAFileThatIsNoJSONIsToldByLineAndColumnAndTheOtherIsRead(t *testing.T) {
	t.Parallel()
	good := newEvil(t, evilScript{Name: "good", Offer: []string{"echo"}})
	broken := mcpFile(t, "{\n  \"mcpServers\": {\n    \"a\" {\"env\": {\"K\": \"hidden-value\"}}\n  }\n}")
	p := startPod(t, providersConfig, func(c *exec.Cmd) { c.Args = append(c.Args, "--mcp-config", broken) }, mcpJSON(t, good),
		func(c *exec.Cmd) { c.Args = append(c.Args, "--mcp-config", "/nowhere/mcp.json") })
	anonymous(t, p).says("echo", "{}", "echo {}")
	for _, want := range []string{"file=" + broken + " line=3 column=9", "file=/nowhere/mcp.json", "no such file"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, p.log)
		}
	}
	noneOf(t, "the log", p.log.String(), "hidden-value")
}

// Without --mcp-config the home's file is read, and then the working directory's, which wins by name.
func TestTheFilesWherePeopleKeepThemAreRead(t *testing.T) {
	t.Parallel()
	homes, works, both := newEvil(t, evilScript{Name: "homes", Offer: []string{"echo"}}), newEvil(t, evilScript{Name: "works", Offer: []string{"image"}}), newEvil(t, evilScript{Name: "both", Offer: []string{"rich"}})
	p := startPod(t, providersConfig, func(c *exec.Cmd) {
		for dir, text := range map[string]string{
			filepath.Dir(c.Dir): `{"mcpServers": {"homes": ` + homes.entryText() + `, "both": {"command": "no-such-program"}}}`,
			c.Dir:               `{"mcpServers": {"works": ` + works.entryText() + `, "both": ` + both.entryText() + `}}`,
		} {
			dir = filepath.Join(dir, ".openab", "agent")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	if found := anonymous(t, p).everything(); !found.has("echo") || !found.has("image") || !found.has("rich") {
		t.Errorf("%+v\n%s", found, p.log)
	}
}

// Variables in every place; one that is not set takes away that server alone, names the field, and its literal is never sent.
func TestAVariableThatIsNotSetTakesAwayThatServerAlone(t *testing.T) {
	t.Parallel()
	set := newEvil(t, evilScript{Name: "set", Offer: []string{"echo"}})
	set.entry["env"].(object)["KEY"] = "${env:E2E_KEY}"
	set.entry["args"] = []string{"${E2E_NONE:-plain}", "$${E2E_KEY}", set.argument()}
	unset := newEvil(t, evilScript{Name: "unset", Offer: []string{"image"}})
	unset.entry["env"].(object)["KEY"] = "x-${E2E_MISSING}"
	web := newEvilWeb(t, evilScript{Name: "web", Offer: []string{"rich"}}).set("headers", object{"Authorization": "Bearer ${E2E_MISSING}"})
	empty := newEvilWeb(t, evilScript{Name: "empty", Offer: []string{"big"}}).set("headers", object{"Authorization": "Bearer ${E2E_EMPTY}"})
	crlf := newEvilWeb(t, evilScript{Name: "crlf", Offer: []string{"log"}}).set("headers", object{"X-Key": "${E2E_CRLF}"})
	literal := newEvilWeb(t, evilScript{Name: "literal", Offer: []string{"ask"}}).set("headers", object{"X-Key": "hidden-literal\r\nX-Evil: 1"})
	open := newEvilWeb(t, evilScript{Name: "open", Offer: []string{"slow"}}).set("headers", object{"X-Key": "hidden-open ${E2E_KEY"})
	servers := []*evilServer{set, unset, web, empty, crlf, literal, open}
	p := startPod(t, providersConfig, mcpJSON(t, servers...), func(c *exec.Cmd) {
		c.Env = append(c.Env, "E2E_KEY=hidden-key-value", "E2E_EMPTY=", "E2E_CRLF=hidden-first\r\nX-Evil: hidden-second")
	})
	agent := anonymous(t, p)
	found := agent.everything()
	if !found.has("echo") || found.Total != 1 {
		t.Errorf("%+v", found)
	}
	for name, want := range map[string][]string{
		"unset": {"env.KEY", "E2E_MISSING"}, "web": {"headers.Authorization", "E2E_MISSING"}, "empty": {"headers.Authorization", "credentials"},
		"crlf": {"headers.X-Key", "CR, LF, NUL"}, "literal": {"headers.X-Key", "CR, LF, NUL"}, "open": {"headers.X-Key", "without its }"},
	} {
		for _, part := range want {
			if why := found.without(name); !strings.Contains(why, part) {
				t.Errorf("%s: %q does not say %q", name, why, part)
			}
		}
	}
	for _, s := range servers[1:] {
		agent.refuses("detached", s.script.Name+"."+s.script.Offer[0], "{}")
		if len(s.journal("")) != 0 {
			t.Errorf("%s was connected: %v", s.script.Name, s.journal(""))
		}
	}
	noneOf(t, "a search", encode(t, found), "hidden-", "E2E_KEY}")
	noneOf(t, "the log", p.log.String(), "hidden-")
	args, err := os.ReadFile("/proc/" + itoa(set.pid()) + "/cmdline")
	if err != nil || !strings.Contains(string(args), "\x00plain\x00${E2E_KEY}\x00") {
		t.Errorf("%v %q", err, args)
	}
	env, err := os.ReadFile("/proc/" + itoa(set.pid()) + "/environ")
	if err != nil || !strings.Contains(string(env), "KEY=hidden-key-value\x00") || strings.Contains(string(env), "E2E_EMPTY") {
		t.Errorf("%v %q", err, env)
	}
}

// Nothing splits what stands in args, and a command that is not there says where it was looked for.
func TestArgumentsAreNeverSplitAndAMissingCommandSaysWhereItWasLookedFor(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "s", Offer: []string{"echo"}})
	s.entry["args"] = []string{`C:\Program Files\x y`, "", "a 'b' \"c\" $HOME `d` *", s.argument()}
	gone := newEvil(t, evilScript{Name: "gone"}).set("command", "no-such-program --flag").set("env", object{"PATH": "/nowhere/bin:/usr/nowhere"})
	p, agent := startEvil(t, providersConfig, s, gone)
	agent.says("echo", "{}", "echo {}")
	args, err := os.ReadFile("/proc/" + itoa(s.pid()) + "/cmdline")
	if err != nil || !strings.Contains(string(args), "\x00C:\\Program Files\\x y\x00\x00a 'b' \"c\" $HOME `d` *\x00") {
		t.Errorf("%v %q", err, args)
	}
	if why := agent.everything().without("gone"); !strings.Contains(why, "no-such-program --flag") || !strings.Contains(why, "/nowhere/bin:/usr/nowhere") {
		t.Errorf("%q", why)
	}
	_ = p
}

func TestMCPDoctorSaysWhatIsWrongWithEachServerAndNoSecret(t *testing.T) {
	t.Parallel()
	ok := newEvil(t, evilScript{Name: "ok", Offer: []string{"echo", "slow", "image"}}).set("tool_filter", object{"include": []string{"e*", "i*"}})
	chatty := newEvil(t, evilScript{Name: "chatty", Exit: 3, Stderr: "cannot log in with hidden-token-value"})
	chatty.entry["env"].(object)["TOKEN"] = "hidden-token-value"
	unset := newEvilWeb(t, evilScript{Name: "unset"}).set("headers", object{"Authorization": "Bearer ${E2E_MISSING}"})
	gone := newEvil(t, evilScript{Name: "gone"}).set("command", "no-such-program")
	odd := newEvil(t, evilScript{Name: "odd", Offer: []string{"rich"}}).set("autoApprove", []string{"x"})
	off := newEvil(t, evilScript{Name: "off"}).set("disabled", true)
	m := newMCPCommand(t, ok, chatty, unset, gone, odd, off)
	code, out, text := m.run("doctor", "--json")
	var report struct {
		Files, Problems, Warnings []string
		Servers                   []struct {
			Name, Type, Verdict string
			Offered, Filtered   int
			Problems            []string
		}
	}
	decode(t, out, &report)
	if code != 1 || strings.TrimSpace(text) != "acpod: 3 of 6 servers cannot be used; the report says why" {
		t.Errorf("%d %q", code, text)
	}
	if len(report.Files) != 1 || report.Files[0] != m.file || len(report.Problems) != 0 || len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "autoApprove") {
		t.Errorf("%+v", report)
	}
	verdicts := map[string]string{}
	for _, s := range report.Servers {
		verdicts[s.Name] = s.Verdict + " " + strings.Join(s.Problems, "; ")
		if s.Name == "ok" && (s.Offered != 2 || s.Filtered != 1) {
			t.Errorf("%+v", s)
		}
	}
	for name, want := range map[string][]string{
		"ok": {"ok "}, "odd": {"ok "}, "off": {"disabled "}, "chatty": {"broken ", "exited with code 3", "cannot log in with"},
		"unset": {"broken ", m.file + ":1: ", "E2E_MISSING"}, "gone": {"broken ", "no-such-program", "PATH"},
	} {
		for _, part := range want {
			if !strings.Contains(verdicts[name], part) {
				t.Errorf("%s: %q has no %q", name, verdicts[name], part)
			}
		}
	}
	noneOf(t, "the report", out+text, "hidden-token-value")
	code, out, text = m.run("doctor")
	if code != 1 || !strings.Contains(out, "BROKEN   gone (stdio, ") || !strings.Contains(out, "ok       ok (stdio, ") || !strings.Contains(out, "1 left out by tool_filter") || !strings.Contains(out, "off      off") {
		t.Errorf("%d\n%s\n%s", code, out, text)
	}
	noneOf(t, "the report", out+text, "hidden-token-value")
	fine := newMCPCommand(t, newEvil(t, evilScript{Name: "ok", Offer: []string{"echo"}}))
	if code, out, text = fine.run("doctor"); code != 0 || !strings.Contains(out, "1 offered") || text != "" {
		t.Errorf("%d\n%s\n%s", code, out, text)
	}
}

func TestDoctorSaysWhatWouldStopThisPod(t *testing.T) {
	t.Parallel()
	type finding struct{ Check, Verdict, Text string }
	diagnose := func(config, servers string) (int, map[string]finding, string) {
		file := filepath.Join(t.TempDir(), "acpod.toml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, text := run(t, nil, "doctor", "--json", "--config", file, "--mcp-config", mcpFile(t, servers))
		var list []finding
		decode(t, out, &list)
		found := map[string]finding{}
		for _, f := range list {
			if was, twice := found[f.Check]; !twice || was.Verdict == "ok" || f.Verdict == "broken" {
				found[f.Check] = f
			}
		}
		return code, found, text
	}
	code, found, text := diagnose(baseConfig, `{"mcpServers": {"a": {"command": "x"}}}`)
	if code != 0 || text != "" {
		t.Errorf("%d %q %+v", code, text, found)
	}
	for _, check := range []string{"config", "acp.listen", "mcp.listen", "debug.listen", "state folder", "audit", "agent", "mcp.json", "memory", "guardian"} {
		if f, there := found[check]; !there || f.Verdict == "broken" {
			t.Errorf("%s: %+v", check, f)
		}
	}
	p := startPod(t, baseConfig)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("k"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, found, text = diagnose(with(baseConfig, "mcp.listen", `"`+p.Facade+`"`, "agent.command", `["no-such-agent"]`, "acp.auth_key_file", `"`+key+`"`,
		"state.dir", `"/proc/nowhere"`, "audit.path", `"/proc/nowhere/audit"`), "{\n\"mcpServers\": {\"a\": {}}}")
	if code != 1 || !strings.Contains(text, "checks failed") || strings.Count(strings.TrimSpace(text), "\n") != 0 {
		t.Errorf("%d %q", code, text)
	}
	for check, want := range map[string]string{
		"mcp.listen": "another process has it", "agent": "no-such-agent", "state folder": "set state.dir", "audit": "set audit.path", "mcp.json": "mcp.json:2",
	} {
		if f := found[check]; f.Verdict != "broken" || !strings.Contains(f.Text, want) {
			t.Errorf("%s: %+v", check, f)
		}
	}
	if f := found["key file"]; f.Verdict != "warning" || !strings.Contains(f.Text, "chmod 600") {
		t.Errorf("%+v", f)
	}
	code, found, _ = diagnose("[acp]\nnonsense = 1\n", "{}")
	if code != 1 || len(found) != 1 || !strings.Contains(found["config"].Text, "acp.nonsense") {
		t.Errorf("%d %+v", code, found)
	}
	if code, out, _ := run(t, []string{"ACPOD_ACP__LISTEN=127.0.0.1:0", "ACPOD_MCP__LISTEN=127.0.0.1:0", "ACPOD_DEBUG__LISTEN=127.0.0.1:0"}, "doctor"); code != 0 || !strings.HasPrefix(out, "ok       config: ") {
		t.Errorf("%d %s", code, out)
	}
	if entries, err := os.ReadDir(filepath.Join(p.home, ".local", "state", "acpod")); err != nil || strings.Contains(encode(t, entries), "doctor") {
		t.Errorf("it left something: %v %v", entries, err)
	}
}

func itoa(n int) string { text, _ := json.Marshal(n); return string(text) }
