package session

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// scriptedAgent makes the test binary an agent.
const scriptedAgent = "ACPOD_TEST_SCRIPTED_AGENT"

// runScriptedAgent answers each prompt with what it was started with: its folder, its session/new, its arguments and
// whether the variable holds the token of its entry.
func runScriptedAgent(in io.Reader, out io.Writer) {
	var params string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var frame struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
			Params any    `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &frame) != nil {
			continue
		}
		answer := func(result string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%v,"result":%s}`+"\n", frame.ID, result) }
		switch frame.Method {
		case acp.MethodInitialize:
			answer(`{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}`)
		case acp.MethodSessionNew:
			raw, _ := json.Marshal(frame.Params)
			params = string(raw)
			answer(`{"sessionId":"theirs"}`)
		case acp.MethodSessionPrompt:
			dir, _ := os.Getwd()
			token := os.Getenv(delivery.TokenVariable)
			said := fmt.Sprintf("dir=%s literal=%v shown=%v home=%q", dir, strings.Contains(params, "Bearer "+token) && len(token) == 43,
				strings.Contains(strings.Join(os.Args, " "), token), os.Getenv("HOME"))
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"theirs","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`+"\n", said)
			answer(`{"stopReason":"end_turn"}`)
		}
	}
}

// The whole way through a real process: folder, environment, token, update, answer, and nothing left behind.
func TestASessionWithARealProcess(t *testing.T) {
	workdir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(workdir, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &pod{t: t, k: kerneltest.Start(t, kernel.Options{}), rest: func() {}}
	p.root, _ = kerneltest.Root(t, p.k)
	p.s = New(Config{Workdir: workdir, Store: newRecords(), FacadeURL: "http://127.0.0.1:1/mcp",
		Agent: agent.Config{Command: []string{os.Args[0]}, Env: []string{scriptedAgent + "=1", "HOME=/nowhere"}}})
	p.sessions = kerneltest.Spawn(t, p.root, p.s.Spec())
	c := p.client("", 0)
	req := c.openAt(filepath.Join(workdir, "inner"), "[]")
	kerneltest.Eventually(t, "session/new is answered", func() bool { return c.answer(req) != nil })
	if got := c.answer(req); got.err != nil || !strings.Contains(got.result, `"facade":{"state":"ready"`) {
		t.Fatalf("%+v", got)
	}
	var id string
	for id = range c.sessions {
	}
	req = c.promptSoon(id, "hello")
	kerneltest.Eventually(t, "the prompt is answered", func() bool { return c.answer(req) != nil })
	want := fmt.Sprintf("dir=%s literal=true shown=false home=", filepath.Join(workdir, "inner"))
	if said := c.heard(); !strings.Contains(strings.Join(said, "\n"), want) {
		t.Errorf("the agent said %q, want %q", said, want)
	}
	if info, final := p.s.Learned().Now(); !final || info == nil || !info.MCP.HTTP {
		t.Errorf("learned %+v, %v", info, final)
	}
	c.close(id)
	kerneltest.Eventually(t, "nothing is left", func() bool { return p.s.Living() == 0 && p.s.Agents() == 0 && p.s.Tokens().Live() == 0 })
}
