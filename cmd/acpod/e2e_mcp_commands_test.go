package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mcpCommand is `acpod mcp WORDS…` over these servers, in a home of its own.
type mcpCommand struct {
	t    *testing.T
	env  []string
	file string
}

func newMCPCommand(t *testing.T, servers ...*evilServer) mcpCommand {
	t.Helper()
	entries := object{}
	for _, server := range servers {
		entries[server.script.Name] = server.entry
	}
	return mcpCommand{t: t, env: []string{"XDG_STATE_HOME=" + t.TempDir()}, file: mcpFile(t, encode(t, object{"mcpServers": entries}))}
}

func (m mcpCommand) run(arguments ...string) (code int, out, text string) {
	m.t.Helper()
	arguments = append([]string{"mcp"}, arguments...)
	if arguments[1] != "pins" {
		arguments = append(arguments, "--mcp-config", m.file)
	}
	return run(m.t, m.env, arguments...)
}

// succeeds wants exit status 0 and gives stdout.
func (m mcpCommand) succeeds(arguments ...string) string {
	m.t.Helper()
	code, out, text := m.run(arguments...)
	if code != 0 {
		m.t.Fatalf("%v: exit %d\n%s\n%s", arguments, code, out, text)
	}
	return out
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %.2000s", err, text)
	}
}

func TestMCPListTellsEachServerAndItsTools(t *testing.T) {
	t.Parallel()
	m := newMCPCommand(t,
		newEvil(t, evilScript{Name: "files", Offer: []string{"read_echo", "echo", "slow"}}).set("tool_filter", object{"exclude": []string{"s*"}}),
		newEvilWeb(t, evilScript{Name: "web", Offer: []string{"image"}}),
		newEvil(t, evilScript{Name: "broken", Exit: 7, Stderr: "there is no database"}),
		newEvil(t, evilScript{Name: "sleeping"}).set("disabled", true),
	)
	var list []struct {
		Name, Type, State, Error, File string
		Line                           int
		Tools                          []struct{ Name, Published, Risk, Availability string }
	}
	decode(t, m.succeeds("list", "--json"), &list)
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	broken, files, sleeping, web := list[0], list[1], list[2], list[3]
	if files.State != "ready" || files.Type != "stdio" || files.File != m.file || files.Line != 1 || len(files.Tools) != 2 ||
		files.Tools[0].Name != "echo" || files.Tools[1].Name != "read_echo" || files.Tools[1].Risk != "read" || files.Tools[1].Availability != "ready" {
		t.Errorf("files: %+v", files)
	}
	if web.State != "ready" || web.Type != "http" || len(web.Tools) != 1 || web.Tools[0].Published != "image" {
		t.Errorf("web: %+v", web)
	}
	if broken.State != "unavailable" || !strings.Contains(broken.Error, "there is no database") || len(broken.Tools) != 0 {
		t.Errorf("broken: %+v", broken)
	}
	if sleeping.State != "disabled" || len(sleeping.Tools) != 0 {
		t.Errorf("sleeping: %+v", sleeping)
	}
	out := m.succeeds("list")
	for _, want := range []string{"SERVER", "files ", "ready", "disabled", "there is no database"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Count(strings.TrimSpace(out), "\n") != 4 {
		t.Errorf("it is not a line a server:\n%s", out)
	}
}

func TestMCPSearchAnswersAsTheFacadeDoes(t *testing.T) {
	t.Parallel()
	server := newEvil(t, evilScript{Name: "files", Offer: []string{"read_echo"}, Count: 30})
	m := newMCPCommand(t, server)
	p := startPod(t, providersConfig, mcpJSON(t, server))
	var command, facade searchAnswer
	decode(t, m.succeeds("search", "--json", "--limit", "5", "plain", "7"), &command)
	facade = anonymous(t, p).search(`{"query":"plain 7","limit":5}`)
	if len(command.Capabilities) != 5 || command.NextCursor == "" || encode(t, command) != encode(t, facade) {
		t.Errorf("the command says\n%s\nthe facade\n%s", encode(t, command), encode(t, facade))
	}
	code, out, text := m.run("search", "--limit", "3", "plain")
	if code != 0 || strings.Count(out, "\n") != 3 || !strings.Contains(out, "does plain_") || !strings.Contains(text, "more; ask for them with --limit") {
		t.Errorf("%d\n%s\n%s", code, out, text)
	}
	if code, out, text = m.run("search", "xylophone"); code != 0 || out != "" || !strings.Contains(text, "nothing was found") {
		t.Errorf("%d\n%s\n%s", code, out, text)
	}
}

func TestMCPCallPrintsTheResultAsItCameAndTakesTheSamePipeline(t *testing.T) {
	t.Parallel()
	server := newEvil(t, evilScript{Name: "files", Offer: []string{"rich", "toolerr", "rpcerr", "params", "hidden"}}).set("tool_filter", object{"exclude": []string{"hidden"}})
	m := newMCPCommand(t, server)
	code, out, text := m.run("call", "rich")
	if code != 0 || out != richResult+"\n" {
		t.Errorf("%d %q\n%s", code, out, text)
	}
	for _, event := range []string{"event=call", "event=exit", "provider=files", "tool=rich", "args_sha256=44136fa355b3678a"} {
		if !strings.Contains(text, "mcp.audit") || !strings.Contains(text, event) {
			t.Errorf("the audit has no %s:\n%s", event, text)
		}
	}
	// A pipe whose first command has failed brings nothing: that is no call without arguments.
	for _, arguments := range [][]string{{"call", "rich", "-"}, {"call", "rich", " "}} {
		if code, out, text := m.run(arguments...); code != 2 || out != "" || strings.Contains(text, "event=call") {
			t.Errorf("%q: %d %q\n%s", arguments, code, out, text)
		}
	}
	for _, row := range []struct {
		name      string
		arguments []string
		has       string
	}{
		{"an error of the tool", []string{"toolerr", `{"text":"x"}`}, `"isError":true`},
		{"an error of the protocol", []string{"rpcerr", "{}"}, "custom boom"},
		{"a tool that is filtered", []string{"files.hidden"}, `"acpod.dev/refusal":"unknown"`},
		{"a tool that there is not", []string{"nowhere"}, `"acpod.dev/refusal":"unknown"`},
		{"arguments that are no object", []string{"params", "[1]"}, `"acpod.dev/refusal":"bad_arguments"`},
		{"arguments that say a thing twice", []string{"params", `{"a":1,"a":2}`}, `"acpod.dev/refusal":"bad_arguments"`},
	} {
		code, out, text := m.run(append([]string{"call"}, row.arguments...)...)
		last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]
		if code != 1 || !strings.Contains(out, row.has) || !json.Valid([]byte(out)) || !strings.Contains(text, "mcp.audit") || !strings.HasPrefix(last, "acpod: ") {
			t.Errorf("%s: %d %q\n%s", row.name, code, out, text)
		}
	}
	if server.calls("hidden") != 0 || server.calls("params") != 0 {
		t.Error("a refused call reached the server")
	}
}

