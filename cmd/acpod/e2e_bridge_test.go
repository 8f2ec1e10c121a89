package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortFolder is for sockets: a path of theirs has room for 107 bytes.
func shortFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// relayed is an agent that has a relay of its own, which the test writes to, and leaves another behind.
func relayed(config, socket string) string {
	const script = `mkfifo "$HOME/to-$$"
OPENAB_SESSION_TOKEN=forged OPENAB_BROWSER_CHANNEL=acp_of_another OPENAB_BROWSER_SOCKET="$1" "$0" bridge <>"$HOME/to-$$" >"$HOME/own-$$" 2>&1 &
( ( sleep 0.3; exec "$0" bridge --socket "$1" </dev/null >"$HOME/orphan-$$" 2>&1 ) & )
exec "$0" agent demo`
	command := encodeTOML("/bin/sh", "-c", script, builtBinary, socket)
	return with(config, "agent.command", command, "agent.delivery", `"bridge"`, "agent.bridge_socket", fmt.Sprintf("%q", socket))
}

func encodeTOML(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = `'''` + word + `'''`
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func TestAnAgentReachesItsToolsByTheBridgeAndNobodyElseDoes(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(shortFolder(t), "made")
	socket := filepath.Join(folder, "s")
	const frameBytes = 256 << 10
	p := startPod(t, with(relayed(baseConfig, socket), "limits.frame_bytes", `"256KiB"`))
	for path, want := range map[string]os.FileMode{folder: 0o700, socket: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	e := dial(t, p)
	first := e.open(newServer("katashiro", genA, "katashiro.click"))
	second := e.openMore(newServer("other", genA, "other.ping"))

	// The agent's own entry: a stdio server without a token, and a call through it.
	given, _ := e.prompt(first, "/new")
	if !strings.Contains(given, `"bridge"`) || strings.Contains(given, "***") || strings.Contains(given, p.Facade) {
		t.Errorf("the agent was given %s", given)
	}
	e.says(first, "/call katashiro.click {\"x\":1}", "katashiro.click {\"x\":1}\n")
	e.says(second, "/call katashiro.click {}", "error: there is no capability \"katashiro.click\"; use an exact name from search_capabilities\n")

	// A relay below the second agent is the second session's, whatever its environment and its frames say.
	agent := p.agentOf(second)
	relay := fifo{t, p, filepath.Join(p.home, fmt.Sprintf("to-%d", agent)), filepath.Join(p.home, fmt.Sprintf("own-%d", agent)), 0}
	search := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_capabilities","arguments":{"detail":"names"}}}`
	relay.say(fmt.Sprintf(search, 1))
	if got := relay.hear(); !strings.Contains(got, "other.ping") || strings.Contains(got, "katashiro") {
		t.Errorf("the second agent finds %s", got)
	}
	wrapped := func(channel string, id int) string {
		return `{"channel_id":"` + channel + `","request":` + fmt.Sprintf(search, id) + `}`
	}
	relay.say(wrapped(first, 2))  // dropped
	relay.say("no json\n\xff\n")  // skipped
	relay.say(wrapped(second, 3)) // answered
	if got := relay.hear(); !strings.Contains(got, `"id":3,`) || !strings.Contains(got, "other.ping") {
		t.Errorf("%s", got)
	}
	head := `{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"x":"`
	relay.say(head + strings.Repeat("x", frameBytes-len(head)-3) + `"}}`)
	if got := relay.hear(); !strings.Contains(got, `"id":4,"result"`) {
		t.Errorf("a line of exactly the limit: %.300s", got)
	}
	node, _ := p.tree().find("/bridge")
	for _, scope := range []string{"channel_id", "not_json", "not_utf8"} {
		if node.Refused[scope] != 1 {
			t.Errorf("%s: %v", scope, node.Refused)
		}
	}

	// Whoever descends from no agent is refused: a stranger, and what an agent left behind.
	code, stdout, stderr := run(t, nil, "bridge", "--socket", socket)
	if code != 1 || !strings.Contains(stdout, `"error":{"code":-32600`) || !strings.Contains(stderr, "refused this relay") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a stranger: %d %q %q", code, stdout, stderr)
	}
	p.await("the end of what was left behind", func() bool {
		text, _ := os.ReadFile(filepath.Join(p.home, fmt.Sprintf("orphan-%d", agent)))
		return strings.Contains(string(text), "refused this relay")
	})
	// A longer line, and the end of the agent, end the connection.
	relay.say(head + strings.Repeat("x", frameBytes) + `"}}`)
	p.await("the end of the relay", func() bool {
		node, _ := p.tree().find("/bridge")
		return node.Refused["frame_bytes"] == 1 && strings.Contains(relay.all(), "closed the connection")
	})
	e.says(second, "/call other.ping {}", "other.ping {}\n") // by the agent's own relay, which goes on
	e.call("session/close", object{"sessionId": first})
	e.call("session/close", object{"sessionId": second})
	e.hangUp()
	p.rest()
	p.stop()
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is left")
	}
}

// fifo is a relay that the agent's script has started.
type fifo struct {
	t        testing.TB
	p        *pod
	to, from string
	heard    int
}

func (f *fifo) say(line string) {
	f.t.Helper()
	w, err := os.OpenFile(f.to, os.O_WRONLY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString(line + "\n"); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fifo) all() string {
	text, _ := os.ReadFile(f.from)
	return string(text)
}

func (f *fifo) hear() (line string) {
	f.t.Helper()
	f.p.await("a line of the relay", func() bool {
		lines := strings.SplitAfter(f.all(), "\n")
		if len(lines) <= f.heard+1 {
			return false
		}
		line = lines[f.heard]
		return true
	})
	f.heard++
	return line
}

func TestAPodWithoutASocketForTheBridgeSaysSo(t *testing.T) {
	t.Parallel()
	dir := shortFolder(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := with(baseConfig, "agent.bridge_socket", fmt.Sprintf("%q", file))
	refused := launch(t, with(broken, "agent.delivery", `"bridge"`))
	<-refused.ended
	if code := refused.command.ProcessState.ExitCode(); code != 1 || !strings.Contains(refused.log.String(), "no socket and is left as it is") {
		t.Errorf("%d %s", code, refused.log)
	}
	p := startPod(t, broken)
	if !strings.Contains(p.log.String(), "no socket for `acpod bridge`") {
		t.Errorf("no warning: %s", p.log)
	}
	if _, there := p.tree().find("/bridge"); there {
		t.Error("there is a bridge without a socket")
	}
	e := dial(t, p)
	session := e.open(newServer("katashiro", genA, "katashiro.click"))
	e.says(session, "/call katashiro.click {}", "katashiro.click {}\n")
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}

	code, stdout, stderr := run(t, []string{"OPENAB_BROWSER_SOCKET=" + filepath.Join(dir, "none")}, "bridge")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "no pod serves "+filepath.Join(dir, "none")) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	var left map[string]any
	if json.Unmarshal([]byte(stdout), &left) == nil {
		t.Error("something stands on stdout")
	}
}
