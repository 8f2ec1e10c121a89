package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/pod"
)

// checkedRow is a row of wire-check's report, as others read it.
type checkedRow struct {
	Section, Name, Expected, Came, Status, Reason string
	Ms                                            int64
}

type checkReport struct {
	Target  string
	Servers []string
	Pod     struct {
		Name, Version, Agent string
		Keyed                bool
		RequestBytes         int `json:"request_bytes"`
		FrameBytes           int `json:"frame_bytes"`
	}
	Assumed                     []string
	Rows                        []checkedRow
	Passed, Failed, Skipped, Ms int
	passed, failed, skipped     []string
}

// checkWire runs wire-check --json and gives its exit status and report.
func checkWire(t *testing.T, target string, arguments ...string) (int, checkReport) {
	t.Helper()
	code, stdout, stderr := runChaos(t, 10*time.Minute, append([]string{"wire-check", "--target", target, "--json", "--timeout", "8m"}, arguments...)...)
	var r checkReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit %d, %v in %.500s; stderr %s", code, err, stdout, stderr)
	}
	if stderr != "" {
		t.Errorf("stderr has %q beside the report", stderr)
	}
	for _, row := range r.Rows {
		name := row.Section + "/" + row.Name
		switch row.Status {
		case "pass":
			r.passed = append(r.passed, name)
		case "fail":
			r.failed = append(r.failed, name)
		case "skipped":
			r.skipped = append(r.skipped, name)
		}
		if row.Expected == "" || row.Status != "pass" && row.Reason == "" || row.Status == "pass" && row.Reason != "" {
			t.Errorf("a row that does not explain itself: %+v", row)
		}
	}
	if len(r.passed) != r.Passed || len(r.failed) != r.Failed || len(r.skipped) != r.Skipped || len(r.passed)+len(r.failed)+len(r.skipped) != len(r.Rows) {
		t.Errorf("counted %d, %d, %d of %d rows", r.Passed, r.Failed, r.Skipped, len(r.Rows))
	}
	return code, r
}

// explain is what failed, for a test that did not expect it.
func (r checkReport) explain() string {
	var b strings.Builder
	for _, row := range r.Rows {
		if row.Status == "fail" {
			fmt.Fprintf(&b, "\n%s/%s: expected %s; came %s; why: %s", row.Section, row.Name, row.Expected, row.Came, row.Reason)
		}
	}
	return b.String()
}

// The configs of the pods that are checked. They are kept awake every second, so that no test waits 20 s for it.
const checkedConfig = `
[acp]
listen = "127.0.0.1:0"
keepalive = "1s"
[agent]
workdir = "."
max_sessions = 40
cancel_timeout = "2s"
stop_grace = "2s"
%s
[mcp]
listen = "127.0.0.1:0"
%s
[debug]
listen = "127.0.0.1:0"
`

const (
	grantsNone = "" // katashiro with its five tools
	grantsTwo  = `
[[mcp.acp_servers]]
name = "a"
tools = ["*"]
[[mcp.acp_servers]]
name = "b"
tools = ["b.type"]
`
)

func checked(agent, grants string) string { return fmt.Sprintf(checkedConfig, agent, grants) }

const noAgent = `driver = "none"`

// keyedConfig is a pod with the demo agent, two granted servers, and a key.
func keyedConfig() string {
	return strings.Replace(checked("", grantsTwo), "[acp]", "[acp]\nauth_key = \"the.key-1\"", 1)
}

func keyFile(t *testing.T, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// strangerRecord makes this test binary an agent that nobody knows: it writes each prompt that it is given into that file.
const strangerRecord = "ACPOD_CHAOS_E2E_STRANGER"

func init() {
	if file := os.Getenv(strangerRecord); file != "" {
		os.Exit(beStranger(file))
	}
}

// beStranger is one life of that agent: it thinks a little, says a word and ends its turn, or ends it when it is cancelled.
func beStranger(file string) int {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	var mu sync.Mutex
	var open *time.Timer // the turn that runs, and its id
	var turn json.RawMessage
	say := func(format string, values ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", values...)
	}
	for lines.Scan() {
		var f struct {
			ID     json.RawMessage
			Method string
			Params struct {
				SessionID string
				Prompt    json.RawMessage
			}
		}
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			return 91
		}
		switch f.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"stranger","version":"1"},"agentCapabilities":{"mcpCapabilities":{"http":true}}}}`, f.ID)
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"theirs"}}`, f.ID)
		case "session/prompt":
			record, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 92
			}
			fmt.Fprintf(record, "%s\n", f.Params.Prompt)
			record.Close()
			open = time.AfterFunc(300*time.Millisecond, func() {
				say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"theirs","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Good day."}}}}`)
				say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, f.ID)
			})
			turn = f.ID
		case "session/cancel":
			if open != nil && open.Stop() {
				say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}`, turn)
			}
		}
	}
	return 0
}

