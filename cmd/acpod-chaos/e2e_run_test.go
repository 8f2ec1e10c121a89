package main

import (
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runReport is what these tests read of a report.
type runReport struct {
	Seed  uint64 `json:"seed"`
	Calls struct {
		Made      int64            `json:"made"`
		Executed  int64            `json:"executed"`
		ByOutcome map[string]int64 `json:"by_outcome"`
	} `json:"calls"`
	Latency struct {
		N   int64   `json:"n"`
		P50 float64 `json:"p50_ms"`
		P99 float64 `json:"p99_ms"`
		Max float64 `json:"max_ms"`
	} `json:"latency"`
	Bytes struct {
		SocketsIn, SocketsOut, Facade int64
	} `json:"bytes"`
	Pods []struct {
		Name      string `json:"name"`
		PeakRSS   int64  `json:"peak_rss_bytes"`
		FinalRSS  int64  `json:"final_rss_bytes"`
		WorstCase int64  `json:"worst_case_bytes"`
	} `json:"pods"`
	Invariants []promise    `json:"invariants"`
	Faults     []faultCount `json:"faults"`
}

type promise struct {
	Name      string `json:"name"`
	Held      bool   `json:"held"`
	Exercised int64  `json:"exercised"`
	Violation string `json:"violation"`
}

type faultCount struct {
	Name     string `json:"name"`
	Attacks  string `json:"attacks"`
	Injected int64  `json:"injected"`
	Skipped  string `json:"skipped"`

	Variants map[string]int64 `json:"variants"`
}

func (r runReport) promise(name string) promise {
	at := slices.IndexFunc(r.Invariants, func(p promise) bool { return p.Name == name })
	if at < 0 {
		return promise{}
	}
	return r.Invariants[at]
}

// raceMemory is how much more memory a pod needs with the race detector, at most.
const raceMemory = "12"

// attack runs the harness against a pod of its own and wants every promise to be held.
func attack(t *testing.T, acpod, chaos string, arguments ...string) runReport {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	all := append([]string{"run", "--spawn", "--acpod", acpod, "--assert", "--report", file}, arguments...)
	if acpod != acpodBinary {
		all = append(all, "--memory-factor", raceMemory)
	}
	code, stdout, stderr := runProgram(t, chaos, 8*time.Minute, all...)
	if code != 0 {
		t.Fatalf("%v ended with %d:\n%s\n%s", all, code, stdout, withoutProgress(stderr))
	}
	t.Log(stdout)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report runReport
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatalf("the report: %v", err)
	}
	if len(report.Invariants) == 0 {
		t.Fatal("the report has no promises")
	}
	for _, p := range report.Invariants {
		if !p.Held {
			t.Errorf("%s: %s", p.Name, p.Violation)
		}
	}
	return report
}

// withoutProgress is what was logged beside the line a second.
func withoutProgress(stderr string) string {
	var kept strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, "level=INFO") {
			kept.WriteString(line)
		}
	}
	if kept.Len() > 8000 {
		return kept.String()[:8000] + "…"
	}
	return kept.String()
}

// Everything at once: this is what `make test` runs of the harness.
func TestEveryPromiseHoldsUnderAllFaultsAtOnce(t *testing.T) {
	report := attack(t, watched.acpod, watched.chaos, "--extensions", "100", "--sessions", "120", "--duration", "20s", "--seed", "1", "--faults", "all", "--rate", "60")
	var without []string
	for _, f := range report.Faults {
		if f.Injected == 0 && f.Skipped == "" {
			without = append(without, f.Name)
		}
	}
	if len(without) > 3 { // a slow machine has few turns in 20 s; that each fault is injected is tested one by one
		t.Errorf("%q were not injected", without)
	}
	for _, p := range report.Invariants {
		if p.Exercised == 0 {
			t.Errorf("%s was not tested", p.Name)
		}
	}
	if report.Calls.ByOutcome["result"] == 0 || report.Calls.Executed == 0 || report.Latency.N != report.Calls.Made {
		t.Errorf("calls: %+v, latency %+v", report.Calls, report.Latency)
	}
	for _, pod := range report.Pods {
		if pod.PeakRSS < pod.FinalRSS || pod.FinalRSS == 0 || pod.WorstCase == 0 {
			t.Errorf("pod %s: %+v", pod.Name, pod)
		}
	}
}

// sharpest are the variants of a fault without which its promise would hold also in a pod that has no guard against it.
var sharpest = map[string][]string{
	"slowread": {"deaf"}, "slowwrite": {"stall"}, "flood": {"nonsense", "unread"}, "replace": {"foreign", "takeover"}, "malformed": {"json", "id"}, "oversize": {"frame", "request"},
	"duplicate": {"resume", "resume_race", "agent_session"},
}

