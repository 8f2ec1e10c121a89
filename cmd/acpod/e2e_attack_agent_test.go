//go:build !race

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// attackerMode makes this test binary an agent that writes what no sound agent writes.
const attackerMode = "ACPOD_E2E_ATTACKER"

func init() {
	if os.Getenv(attackerMode) != "" {
		os.Exit(runAttacker())
	}
}

// attackerConfig is a config whose agent is this test binary as an attacker.
func attackerConfig(t *testing.T, config string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return with(config, "agent.delivery", `"acp"`, "agent.command", fmt.Sprintf("[%q]", self), "agent.env", fmt.Sprintf("{%s = \"1\"}", attackerMode))
}

// runAttacker answers prompts by their text: `/line N` writes one update whose line has exactly N bytes, `/gush N` writes N
// bytes without a line break, and all else is echoed.
func runAttacker() int {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	say := func(format string, values ...any) {
		fmt.Fprintf(out, format+"\n", values...)
		out.Flush()
	}
	const head, tail = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"theirs","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`, `"}}}}`
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var f struct {
			ID     json.RawMessage
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			return 91
		}
		switch f.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}`, f.ID)
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"theirs"}}`, f.ID)
		case "session/prompt":
			text, n := f.Params.Prompt[0].Text, 0
			switch {
			case strings.HasPrefix(text, "/line "):
				fmt.Sscan(text[len("/line "):], &n)
				say("%s", padded(head, tail, n))
			case strings.HasPrefix(text, "/gush "):
				fmt.Sscan(text[len("/gush "):], &n)
				piece := strings.Repeat("g", 1<<20)
				for ; n > 0; n -= len(piece) {
					out.WriteString(piece[:min(n, len(piece))])
				}
				say("")
			default:
				say("%s", head+"echo: "+strings.ReplaceAll(text, "\n", " ")+tail)
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, f.ID)
		}
	}
	return 0
}