// An agent that nobody knows is sent nothing but a greeting, and few of them.
func TestWireCheckOnlyGreetsAStranger(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "prompts")
	p := startPod(t, checked(fmt.Sprintf("command = [%q]\nenv = {%s = %q}", self, strangerRecord, record), grantsNone))
	code, r := checkWire(t, p.ACP(), "--patience", "1m")
	if code != 0 || r.Failed != 0 || r.Pod.Agent != "another" {
		t.Errorf("exit %d, taken for %q: %s", code, r.Pod.Agent, r.explain())
	}
	for _, name := range []string{"compliance/a prompt streams text and ends with end_turn", "lifecycle/a cancel in the frame after its prompt cancels it", "tunnel/B: a declared server is connected and listed"} {
		if !slices.Contains(r.passed, name) {
			t.Errorf("%q was not asked", name)
		}
	}
	greeted := 0
	for _, row := range r.Rows {
		if row.Status == "skipped" && strings.Contains(row.Reason, "sent nothing but a greeting") {
			greeted++
		}
	}
	if greeted != 22 {
		t.Errorf("%d rows are skipped for an agent that is only greeted: %q", greeted, r.skipped)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	prompts := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, prompt := range prompts {
		if prompt != `[{"text":"Hello.","type":"text"}]` {
			t.Errorf("the agent was sent %s", prompt)
		}
	}
	if len(prompts) > 6 {
		t.Errorf("the agent was prompted %d times", len(prompts))
	}
	atRest(t, p)
}

// A sound pod passes every row that can be asked of it, whatever it is; what cannot be asked is skipped for its reason.
func TestWireCheckPassesASoundPod(t *testing.T) {
	t.Parallel()
	const keyed, keyless, second, agent, none = "the pod has a key", "the pod asks for no key", "a second granted name", "the pod has no agent", "the pod has an agent"
	for _, row := range []struct {
		name, config string
		arguments    []string
		agent        string
		skips        map[string]int // beginning or part of the reason → how many
	}{
		{"as it is started without a config", checked("", grantsNone), nil, "demo", map[string]int{keyless: 11, second: 2, none: 4}},
		{"without agents, with two grants", checked(noAgent, grantsTwo), []string{"--servers", "a,b"}, "none", map[string]int{keyless: 11, agent: 15}},
		{"with a key and two grants", keyedConfig(), []string{"--servers", "a,b", "--key-file", keyFile(t, "the.key-1")}, "demo", map[string]int{keyed: 6, none: 4}},
		{
			"with other limits", checked(noAgent, grantsNone) + "[limits]\nrequest_bytes = \"256KiB\"\nframe_bytes = \"4MiB\"\nresult_bytes = \"2MiB\"\nservers_per_session = 3\n",
			[]string{"--frame-bytes", fmt.Sprint(4 << 20)}, "none", map[string]int{keyless: 11, second: 2, agent: 15},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, row.config)
			code, r := checkWire(t, p.ACP(), append([]string{"--patience", "1m"}, row.arguments...)...)
			if code != 0 || r.Failed != 0 {
				t.Errorf("exit %d: %s", code, r.explain())
			}
			if r.Pod.Name != "acpod" || r.Pod.Agent != row.agent || r.Target != p.ACP() {
				t.Errorf("it was taken for %+v at %s", r.Pod, r.Target)
			}
			got := map[string]int{}
			for _, one := range r.Rows {
				if one.Status != "skipped" {
					continue
				}
				for reason := range row.skips {
					if strings.Contains(one.Reason, reason) {
						got[reason]++
					}
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(row.skips) {
				t.Errorf("skipped %v, want %v: %q", got, row.skips, r.skipped)
			}
			atRest(t, p)
		})
	}
}

// atRest wants a pod to hold nothing of a client that has gone.
func atRest(t *testing.T, p *pod.Pod) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		root, err := p.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		figures := root.Pod
		if figures.Connections == 0 && figures.Sessions == 0 && figures.BytesUsed == 0 && figures.TokensLive == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("wire-check left something open: %+v", figures)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// With the wrong key, with none, and with one that nobody asked for.