// Each fault by itself and often: it happens, and the promise that it attacks was tested and held.
func TestEachFaultAttacksAPromiseThatHolds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault string
		rate  float64
		also  []string // promises that this fault has to test beside the one that it attacks
	}{
		{"drop", 0.3, []string{"disconnected_once", "answered_once"}},
		{"halfopen", 0.2, []string{"accounts"}},
		{"slowread", 0.2, []string{"answered_once", "memory"}},
		{"slowwrite", 0.3, []string{"answered_once"}},
		{"flood", 0.4, []string{"answered_once", "accounts", "memory"}},
		{"oversize", 0.3, []string{"memory"}},
		{"malformed", 0.5, nil},
		{"hostiletext", 0.3, []string{"no_secret"}},
		{"duplicate", 0.3, []string{"answered_once", "executed_once"}},
		{"late", 0.4, []string{"answered_once", "cancel_reaches"}},
		{"never", 0.2, []string{"cancel_reaches"}},
		{"replace", 0.3, []string{"disconnected_once", "tokens_balance"}},
		{"abort", 0.5, []string{"answered_once", "cancel_reaches"}},
		{"cancelrace", 0.5, []string{"answered_once", "last_chunk"}},
		{"agentcrash", 0.3, []string{"answered_once", "back_to_baseline"}},
		{"agentgarbage", 0.3, []string{"answered_once"}},
		{"agenthang", 0.1, []string{"answered_once"}},
		{"stderr", 0.3, []string{"no_secret"}},
		{"clock", 0.3, []string{"answered_once", "accounts"}},
		{"enospc", 0.3, []string{"executed_once", "outcome_true"}},
		{"readonly", 0.3, []string{"executed_once", "outcome_true"}},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			report := attack(t, acpodBinary, chaosBinary, "--extensions", "10", "--sessions", "20", "--duration", "6s", "--seed", "7",
				"--faults", fmt.Sprintf("%s:%v", test.fault, test.rate), "--rate", "40")
			at := slices.IndexFunc(report.Faults, func(f faultCount) bool { return f.Name == test.fault })
			if at < 0 || report.Faults[at].Injected == 0 && report.Faults[at].Skipped == "" {
				t.Fatalf("%s was not injected: %+v", test.fault, report.Faults)
			}
			for _, variant := range sharpest[test.fault] {
				if report.Faults[at].Variants[variant] == 0 {
					t.Errorf("%s was injected, but not as %s: %+v", test.fault, variant, report.Faults[at])
				}
			}
			for _, name := range append(test.also, report.Faults[at].Attacks) {
				if p := report.promise(name); p.Exercised == 0 {
					t.Errorf("%s was not tested", name)
				}
			}
		})
	}
}

func TestRunRefusesACommandLineThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		arguments []string
		says      string
	}{
		{nil, "--spawn"},
		{[]string{"--spawn", "--target", "ws://127.0.0.1:1/acp"}, "--spawn"},
		{[]string{"--spawn", "--faults", "dorp"}, `there is no fault "dorp"; there are drop, halfopen`},
		{[]string{"--spawn", "--faults", "drop:7"}, "a chance from 0 to 1"},
		{[]string{"--spawn", "--extensions", "0"}, "--extensions 0"},
		{[]string{"--spawn", "--extensions", "10", "--sessions", "-5"}, "--sessions -5"},
		{[]string{"--spawn", "--duration", "-1s"}, "--duration"},
		{[]string{"--spawn", "--debug", "http://127.0.0.1:1"}, "--debug"},
		{[]string{"--target", "http://127.0.0.1:1/acp"}, "ws://"},
		{[]string{"--spawn", "--log-level", "loud"}, "--log-level"},
		{[]string{"--spawn", "--log-format", "xml"}, "--log-format"},
		{[]string{"--spawn", "more"}, "more"},
	} {
		code, stdout, stderr := runChaos(t, patience, append([]string{"run"}, test.arguments...)...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.says) {
			t.Errorf("%v ended with %d, %q, %q; want 2 and one line with %q", test.arguments, code, stdout, stderr, test.says)
		}
	}
}

