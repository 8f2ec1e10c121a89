package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// While a pod drains it says so at /readyz, takes no new client, and a second signal ends it at once; nothing of it lives on.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "pod.drain_timeout", `"10m"`))
	e := dial(t, p)
	session := e.open()
	e.prompt(session, "/fork")
	e.sendPrompt(session, "/sleep 1h")
	p.await("the turn", func() bool { _, running := p.tree().find("/agent"); return running })
	if err := p.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	status := func(path string) int {
		response, err := http.Get("http://" + p.Public + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	p.await("the drain at /readyz", func() bool { return status("/readyz") == http.StatusServiceUnavailable })
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("/healthz while it drains: %d", got)
	}
	p.await("the refusal of upgrades", func() bool { return rawUpgrade(t, p.Public, p.Public) == http.StatusServiceUnavailable })
	select {
	case <-p.ended:
		t.Fatalf("it did not wait for the turn:\n%s", p.log)
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the second signal did not end it:\n%s", p.log)
	}
	if code := p.command.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(p.home, "ready.json")); err == nil {
		t.Error("the ready file is left")
	}
	for end := time.Now().Add(patience); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v outlived the pod", p.processes())
		}
	}
}

// A start that is refused because an address is taken says which key names it, and leaves nothing behind.
func TestATakenAddressIsOneLine(t *testing.T) {
	t.Parallel()
	first := startPod(t, baseConfig)
	second := launch(t, with(baseConfig, "debug.listen", `"`+first.Debug+`"`))
	select {
	case <-second.ended:
	case <-time.After(patience):
		t.Fatal("it started")
	}
	text := strings.TrimSpace(second.log.String())
	if code := second.command.ProcessState.ExitCode(); code != 1 || strings.Contains(text, "\n") || !strings.Contains(text, "debug.listen") {
		t.Errorf("exit %d: %q", code, text)
	}
	if left := second.processes(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}
