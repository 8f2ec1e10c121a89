package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startFacade starts `acpod facade` in place of a pod; its file says the port.
func startFacade(t *testing.T, config string, settings ...setting) *pod {
	t.Helper()
	return startPod(t, config, append([]setting{func(c *exec.Cmd) {
		c.Args[1] = "facade"
		if config == "" {
			c.Args = append([]string{c.Args[0], "facade"}, c.Args[4:]...)
		}
		c.Args = append(c.Args, "--listen", "127.0.0.1:0")
	}}, settings...)...)
}

func TestTheFacadeRunsAloneOverTheServersOfMCPJSON(t *testing.T) {
	t.Parallel()
	server := newEvil(t, evilScript{Name: "files", Offer: []string{"echo"}})
	p := startFacade(t, "", mcpJSON(t, server))
	if p.Public != "" || p.Debug != "" || p.Facade == "" {
		t.Errorf("it listens at %q, %q and %q", p.Public, p.Facade, p.Debug)
	}
	agent := anonymous(t, p)
	agent.says("files.echo", `{"a":1}`, `echo {"a":1}`)
	if found := agent.everything(); !found.has("echo") || found.Total != 1 {
		t.Errorf("%+v", found)
	}
	for _, word := range []string{"mcp.audit", "event=exit", "listener=facade"} {
		if !strings.Contains(p.log.String(), word) {
			t.Errorf("the log has no %s:\n%s", word, p.log)
		}
	}
	if strings.Contains(p.log.String(), "listener=public") || strings.Contains(p.log.String(), "listener=debug") {
		t.Errorf("it has more than a facade:\n%s", p.log)
	}
	pid := server.pid()
	p.stop()
	if _, err := os.Stat(filepath.Join(p.home, "ready.json")); err == nil {
		t.Error("the ready file is left")
	}
	until(t, "the end of the server", func() bool { return syscall.Kill(pid, 0) != nil })
}

func TestAFacadeAloneHasADebugListenerWhereAFileNamesOne(t *testing.T) {
	t.Parallel()
	p := startFacade(t, "[mcp]\nlisten = \"127.0.0.1:1\"\n[debug]\nlisten = \"127.0.0.1:0\"\n", mcpJSON(t, newEvil(t, evilScript{Name: "files", Offer: []string{"echo"}})))
	if p.Debug == "" || p.Public != "" {
		t.Fatalf("it listens at %q, %q and %q", p.Public, p.Facade, p.Debug)
	}
	anonymous(t, p).says("echo", "{}", "echo {}")
	var names []string
	for _, child := range p.tree().Children {
		names = append(names, strings.TrimPrefix(child.Path, "pod/"))
	}
	if got := strings.Join(names, " "); got != "audit pins debug providers facade" {
		t.Errorf("children of the root: %s", got)
	}
	if body := string(p.get("http://" + p.Debug + "/metrics")); !strings.Contains(body, "acpod_calls_total") || !strings.Contains(body, "acpod_pod_providers_ready 1") {
		t.Errorf("no metrics of calls, or of providers:\n%s", body)
	}
}

func TestAFacadeAloneLetsOpenCallsEnd(t *testing.T) {
	t.Parallel()
	server := newEvil(t, evilScript{Name: "files", Offer: []string{"slow"}})
	p := startFacade(t, "[pod]\ndrain_timeout = \"30s\"\n[mcp]\n", mcpJSON(t, server))
	call := anonymous(t, p).later("slow", `{"ms":1500,"text":"in the end"}`)
	until(t, "the call at the server", func() bool { return server.calls("slow") == 1 })
	_ = p.command.Process.Signal(syscall.SIGTERM)
	if got := call.wait(); !strings.Contains(got.text(), "done in the end") {
		t.Errorf("%+v", got)
	}
	<-p.ended
	if p.err != nil {
		t.Errorf("it ended with %v", p.err)
	}
}

// What is anonymous = false for the pod is so for a facade alone: only the key is left.
func TestAFacadeAloneThatIsClosedToAnonymousTakesTheKey(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("the-operators-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startFacade(t, "[mcp]\nanonymous = false\nauth_key_file = \""+key+"\"\n", mcpJSON(t, newEvil(t, evilScript{Name: "files", Offer: []string{"echo"}})))
	agent := anonymous(t, p)
	if response := agent.statusOf("POST", nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); response.StatusCode == 200 {
		t.Errorf("without the key: %d", response.StatusCode)
	}
	agent.token = "the-operators-key"
	agent.says("echo", "{}", "echo {}")
}
