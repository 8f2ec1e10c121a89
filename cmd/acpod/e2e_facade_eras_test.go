package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// stateless is a request of the version without a handshake: what it says of itself stands in each of them, and in the headers too.
// params is an object without its _meta; meta are further members of that.
func (a agentClient) stateless(method, params, capabilities, meta string) *http.Request {
	a.t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &object); err != nil {
		a.t.Fatal(err)
	}
	object["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + meta + `}`)
	raw, err := json.Marshal(object)
	if err != nil {
		a.t.Fatal(err)
	}
	request := a.request(context.Background(), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, raw))
	request.Header.Set("MCP-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", method)
	var named struct{ Name string }
	if json.Unmarshal([]byte(params), &named) == nil && method == "tools/call" {
		request.Header.Set("Mcp-Name", named.Name)
	}
	return request
}

// Both eras are served at one address: by a handshake, or by what each request says, with the codes and the statuses of its version.
func TestBothErasAreServedAtOnce(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	agent := e.facadeOf(e.open(newServer("katashiro", genA, "katashiro.click")))
	search := `{"name":"search_capabilities","arguments":{}}`
	click := `{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"n":9007199254740993}}}`
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, row := range []struct {
		name, method, params string
		change               func(*http.Request)
		status               int
		contains             string
	}{
		{"discover", "server/discover", `{}`, nil, 200, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18"`},
		{"discover says for how long", "server/discover", `{}`, nil, 200, `"cacheScope":"public"`},
		{"the list", "tools/list", `{}`, nil, 200, `"ttlMs":300000,"cacheScope":"public","tools":[{"name":"search_capabilities"`},
		{"no prompts", "prompts/list", `{}`, nil, 200, `"cacheScope":"public","prompts":[]`},
		{"no resources", "resources/list", `{}`, nil, 200, `"resources":[]`},
		{"a search", "tools/call", search, nil, 200, `"resultType":"complete"`},
		{"a call", "tools/call", click, nil, 200, `{\"n\":9007199254740993}`},
		{"the handshake", "initialize", `{}`, nil, 404, `-32601`},
		{"ping", "ping", `{}`, nil, 404, `-32601`},
		{"a level", "logging/setLevel", `{"level":"debug"}`, nil, 404, `-32601`},
		{"a subscription", "subscriptions/listen", `{"notifications":{}}`, nil, 404, `-32601`},
		{"an unknown tool", "tools/call", `{"name":"katashiro.click"}`, nil, 400, `-32602`},
		{"another method in the header", "tools/list", `{}`, header("Mcp-Method", "tools/call"), 400, `-32020`},
		{"no method in the header", "tools/list", `{}`, func(r *http.Request) { r.Header.Del("Mcp-Method") }, 400, `-32020`},
		{"another tool in the header", "tools/call", click, header("Mcp-Name", "search_capabilities"), 400, `-32020`},
		{"no tool in the header", "tools/call", click, func(r *http.Request) { r.Header.Del("Mcp-Name") }, 400, `-32020`},
		{"the tool in base64", "tools/call", search, header("Mcp-Name", "=?base64?c2VhcmNoX2NhcGFiaWxpdGllcw==?="), 200, `"resultType":"complete"`},
		{"another version in the header", "tools/list", `{}`, header("MCP-Protocol-Version", "2025-11-25"), 400, `-32020`},
		{"no version in the header", "tools/list", `{}`, func(r *http.Request) { r.Header.Del("MCP-Protocol-Version") }, 400, `-32020`},
		{"a stale session", "tools/call", click, header("Mcp-Session-Id", "of another life"), 200, `"resultType":"complete"`},
		{"a stream to be resumed", "tools/list", `{}`, header("Last-Event-ID", "7"), 400, `-32020`},
	} {
		request := agent.stateless(row.method, row.params, `{}`, "")
		if row.change != nil {
			row.change(request)
		}
		response, body := agent.do(request)
		if response.StatusCode != row.status || !strings.Contains(string(body), row.contains) || !strings.HasPrefix(string(body), `{"jsonrpc":"2.0","id":7,`) {
			t.Errorf("%s: %d, not %d with %s: %.400s", row.name, response.StatusCode, row.status, row.contains, body)
		}
		if response.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: a session id was given", row.name)
		}
	}
	for version, want := range map[string]string{"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2027-01-01": "2025-11-25"} {
		_, body := agent.do(agent.request(context.Background(), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, version)))
		if !strings.Contains(string(body), `"protocolVersion":"`+want+`"`) || strings.Contains(string(body), "ttlMs") {
			t.Errorf("%s: %s", version, body)
		}
		request := agent.request(context.Background(), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+click+`}`)
		request.Header.Set("MCP-Protocol-Version", want)
		if _, body := agent.do(request); !strings.Contains(string(body), `{\"n\":9007199254740993}`) || strings.Contains(string(body), "resultType") {
			t.Errorf("a call in %s: %s", want, body)
		}
	}
	for _, version := range []string{"2027-01-01", "2025-01-01", "1"} { // with the request's id, and what may be used
		request := agent.request(context.Background(), `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
		request.Header.Set("MCP-Protocol-Version", version)
		if response, body := agent.do(request); response.StatusCode != 400 || !strings.Contains(string(body), `"id":"x","error":{"code":-32022`) || !strings.Contains(string(body), `"supported":["2026-07-28"`) {
			t.Errorf("%s: %d %s", version, response.StatusCode, body)
		}
	}
	_, list := agent.do(agent.request(context.Background(), `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`))
	if len(list) > 2000 || !strings.Contains(string(list), `"anthropic/maxResultSizeChars"`) {
		t.Errorf("tools/list has %d bytes: %s", len(list), list)
	}
}