func TestRunAttacksAPodThatRunsAlready(t *testing.T) {
	t.Parallel()
	p := startPod(t, "[acp]\nlisten = \"127.0.0.1:0\"\n[agent]\ndriver = \"none\"\n[mcp]\nlisten = \"127.0.0.1:0\"\n[debug]\nlisten = \"127.0.0.1:0\"\n")
	file := filepath.Join(t.TempDir(), "report.json")
	code, stdout, stderr := runChaos(t, 5*time.Minute, "run", "--target", "ws://"+p.Public()+"/acp", "--debug", "http://"+p.Debug(),
		"--extensions", "9", "--sessions", "6", "--duration", "3s", "--seed", "3", "--faults", "drop:0.2,malformed:0.2,replace:0.2,agentcrash", "--rate", "40",
		"--assert", "--report", file)
	if code != 0 {
		t.Fatalf("it ended with %d:\n%s\n%s", code, stdout, withoutProgress(stderr))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report runReport
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Faults {
		if (f.Name == "agentcrash") != (f.Skipped != "") {
			t.Errorf("%s: skipped %q", f.Name, f.Skipped)
		}
	}
	if report.Calls.ByOutcome["result"] == 0 || report.promise("accounts").Exercised == 0 {
		t.Errorf("nothing was attacked: %+v\n%s", report, stdout)
	}
}

func TestRunHasTheDemoAgentMakeTheCalls(t *testing.T) {
	t.Parallel()
	p := startPod(t, "[acp]\nlisten = \"127.0.0.1:0\"\n[mcp]\nlisten = \"127.0.0.1:0\"\n[debug]\nlisten = \"127.0.0.1:0\"\n")
	file := filepath.Join(t.TempDir(), "report.json")
	code, stdout, stderr := runChaos(t, 5*time.Minute, "run", "--target", "ws://"+p.Public()+"/acp", "--debug", "http://"+p.Debug(),
		"--extensions", "2", "--sessions", "4", "--duration", "5s", "--seed", "3", "--faults", "duplicate:0.1,hostiletext:0.1", "--rate", "20",
		"--assert", "--report", file)
	if code != 0 {
		t.Fatalf("it ended with %d:\n%s\n%s", code, stdout, withoutProgress(stderr))
	}
	var report runReport
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &report) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if report.Calls.ByOutcome["result"] == 0 || report.promise("own_client").Exercised == 0 || report.promise("outcome_true").Exercised == 0 {
		t.Errorf("the demo agent called nothing: %+v\n%s", report, stdout)
	}
	if report.promise("last_chunk").Exercised == 0 {
		t.Errorf("nobody looked at what the agent reported of its calls:\n%s", stdout)
	}
}

// An agent that nobody knows makes no calls when it is told to: it is greeted once, and not attacked.
func TestRunOnlyGreetsAStranger(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "prompts")
	p := startPod(t, fmt.Sprintf("[acp]\nlisten = \"127.0.0.1:0\"\n[agent]\ncommand = [%q]\nenv = {%s = %q}\n[mcp]\nlisten = \"127.0.0.1:0\"\n[debug]\nlisten = \"127.0.0.1:0\"\n", self, strangerRecord, record))
	code, stdout, stderr := runChaos(t, patience, "run", "--target", "ws://"+p.Public()+"/acp", "--debug", "http://"+p.Debug(), "--duration", "1s", "--assert")
	if code != exitFailure || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "an agent that is not the demo agent") {
		t.Errorf("it ended with %d, %q, %q; want 1 and one line", code, stdout, stderr)
	}
	if text, err := os.ReadFile(record); err != nil || string(text) != `[{"type":"text","text":"Hello."}]`+"\n" {
		t.Errorf("the agent was sent %q (%v)", text, err)
	}
}

func TestRunSaysWhyAPodCannotBeAttacked(t *testing.T) {
	t.Parallel()
	p := startPod(t, "[acp]\nlisten = \"127.0.0.1:0\"\nauth_key = \"a key of sixteen or more\"\n[agent]\ndriver = \"none\"\n[debug]\nlisten = \"127.0.0.1:0\"\n")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	target, nobody := "ws://"+p.Public()+"/acp", "127.0.0.1:1"
	for _, test := range []struct {
		arguments []string
		says      string
	}{
		{[]string{"--target", "ws://" + nobody + "/acp"}, "no pod can be entered at --target ws://" + nobody},
		{[]string{"--target", "ws://" + p.Public() + "/elsewhere"}, "no pod can be entered"},
		{[]string{"--target", target}, "give it with --key-file"},
		{[]string{"--target", target, "--key-file", key}, "does not take the key"},
	} {
		code, stdout, stderr := runChaos(t, patience, append([]string{"run", "--duration", "1s", "--assert"}, test.arguments...)...)
		if code != exitFailure || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, test.says) {
			t.Errorf("%v ended with %d, %q, %q; want 1 and one line with %q", test.arguments, code, stdout, stderr, test.says)
		}
	}
	if err := os.WriteFile(key, []byte("a key of sixteen or more"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runChaos(t, patience, "run", "--duration", "1s", "--target", target, "--key-file", key, "--debug", "http://"+nobody)
	if code != exitFailure || !strings.Contains(stderr, "the pod's tree cannot be read at --debug http://"+nobody) {
		t.Errorf("without its debug listener it ended with %d, %q", code, stderr)
	}
}
