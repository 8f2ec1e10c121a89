package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// The operator's patterns are taken out of what a tool answers, however it is escaped; data of images, numbers and all other bytes are as they came.
func TestTheOperatorsPatternsAreTakenOutOfResults(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(noAgent, "mcp.redact", `['AKIA[A-Z0-9]{16}', '\b\d{3}-\d{2}-\d{4}\b']`))
	_, server, _, agent := offer(p, "", pinTool("read", "reads"), pinTool("plain", "reads"))
	server.run = func(name string, _ json.RawMessage) (any, *rpcError, bool) {
		if name == "plain" {
			return json.RawMessage(`{"content":[{"type":"text","text":"1-2 \u003cb> \ud83d\ude00"}],"structuredContent":{"n":9007199254740993}}`), nil, false
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"id 123-45-6789,\u0041KIAIOSFODNN7EXAMPLE \u003c"},{"type":"image","data":"AKIAIOSFODNN7EXAMPLE","mimeType":"image/png"}],` +
			`"structuredContent":{"n":9007199254740993,"key":["AKIAIOSFODNN7EXAMPLE"]},"_meta":{"x":"123-45-6789"}}`), nil, false
	}
	got := agent.ask("read", `{}`).raw
	for _, part := range []string{`"text":"id ***,*** \u003c"`, `"data":"AKIAIOSFODNN7EXAMPLE"`, `"structuredContent":{"n":9007199254740993,"key":["***"]}`, `"x":"***"`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	if got := agent.ask("plain", `{}`).raw; !strings.Contains(got, `"text":"1-2 \u003cb> \ud83d\ude00"`) || !strings.Contains(got, `{"n":9007199254740993}`) {
		t.Errorf("what has no secret came as %s", got)
	}
}

// A pattern that would take out what is no secret stops the start, in one line that says which.
func TestAPatternThatTakesOutTooMuchStopsTheStart(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{`a*`, `x|`, `.`} {
		code, _, text := run(t, nil, "config", "check", "--config", mcpFile(t, with(noAgent, "mcp.redact", `['AKIA[A-Z0-9]{16}', '`+pattern+`']`)))
		if code == 0 {
			p := launch(t, with(noAgent, "mcp.redact", `['AKIA[A-Z0-9]{16}', '`+pattern+`']`))
			<-p.ended
			text = p.log.String()
			if p.err == nil {
				t.Errorf("%q: the pod started", pattern)
			}
		}
		if !strings.Contains(text, "mcp.redact") || strings.Contains(text, "msg=listening") {
			t.Errorf("%q: %d %s", pattern, code, text)
		}
	}
}
