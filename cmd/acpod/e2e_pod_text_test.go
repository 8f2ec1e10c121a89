package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// hostileText is what a peer writes who wants to be taken for something else: markup, a record of its own, terminal control.
const hostileText = "<img src=x onerror=alert(1)>\n\x1b]0;owned\x07\x1b[31mred\u202e\u2028\r level=ERROR msg=forged"

// What an agent writes on stderr, and how it and its client call themselves, stays one harmless line in the log, in both
// formats of it, and in the tree.
func TestHostileTextOfAnAgentStaysOneLine(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			script := `printf '%s\n' "$HOSTILE" >&2; exec "$0" agent demo`
			config := with(baseConfig, "agent.command", fmt.Sprintf("[\"/bin/sh\", \"-c\", %q, %q]", script, builtBinary),
				"agent.env", fmt.Sprintf("{HOSTILE = %s}", tomlText(hostileText)))
			p := startPod(t, config, arguments("--log-level", "debug", "--log-format", format))
			e := dial(t, p)
			e.call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": hostileText, "version": hostileText}})
			server := newServer("katashiro", genA, "katashiro.click")
			server.run = func(string, json.RawMessage) (any, *rpcError, bool) {
				return nil, &rpcError{Code: -32603, Message: hostileText}, false
			}
			failing := newServer("other", genB, "x")
			failing.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
				return nil, &rpcError{Code: -32603, Message: hostileText}, false, method == "tools/list"
			}
			session := e.newSession(server, failing)
			e.ready(session, "katashiro")
			if reason := e.state(session, "other", "failed").Reason; !strings.Contains(reason, "<img") || strings.ContainsAny(reason, "\n\r\x1b\x07\u2028\u202e") {
				t.Errorf("the reason is %q", reason)
			}
			e.prompt(session, "/call katashiro.click {}\n/call "+strings.Join(strings.Fields(hostileText), "")+" {}")
			p.await("the stderr in the log", func() bool {
				return strings.Contains(p.log.String(), "onerror") && strings.Contains(p.log.String(), "stderr")
			})
			tree := string(p.get("http://" + p.Debug + "/debug/tree"))
			if !strings.Contains(tree, "img src=x") {
				t.Errorf("the tree does not show how the client calls itself, so this test looks at nothing: %.2000s", tree)
			}
			log := p.log.String()
			for where, text := range map[string]string{"log": log, "tree": tree, "metrics": string(p.get("http://" + p.Debug + "/metrics"))} {
				if strings.ContainsAny(text, "\x1b\x07\r\u2028\u202e") {
					t.Errorf("the %s holds control characters of a peer", where)
				}
			}
			// Markup may stand in JSON: no browser may take that for a page.
			if _, header, _ := fetch(t, "GET", "http://"+p.Debug+"/debug/tree", nil); !strings.HasPrefix(header.Get("Content-Type"), "application/json") || header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("the tree is served as %v", header)
			}
			shown := 0
			for line := range strings.Lines(log) {
				var record map[string]any
				switch sound := format == "json" && json.Unmarshal([]byte(line), &record) == nil || format == "text" && strings.HasPrefix(line, "time="); {
				case !sound:
					t.Errorf("a record was broken: %q", line)
				case strings.Contains(line, "forged"):
					shown++
				}
			}
			if shown == 0 {
				t.Error("nothing hostile was logged: the test has seen nothing")
			}
		})
	}
}

// tomlText writes a text as a basic string of TOML.
func tomlText(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r > '~':
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