func TestWireCheckAndKeys(t *testing.T) {
	t.Parallel()
	keyed, keyless := startPod(t, keyedConfig()), startPod(t, checked(noAgent, grantsNone))
	code, stdout, stderr := runChaos(t, patience, "wire-check", "--target", keyed.ACP())
	if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--key-file") {
		t.Errorf("without a key: exit %d, %q, %q", code, stdout, stderr)
	}
	code, r := checkWire(t, keyed.ACP(), "--key-file", keyFile(t, "wrong"))
	if code != 2 || !slices.Equal(r.failed, []string{"survey/the pod can be entered"}) || len(r.passed) > 0 || !strings.Contains(r.explain(), "key") {
		t.Errorf("with the wrong key: exit %d, %s, passed %q", code, r.explain(), r.passed)
	}
	code, r = checkWire(t, keyless.ACP(), "--key-file", keyFile(t, "the.key-1"), "--patience", "10s", "--sections", "auth")
	if code != 2 || !slices.Contains(r.failed, "auth/no key is refused") {
		t.Errorf("a pod that should ask for a key and does not: exit %d, %s", code, r.explain())
	}
}

// The table for people has a line for each row, and says what it comes to.
func TestWireCheckPrintsATable(t *testing.T) {
	t.Parallel()
	p := startPod(t, checked(noAgent, grantsNone))
	code, stdout, stderr := runChaos(t, 5*time.Minute, "wire-check", "--target", p.ACP(), "--servers", "nobody-granted-this", "--patience", "20s")
	if code != 2 || stderr != "" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	for _, part := range []string{
		"without an agent", "\nauth\n", "\ncompliance\n", "\nedges\n", "\nlifecycle\n", "\ntunnel\n", "  skipped  no key is refused ", "  pass     only acp.v1 is echoed ",
		"  FAIL     A: a declared server is connected and listed\n           expected: exactly one connect", "state \"refused\"", "--servers", "\nassumed: ", " failed, ",
	} {
		if !strings.Contains(stdout, part) {
			t.Errorf("%q is not in\n%s", part, stdout)
		}
	}
}

// Wrong usage is 1 here, one line, whatever is wrong.
func TestWireCheckRefusesWrongUsage(t *testing.T) {
	t.Parallel()
	const target = "ws://127.0.0.1:1/acp"
	empty := keyFile(t, "  ")
	for _, arguments := range [][]string{
		{}, {"--target", ""}, {"--target"}, {"--target", "http://127.0.0.1:1/acp"}, {"--target", "wss://127.0.0.1:1/acp"}, {"--target", "127.0.0.1:1"}, {"--target", "ws://"},
		{"--target", "ws://[::1/acp"}, {"--target", "ws://user:pass@127.0.0.1:1/acp"}, {"--target", "ws://127.0.0.1:1/%zz"},
		{"--target", target, "stray"}, {"--target", target, "--no-such-flag"}, {"--target", target, "--key-file", filepath.Join(t.TempDir(), "missing")},
		{"--target", target, "--key-file", t.TempDir()}, {"--target", target, "--key-file", empty}, {"--target", target, "--servers", ""}, {"--target", target, "--servers", "a,a"},
		{"--target", target, "--servers", "bad name"}, {"--target", target, "--patience", "soon"}, {"--target", target, "--patience", "0s"}, {"--target", target, "--timeout", "-1s"},
		{"--target", target, "--frame-bytes", "1"}, {"--target", target, "--request-bytes", "-1"}, {"--target", target, "--json=perhaps"},
		{"--target", target, "--sections", "auth,nothing"}, {"--target", target, "--log-level", "loud"}, {"--target", target, "--log-format", "xml"},
	} {
		code, stdout, stderr := runChaos(t, patience, append([]string{"wire-check"}, arguments...)...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "acpod-chaos: ") {
			t.Errorf("%q: exit %d, %q, %q", arguments, code, stdout, stderr)
		}
	}
	if code, stdout, _ := runChaos(t, patience, "wire-check", "--help"); code != 0 || !strings.Contains(stdout, "wire-check --target ws://127.0.0.1:8080/acp") || !strings.Contains(stdout, "greeting") {
		t.Errorf("--help: exit %d, %s", code, stdout)
	}
}

// Nobody there, somebody else there, and somebody who never answers: a failure that says so, soon.
func TestWireCheckAgainstNoPod(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // its backlog takes connections, and nobody reads them
	sound := startPod(t, checked(noAgent, grantsNone))
	deaf := breakPod(t, sound.Public(), broken{toPod: func(*link, []byte) [][]byte { return nil }})
	for target, reason := range map[string]string{
		"ws://127.0.0.1:1/acp": "refused", "ws://" + listener.Addr().String() + "/acp": "deadline", "ws://" + sound.Public() + "/healthz": "200",
		deaf: "did not come within 2s",
	} {
		code, r := checkWire(t, target, "--patience", "2s")
		if code != 2 || !slices.Equal(r.failed, []string{"survey/the pod can be entered"}) || !strings.Contains(r.explain(), reason) {
			t.Errorf("%s: exit %d, %s", target, code, r.explain())
		}
	}
}
