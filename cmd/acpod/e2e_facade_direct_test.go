package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// listed is what tools/list shows to a caller, by name.
func (a agentClient) listed() (names []string, tools map[string]string) {
	a.t.Helper()
	_, body := a.do(a.request(context.Background(), `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`))
	var answer struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		a.t.Fatalf("%v in %.300s", err, body)
	}
	tools = map[string]string{}
	for _, raw := range answer.Result.Tools {
		var tool struct{ Name string }
		_ = json.Unmarshal(raw, &tool)
		names, tools[tool.Name] = append(names, tool.Name), string(raw)
	}
	return names, tools
}

// called calls a tool of its own name.
func (a agentClient) called(tool, arguments string) answer {
	a.t.Helper()
	_, body := a.do(a.request(context.Background(), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)))
	got := answer{raw: string(body)}
	if err := json.Unmarshal(body, &got); err != nil {
		a.t.Errorf("%s: %v in %.300s", tool, err, body)
	}
	return got
}

// Chosen capabilities are tools of their own for whoever may execute them, through the same pipeline: of a configured server for everybody, of
// a client's for its session alone.
func TestDirectToolsAreListedForWhoMayExecuteThem(t *testing.T) {
	t.Parallel()
	typed := json.RawMessage(`{"name":"typed","title":"Typed","description":"takes a number","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"T"},"_meta":{"vendor/k":1}}`)
	files := newEvil(t, evilScript{Name: "files", Offer: []string{"params", "rich"}, Raw: []json.RawMessage{typed, plainTool("search_capabilities")}})
	config := with(providersConfig, "mcp.direct_tools", `["katashiro.click", "typed", "rich", "search_capabilities", "no.such"]`)
	p := startPod(t, config, mcpJSON(t, files))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click", "katashiro.type")
	agent, nobody := e.facadeOf(e.open(server)), anonymous(t, p)
	_, other := p.session()

	want := []string{"search_capabilities", "execute_capability", "typed", "rich", "files.search_capabilities"}
	until(t, "the configured server's tools", func() bool { names, _ := nobody.listed(); return slices.Equal(names, want) })
	if names, _ := other.listed(); !slices.Equal(names, want) {
		t.Errorf("another session is shown %v", names)
	}
	names, tools := agent.listed()
	if !slices.Equal(names, append([]string{"search_capabilities", "execute_capability", "katashiro.click"}, want[2:]...)) {
		t.Errorf("the session is shown %v", names)
	}
	if tools["typed"] != string(typed) {
		t.Errorf("not as it was published: %s", tools["typed"])
	}

	if got := agent.called("katashiro.click", `{"x": 1.0}`); got.Result.text() != `katashiro.click {"x": 1.0}` {
		t.Errorf("%s", got.raw)
	}
	if got := nobody.called("rich", `{}`); !strings.Contains(got.raw, richResult) {
		t.Errorf("not to the byte: %s", got.raw)
	}
	if got := nobody.called("files.search_capabilities", `{}`); got.Result.text() != `search_capabilities {}` {
		t.Errorf("the tool that has a built-in one's name: %s", got.raw)
	}
	if got := nobody.called("search_capabilities", `{}`); !strings.Contains(got.raw, `\"capabilities\":[`) {
		t.Errorf("the built-in tool: %s", got.raw)
	}
	for _, arguments := range []string{`{}`, `{"n":"1"}`, `{"n":1,"n":2}`, `{"n":1,"N":2}`, `[1]`} {
		if got := nobody.called("typed", arguments); got.Result.refusal() != "bad_arguments" {
			t.Errorf("%s: %s", arguments, got.raw)
		}
	}
	// For who may not see it there is no such tool, and nothing says otherwise.
	for _, c := range []struct {
		who  agentClient
		tool string
	}{{nobody, "katashiro.click"}, {other, "katashiro.click"}, {agent, "katashiro.type"}, {agent, "no.such"}, {agent, "params"}} {
		calls := server.callCount()
		got := c.who.called(c.tool, `{}`)
		if got.Error == nil || got.Error.Code != -32602 || !strings.Contains(got.raw, "unknown tool") || server.callCount() != calls {
			t.Errorf("%s: %s", c.tool, got.raw)
		}
	}
	p.stop()
	for event, tool := range map[string]string{
		"event=call ": "provider=openab-browser tool=katashiro.click ", "event=exit ": "provider=files tool=rich ", "event=refused ": "provider=files tool=typed ",
	} {
		if !slices.ContainsFunc(strings.Split(p.log.String(), "\n"), func(line string) bool { return strings.Contains(line, event) && strings.Contains(line, tool) }) {
			t.Errorf("the audit has no %s%s", event, tool)
		}
	}
}
