package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// addressIn is the url of the entry `openab` in an agent's configuration, "" when there is none.
func addressIn(file string) string {
	var config struct {
		McpServers map[string]struct{ URL string }
	}
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &config) != nil {
		return ""
	}
	return config.McpServers["openab"].URL
}

func TestASessionsProxyShowsItsToolsToItsAgentAloneAndEndsWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("one/x", "")
	b.write("two/x", "")
	p := startPod(t, b.config("agent.delivery", `"proxy"`, "agent.profile", `"claude"`))
	e := dial(t, p)
	e.hello()
	server, other := newServer("katashiro", genA, "katashiro.click"), newServer("other", genA, "other.ping")
	one, said := e.openAt(filepath.Join(b.work, "one"), server)
	if said.State != "ready" || said.Delivery != "proxy" {
		t.Fatalf("%+v", said)
	}
	two, _ := e.openAt(filepath.Join(b.work, "two"), other)
	e.ready(one, "katashiro")
	e.ready(two, "other")
	file := filepath.Join(b.work, "one", ".mcp.json")
	address := addressIn(file)
	if !strings.HasPrefix(address, "http://127.0.0.1:") || address == "http://"+p.Facade+"/mcp" {
		t.Fatalf("the entry names %q", address)
	}
	if _, there := p.tree().find(treeName(one) + "/proxy"); !there {
		t.Error("the session has no child proxy")
	}

	mine := p.callerOf(one)
	text, _ := os.ReadFile(file)
	if strings.Contains(string(text), mine.token) {
		t.Error("the token stands in the file")
	}
	mine.url = address
	list := func(a agentClient, change func(*http.Request)) (int, string) {
		request := a.request(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if change != nil {
			change(request)
		}
		response, body := a.do(request)
		return response.StatusCode, string(body)
	}
	if status, body := list(mine, nil); status != 200 || !strings.Contains(body, `"name":"katashiro.click"`) || strings.Contains(body, "other.ping") || strings.Contains(body, "execute_capability") {
		t.Errorf("%d %s", status, body)
	}
	if got := mine.tool("katashiro.click", `{"x":1}`); got.text() != `katashiro.click {"x":1}` || server.callCount() != 1 {
		t.Errorf("%s", got.raw)
	}
	theirs := p.callerOf(two)
	theirs.url = address
	for name, row := range map[string]struct {
		who    agentClient
		change func(*http.Request)
		status int
	}{
		"the other session's token": {theirs, nil, 401},
		"no token":                  {agentClient{t, address, ""}, nil, 401},
		"a foreign host":            {mine, func(r *http.Request) { r.Host = "evil.example" }, 403},
		"a foreign origin":          {mine, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
	} {
		if status, body := list(row.who, row.change); status != row.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if !strings.Contains(p.log.String(), "tool=katashiro.click") {
		t.Error("the call is in no audit")
	}

	e.call("session/close", object{"sessionId": one})
	p.await("the end of the address and of its entry", func() bool {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/mcp"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil && addressIn(file) == ""
	})
	theirs.url = addressIn(filepath.Join(b.work, "two", ".mcp.json"))
	if got := theirs.tool("other.ping", `{}`); got.text() != "other.ping {}" {
		t.Errorf("the other session's: %s", got.raw)
	}
	e.call("session/close", object{"sessionId": two})
	e.hangUp()
	p.rest()
}