func TestMCPCallReadsItsArgumentsFromStdin(t *testing.T) {
	t.Parallel()
	m := newMCPCommand(t, newEvil(t, evilScript{Name: "files", Offer: []string{"echo"}}))
	command := exec.Command(builtBinary, "mcp", "call", "echo", "-", "--mcp-config", m.file)
	command.Dir = t.TempDir()
	command.Env = append([]string{"HOME=" + command.Dir, "PATH=" + os.Getenv("PATH")}, m.env...)
	command.Stdin = strings.NewReader(" {\"big\": 12345678901234567890, \"tags\": \"<&>\"}\n")
	code, out, text := runCommand(t, command)
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out, text)
	}
	var result toolResult
	decode(t, out, &result)
	if got := result.text(); got != `echo {"big": 12345678901234567890, "tags": "<&>"}` {
		t.Errorf("%q", got)
	}
}

func TestWhatAnMCPCommandStartedEndsWithIt(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name   string
		signal syscall.Signal
	}{{"TERM", syscall.SIGTERM}, {"KILL", syscall.SIGKILL}} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			server := newEvil(t, evilScript{Name: "files", Offer: []string{"hang"}}).wrapped()
			m := newMCPCommand(t, server)
			command := exec.Command(builtBinary, "mcp", "call", "hang", "--mcp-config", m.file)
			command.Dir = t.TempDir()
			command.Env = append([]string{"HOME=" + command.Dir, "PATH=" + os.Getenv("PATH")}, m.env...)
			p := begin(t, command)
			p.await("the call at the server", func() bool { return server.calls("hang") == 1 })
			pid := server.pid()
			_ = command.Process.Signal(how.signal)
			p.awaitEnd()
			until(t, "the end of the server", func() bool { return syscall.Kill(pid, 0) != nil })
		})
	}
}

func TestEveryNewCommandHasHelpAndItsExitStatuses(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"facade"}, {"doctor"}, {"mcp"}, {"mcp", "list"}, {"mcp", "search"}, {"mcp", "call"}, {"mcp", "doctor"}, {"mcp", "pins"}} {
		code, out, _ := run(t, nil, append(command, "--help")...)
		if code != 0 || !strings.Contains(out, "Example") || !strings.Contains(out, "  acpod "+strings.Join(command, " ")) {
			t.Errorf("%v --help: %d %q", command, code, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("[mcp]\nlisten = \"127.0.0.1:0\"\nredact = ['(']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loose := filepath.Join(t.TempDir(), "loose.toml")
	if err := os.WriteFile(loose, []byte("[mcp]\nlisten = \"127.0.0.1:0\"\nredact = ['x?']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"mcp"}, 2, "list"},
		{[]string{"mcp", "nonsense"}, 2, "nonsense"},
		{[]string{"mcp", "list", "x"}, 2, "one argument too many"},
		{[]string{"mcp", "call"}, 2, "name a capability"},
		{[]string{"mcp", "call", "a", "{}", "c"}, 2, "one argument too many"},
		{[]string{"mcp", "call", "a", "{x"}, 2, "not JSON"},
		{[]string{"mcp", "search", "--limit", "0", "x"}, 2, "--limit"},
		{[]string{"mcp", "pins", "--accept", "a", "--forget", "b"}, 2, "one at a time"},
		{[]string{"mcp", "pins", "--accept", "nobody"}, 1, "nobody"},
		{[]string{"mcp", "list", "--config", bad}, 1, "bad.toml:3: mcp.redact[0]"},
		{[]string{"config", "check", "--config", loose}, 1, "loose.toml:3: mcp.redact[0]"},
		{[]string{"facade", "--listen", "0.0.0.0:1"}, 1, "flag --listen: "},
		{[]string{"facade", "--listen", "0.0.0.0:1"}, 1, "loopback"},
		{[]string{"facade", "--listen"}, 2, "listen"},
	} {
		code, out, text := run(t, nil, row.arguments...)
		if code != row.code || !strings.Contains(text, row.says) || strings.Count(strings.TrimSpace(text), "\n") > 0 || out != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", row.arguments, code, out, text)
		}
	}
}
