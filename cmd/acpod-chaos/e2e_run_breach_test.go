//go:build !race

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunNamesThePromiseThatAPodBreaks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	p := startPod(t, "[acp]\nlisten = \"127.0.0.1:0\"\n[agent]\ndriver = \"none\"\n[mcp]\nlisten = \"127.0.0.1:0\"\n[debug]\nlisten = \"127.0.0.1:0\"\nflight_bytes = \"1MiB\"\n[limits]\nframe_bytes = \"16MiB\"\nrequest_bytes = \"2MiB\"\n")
	code, stdout, stderr := runChaos(t, 5*time.Minute, "run", "--target", "ws://"+p.Public()+"/acp", "--debug", "http://"+p.Debug(),
		"--extensions", "20", "--duration", "5s", "--seed", "3", "--faults", "oversize:0.5", "--rate", "5", "--assert", "--report", file)
	if code != 1 || !strings.Contains(stdout, "told               BROKEN") || !strings.Contains(stderr, "promises are broken with seed 3") {
		t.Errorf("a pod whose bound for a request is not the contract's passed: %d\n%s\n%s", code, stdout, withoutProgress(stderr))
	}
	// What can be seen of it is told while it is fresh.
	for _, evidence := range []string{`msg="a promise is broken" promise=told how=`, " seed=3", `msg="an event of the actors concerned"`, `msg="there is a flight recording, for go tool trace"`} {
		if !strings.Contains(stderr, evidence) {
			t.Errorf("%q is not in what it says:\n%s", evidence, withoutProgress(stderr))
		}
	}
	recording, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".told.0.flight")
	if err != nil || !strings.HasPrefix(string(recording), "go 1.") {
		t.Errorf("the recording: %v, %.20q", err, recording)
	}
}
