package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// An agent must not open sessions, and what it leaves behind must not either, nor live longer than it. It is given nothing
// that it does not need, and sees nothing of the pod.
func TestAnAgentGetsNeitherIntoThePodNorAwayFromIt(t *testing.T) {
	t.Parallel()
	config := with(baseConfig, "agent.command", `["../agent"]`, "agent.env", fmt.Sprintf("{%s = \"agent\"}", descendantMode), "agent.stop_grace", `"1s"`)
	p := startPod(t, config, unprivileged(t))
	e := dial(t, p)
	one, two := e.open(), e.openMore()
	_ = dial(t, p) // a client comes in while agents live

	const refused = "HTTP/1.1 403 Forbidden"
	if text, _ := e.prompt(one, "dial "+p.Public); text != refused {
		t.Errorf("an agent that dials got %q", text)
	}
	leave := func(session, name string) (pid int) {
		file := filepath.Join(p.home, "work", name)
		e.prompt(session, "leave "+p.Public+" "+file)
		text := ""
		p.await("word of the helper", func() bool { b, err := os.ReadFile(file); text = string(b); return err == nil })
		if _, err := fmt.Sscan(text, &pid); err != nil || !strings.Contains(text, refused) {
			t.Fatalf("a helper that left its group, its session and its parent got %q", text)
		}
		return pid
	}
	ofOne, ofTwo := leave(one, "one"), leave(two, "two")
	if n := p.figure("acpod_upgrades_refused_total", `why="descendant"`); n != 3 {
		t.Errorf("%v refusals were counted", n)
	}

	saw, _ := e.prompt(one, "look")
	lines := strings.Split(saw, "\n")
	slices.Sort(lines)
	if want := []string{"env " + descendantMode, "env HOME", "env OPENAB_SESSION_TOKEN", "env PATH", "env USER"}; !slices.Equal(lines, want) {
		t.Errorf("an agent has or can read:\n%s", saw)
	}
	if n := p.figure("process_open_fds"); n < 8 {
		t.Errorf("the pod says that it has %v descriptors open", n)
	}

	used := func(name string) float64 {
		agent, _ := p.tree().find(treeName(one) + "/agent")
		n, _ := agent.Attrs[name].(float64)
		return n
	}
	p.await("what the agent and its helper use, in the tree", func() bool {
		return used("processes") == 2 && used("rss_bytes") > 1<<20
	})
	p.await("what all agents use, in the metrics", func() bool {
		return p.figure("acpod_pod_agents_processes") >= 4 && p.figure("acpod_pod_agents_rss_bytes") > 4<<20
	})

	e.call("session/close", object{"sessionId": one})
	p.await("the end of the helper of the session that was closed", func() bool { return !slices.Contains(p.processes(), ofOne) })
	if !slices.Contains(p.processes(), ofTwo) {
		t.Error("the helper of another session was ended")
	}
	_ = dial(t, p)
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	start := time.Now()
	for end := start.Add(patience); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v outlived the pod; the helper was %d", p.processes(), ofTwo)
		}
	}
	t.Logf("all was gone %v after the kill; the contract gives 5 s", time.Since(start).Round(10*time.Millisecond))
}
