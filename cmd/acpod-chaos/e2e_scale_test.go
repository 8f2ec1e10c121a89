package main

import (
	"encoding/json/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/scale"
)

// TestScaleAnswersEveryCallAndReportsBothSides asserts nothing on how fast or how large anything is.
func TestScaleAnswersEveryCallAndReportsBothSides(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	code, stdout, stderr := runChaos(t, 5*time.Minute, "scale", "--acpod", acpodBinary, "--extensions", "200", "--rate", "100", "--duration", "3s", "--settle", "1s", "--report", file)
	if code != 0 {
		t.Fatalf("scale ended with %d: %s\n%s", code, stderr, stdout)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r scale.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for name, side := range map[string]*scale.Side{"pod": r.Pod, "echo": r.Echo} {
		if side == nil {
			t.Fatalf("the report has no %s", name)
		}
		l := side.Load
		if l.Calls != 300 || l.Answered != 300 || len(l.Failed) != 0 || side.Ramp.Ready.N != 200 {
			t.Errorf("%s: %d of %d calls were answered for %d clients, failed %v", name, l.Answered, l.Calls, side.Ramp.Ready.N, l.Failed)
		}
		for what, figure := range map[string]float64{
			"p50": l.Latency.P50, "p99": l.Latency.P99, "resident, idle": float64(side.Idle.RSS), "resident, in use": float64(l.RSSPeak), "heap": float64(side.Idle.Heap),
			"goroutines": side.Idle.PerConnection.Goroutines, "peak": float64(side.PeakRSS), "bytes to the server": l.ToServer, "bytes to the client": l.ToClient,
		} {
			if figure <= 0 {
				t.Errorf("%s: %s is %v", name, what, figure)
			}
		}
	}
	// The echo carries as many bytes a call as the pod did, give or take a head and what the pod says beside the calls.
	if pod, echo := r.Pod.Load.ToServer+r.Pod.Load.ToClient, r.Echo.Load.ToServer+r.Echo.Load.ToClient; echo < pod*0.95 || echo > pod*1.05 {
		t.Errorf("a call was %.0f bytes on the pod's sockets and %.0f on the echo's", pod, echo)
	}
	if len(r.Invariants) < 10 {
		t.Errorf("only %d invariants were checked", len(r.Invariants))
	}
	for _, i := range r.Invariants {
		if !i.Held {
			t.Errorf("%s: %s", i.Name, i.Why)
		}
	}
	if !strings.Contains(stdout, "latency p99, ms") || !strings.Contains(stderr, "pod: 200 connected") {
		t.Errorf("the table is\n%s\nand the progress\n%s", stdout, stderr)
	}
}

func TestWrongUsageIsStatusTwoWhateverTheCommand(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		{"scale", "more"}, {"scale", "--extensions", "0"}, {"scale", "--rate", "-1"}, {"scale", "--log-format", "xml"}, {"agent", "more"}, {"echo", "more"}, {"run", "more"},
	} {
		code, stdout, stderr := runChaos(t, patience, arguments...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "see acpod-chaos "+arguments[0]+" --help") {
			t.Errorf("%v ended with %d, %q, %q; want 2 and one line", arguments, code, stdout, stderr)
		}
	}
}

func TestScaleSaysWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--acpod", "/nonexistent/acpod"}, "--acpod"},
		{[]string{"--acpod", acpodBinary, "--extensions", "100000000"}, "ulimit -Hn"},
		{[]string{"--acpod", acpodBinary, "--report", "/nonexistent/report.json"}, "--report"},
		{[]string{"--acpod", chaosBinary, "--extensions", "1"}, "did not come up"},
	} {
		code, _, stderr := runChaos(t, patience, append([]string{"scale"}, row.arguments...)...)
		if code != exitFailure || !strings.Contains(stderr, row.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v ended with %d: %s", row.arguments, code, stderr)
		}
	}
}
