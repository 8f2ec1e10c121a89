package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pinPod starts a pod with that text as its file of pins.
func pinPod(t *testing.T, text string, server *evilServer) (p *pod, agent agentClient, state string) {
	t.Helper()
	state = t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "pins.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p = startPod(t, with(providersConfig, "state.dir", `"`+state+`"`), mcpJSON(t, server))
	return p, anonymous(t, p), state
}

// A file of pins that cannot be read does not keep the pod from serving, and approves nothing: what has no readable pin is held back until the
// operator says that all is well.
func TestADamagedFileOfPinsApprovesNothingAndStopsNothing(t *testing.T) {
	t.Parallel()
	const damaged = "{\"pins\":1,\"id\":\"x\"}\n{\"op\":\"pin\",\"scope\":\x00\x00\n"
	server := newEvil(t, evilScript{Name: "files", Raw: []json.RawMessage{plainTool("steady")}})
	p, agent, state := pinPod(t, damaged, server)
	all := agent.everything()
	if all.has("steady") || !strings.Contains(all.without("files"), "unreadable pin") {
		t.Errorf("%+v", all)
	}
	told := agent.refuses("pin_changed", "files.steady", `{}`).text()
	if !strings.Contains(told, "pins were lost") || !strings.Contains(told, "acpod mcp pins --accept files.steady") {
		t.Errorf("%q", told)
	}
	if kept, err := filepath.Glob(filepath.Join(state, "pins.jsonl.damaged-*")); err != nil || len(kept) != 1 {
		t.Errorf("moved aside: %q %v", kept, err)
	} else if text, err := os.ReadFile(kept[0]); err != nil || string(text) != damaged {
		t.Errorf("%v %q", err, text)
	}
	if !strings.Contains(p.log.String(), "level=ERROR") || !strings.Contains(p.log.String(), "acpod mcp pins") {
		t.Error("the log does not tell the operator")
	}
	// What a session's client serves, and nobody knows again, has no pin that could have been lost.
	_, _, _, session := offer(p, "", pinTool("read", "reads"))
	session.says("read", `{}`, "read {}")
	session.refuses("pin_changed", "files.steady", `{}`)

	if code, out, text := p.pinsOf(); code != 0 || !strings.Contains(out, "--trust") {
		t.Errorf("%d %s %s", code, out, text)
	}
	if code, out, text := p.pinsOf("--trust"); code != 0 {
		t.Fatalf("%d %s %s", code, out, text)
	}
	p.await("what is trusted", func() bool { return agent.everything().has("steady") })
	agent.says("steady", `{}`, "steady {}")
}

// Whoever goes back to an older program is told, with nothing listening and nothing touched.
func TestAFileOfPinsOfANewerProgramStopsTheStart(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	const newer = "{\"pins\":99,\"id\":\"x\"}\n"
	file := filepath.Join(state, "pins.jsonl")
	if err := os.WriteFile(file, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "acpod.toml")
	if err := os.WriteFile(config, []byte(with(noAgent, "state.dir", `"`+state+`"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, text := run(t, nil, "serve", "--config", config)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; code != 1 || !strings.Contains(last, "newer acpod") || !strings.Contains(last, file) || strings.Contains(text, "listening") {
		t.Errorf("%d %s", code, text)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != newer {
		t.Errorf("%v %q", err, now)
	}
}

// A pod that is killed has its pins on the disk: what it admitted a second ago is known to the next one.
func TestPinsOutliveAKill(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	config := with(noAgent, "state.dir", `"`+state+`"`)
	p := startPod(t, config)
	_, _, _, agent := offer(p, pinSecret, pinTool("read", "reads the page"))
	agent.says("read", `{}`, "read {}")
	p.await("the pin in the file", func() bool {
		text, _ := os.ReadFile(filepath.Join(state, "pins.jsonl"))
		return strings.Contains(string(text), `"tool":"read"`)
	})
	_ = p.command.Process.Kill()
	<-p.ended
	p = startPod(t, config)
	_, _, _, agent = offer(p, pinSecret, pinTool("read", "reads your mail"))
	agent.refuses("pin_changed", "read", `{}`)
	p.await("the tree to show it", func() bool {
		node, _ := p.tree().find("/pins")
		return node.Attrs["held"] == float64(1) && node.Attrs["pins"] == float64(1)
	})
}
