package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// file reads a file below the pod's home, where its state is; $XDG_STATE_HOME is not set.
func (p *pod) file(name string) []byte {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.home, ".local", name))
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// Names that differ only by case are two servers and two tools; names with odd characters are shown in another form, and are called by
// it and as they are; a name with controls in it is left out, with its siblings shown.
func TestOddNamesAreNames(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent+`
[[mcp.acp_servers]]
name = "Other"
tools = ["*"]
`)
	e := dial(t, p)
	lower := newServer("other", genA, "tool.x", "Tool.X", "tool/ü😀", `tool"\quote`, "..", ".x", "x.", "other.tool.x", strings.Repeat("n", 256))
	upper := newServer("Other", genB, "tool.x", "a b", "a\nb", "a\x1b[31mb", strings.Repeat("n", 257), "", "last")
	agent := e.facadeOf(e.open(lower, upper))
	for _, name := range []string{"Tool.X", "tool/ü😀", `tool"\quote`, "..", ".x", "x.", strings.Repeat("n", 256), "a b", "last"} {
		if result := agent.execute(name, `{"a":1}`); result.text() != name+` {"a":1}` {
			t.Errorf("%q: %.300s", name, result.raw)
		}
	}
	names := agent.names()
	if len(names) != len(slices.Compact(slices.Clone(names))) || len(names) != 12 {
		t.Errorf("%d names: %q", len(names), names)
	}
	calls := func(s *mcpServer, name string) int {
		before := s.callCount()
		agent.execute(name, "{}")
		return s.callCount() - before
	}
	if calls(upper, "tool.x")+calls(lower, "tool.x") != 1 {
		t.Error("the name that both published is not one of them")
	}
	if calls(upper, "Other.tool.x") != 1 {
		t.Errorf("the qualified name of the one: %q", names)
	}
	for _, unknown := range []string{"TOOL.X", "tool.x ", " tool.x", "OTHER.tool.x", "a  b", ""} {
		if result := agent.execute(unknown, "{}"); result.refusal() == "" {
			t.Errorf("%q was called: %s", unknown, result.raw)
		}
	}
}

// A server's list is bounded in tools, pages and bytes, and what is over is left out, with everything else there.
func TestAListOfToolsIsBounded(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	page := func(from, n int, next string) object {
		list := []object{}
		for i := range n {
			list = append(list, object{"name": fmt.Sprintf("other.n%05d", from+i), "inputSchema": object{"type": "object"}})
		}
		result := object{"tools": list}
		if next != "" {
			result["nextCursor"] = next
		}
		return result
	}
	for _, row := range []struct {
		name    string
		list    func(n int, cursor string) object // the n-th page
		total   int
		pages   int64 // asked for
		refused string
	}{
		{"ten thousand tools in one page", func(int, string) object { return page(0, 10_000, "") }, 256, 1, "tools_per_server"},
		{"exactly as many as there may be", func(int, string) object { return page(0, 256, "") }, 256, 1, ""},
		{"a page a tool without an end", func(n int, _ string) object { return page(n, 1, fmt.Sprint("c", n)) }, 100, 100, "tool_pages"},
		{"empty pages without an end", func(n int, _ string) object { return page(0, 0, fmt.Sprint("c", n)) }, 0, 100, "tool_pages"},
		{"a cursor that comes back", func(n int, _ string) object { return page(2*n, 2, fmt.Sprint("c", n%2)) }, 6, 3, "tool_cursor"},
		{"three pages", func(n int, cursor string) object {
			if want := []string{"", "a", "b"}[n]; cursor != want {
				return page(100, 50, "")
			}
			return page(10*n, 10, []string{"a", "b", ""}[n])
		}, 30, 3, ""},
		{"a schema over its limit beside a good one", func(int, string) object {
			result := page(0, 2, "")
			result["tools"].([]object)[0]["inputSchema"] = object{"description": strings.Repeat("x", 64<<10)}
			return result
		}, 1, 1, "tool_schema_bytes"},
		{"one name twice", func(int, string) object {
			result := page(0, 2, "")
			result["tools"].([]object)[1]["name"] = "other.n00000"
			return result
		}, 1, 1, ""},
		{"entries that are none", func(int, string) object {
			return object{"tools": []any{5, nil, "x", object{"name": "other.a"}, object{"name": "other.b", "inputSchema": object{}}}}
		}, 1, 1, "tool_malformed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := dial(t, p)
			server := newServer("other", genA)
			var pages atomic.Int64
			server.handshake = func(method string, params json.RawMessage) (any, *rpcError, bool, bool) {
				if method != "tools/list" {
					return nil, nil, false, false
				}
				var asked struct{ Cursor string }
				_ = json.Unmarshal(params, &asked)
				return row.list(int(pages.Add(1))-1, asked.Cursor), nil, false, true
			}
			session := e.open(server)
			agent := e.facadeOf(session)
			if got := agent.search(`{"limit":1,"detail":"names"}`); got.Total != row.total {
				t.Errorf("%d tools are shown, not %d", got.Total, row.total)
			}
			if n := pages.Load(); n != row.pages {
				t.Errorf("%d pages were asked for, not %d", n, row.pages)
			}
			node, _ := p.tree().find("/" + treeName(session) + "/tunnel-1")
			if row.refused != "" && node.Refused[row.refused] == 0 || row.refused == "" && len(node.Refused) != 0 {
				t.Errorf("counted %v", node.Refused)
			}
			e.call("session/close", object{"sessionId": session})
			e.hangUp()
		})
	}
	p.rest()
}

// A storm of list_changed makes one list run and one wait, and the last state is what is shown.
func TestAStormOfChangesFetchesTheListTwice(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("other", genA, "other.first")
	agent := e.facadeOf(e.open(server))
	var lists atomic.Int64
	server.snapshot(func() {
		server.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
			if method == "tools/list" && lists.Add(1) == 1 {
				return nil, nil, true, true // the first of them is answered below
			}
			return nil, nil, false, false
		}
	})
	change := fmt.Sprintf(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":%q,"method":"notifications/tools/list_changed"}}`, server.connected[0])
	e.write(change)
	e.await("the first list", func() bool { return lists.Load() == 1 })
	for range 200 {
		e.write(change)
	}
	server.snapshot(func() { server.tools = append(server.tools, object{"name": "other.second", "inputSchema": object{}}) })
	e.call("session/list", object{}) // the storm has been read
	messages := e.received("mcp/message")
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, messages[len(messages)-1].ID))
	p.await("the last state", func() bool { return slices.Equal(agent.names(), []string{"other.first", "other.second"}) })
	if n := lists.Load(); n != 2 {
		t.Errorf("the list was fetched %d times", n)
	}
}

// A connection id that is none, is too long, or is another server's of that socket fails the server and disturbs no other; an
// answer that comes twice, or after the end, opens nothing.
func TestConnectionIDsThatAreNone(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	for name, result := range map[string]any{
		"empty": object{"connectionId": ""}, "too long": object{"connectionId": strings.Repeat("x", 1025)}, "absent": object{}, "a number": object{"connectionId": 7},
		"null": nil, "a list": []any{}, "in use": object{"connectionId": "shared"}, "twice in the object": json.RawMessage(`{"connectionId":"a","connectionId":"b"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := dial(t, p)
			good, bad := newServer("katashiro", genA, "katashiro.click"), newServer("other", genA, "other.x")
			good.id, bad.id = "shared", "bad"
			good.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
				return object{"connectionId": "shared"}, nil, false, method == "mcp/connect"
			}
			bad.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
				return result, nil, false, method == "mcp/connect"
			}
			session := e.open(good)
			e.declare(bad)
			id := e.send("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{good.declaration(), bad.declaration()}})
			e.answer(id)
			if state := e.state(session, "other", "failed"); !strings.Contains(state.Reason, "connection") {
				t.Errorf("the reason is %q", state.Reason)
			}
			agent := e.facadeOf(session)
			if got := agent.execute("katashiro.click", `{}`); got.text() != "katashiro.click {}" {
				t.Errorf("the other server: %s", got.raw)
			}
			got := agent.search(`{}`)
			if got.Total != 1 || len(got.Unavailable) != 1 || got.Unavailable[0].Provider != "openab-browser" {
				t.Errorf("the search: %+v", got)
			}
			if ended := good.ended(); len(ended) != 0 {
				t.Errorf("the good one was ended: %v", ended)
			}
			if result := agent.execute("other.x", `{}`); result.refusal() != "detached" {
				t.Errorf("the failed server: %s", result.raw)
			}
		})
	}
	t.Run("answered twice", func(t *testing.T) {
		t.Parallel()
		e := dial(t, p)
		server := newServer("katashiro", genA, "katashiro.click")
		session := e.open(server)
		connects := e.received("mcp/connect")
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"connectionId":%q}}`, connects[0].ID, server.id+"#again"))
		agent := e.facadeOf(session)
		if got := agent.execute("katashiro.click", `{}`); got.text() != "katashiro.click {}" {
			t.Errorf("%s", got.raw)
		}
		e.call("session/close", object{"sessionId": session})
		e.await("its disconnect", func() bool { return len(server.ended()) > 0 })
		e.call("session/list", object{})
		if ended := server.ended(); len(ended) != 1 || ended[0] != server.connected[0] {
			t.Errorf("ended %v", ended)
		}
	})
}

// A server that has gone stays listed as detached, keeps its names when it comes back under a new id, and a list that it
// answers after its end is nobody's.
func TestNamesOutliveTheirServersConnection(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	first, second := newServer("katashiro", genA, "katashiro.click", "katashiro.type"), newServer("other", genA, "katashiro.click", "solo")
	session := e.open(first) // it is there first, so the short name is its own
	e.call("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": e.declare(first, second)})
	e.ready(session, "other")
	agent := e.facadeOf(session)
	names := agent.names()
	if !slices.Equal(names, []string{"katashiro.click", "katashiro.type", "other.katashiro.click", "solo"}) {
		t.Fatalf("%q", names)
	}
	withdraw := func(keep ...*mcpServer) {
		t.Helper()
		e.call("session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": e.declare(keep...)})
	}
	withdraw(second)
	e.await("its disconnect", func() bool { return len(first.ended()) == 1 })
	p.await("detached", func() bool {
		found := agent.search(`{}`).Capabilities
		return len(found) == 4 && found[0].Availability == "detached" && found[2].Availability == "ready"
	})
	if result := agent.execute("katashiro.click", `{}`); result.refusal() != "detached" || !strings.Contains(result.text(), "katashiro") || second.callCount() != 0 {
		t.Errorf("a call of one that has gone: %s", result.raw)
	}
	if result := agent.execute("other.katashiro.click", `{}`); result.text() != "katashiro.click {}" || second.callCount() != 1 {
		t.Errorf("the qualified name of the other: %s", result.raw)
	}
	again := newServer("katashiro", genB, "katashiro.click") // under a new id, in another generation, with one tool less
	withdraw(second, again)
	e.ready(session, "katashiro")
	p.await("the new list", func() bool {
		return slices.Equal(agent.names(), []string{"katashiro.click", "other.katashiro.click", "solo"})
	})
	if result := agent.execute("katashiro.click", `{}`); result.text() != "katashiro.click {}" || again.callCount() != 1 || first.callCount() != 0 {
		t.Errorf("the name after it came back: %s", result.raw)
	}
	if result := agent.execute("katashiro.katashiro.click", `{}`); result.text() != "katashiro.click {}" {
		t.Errorf("its qualified form: %s", result.raw)
	}

	// A list that is answered after the server was withdrawn changes nothing.
	slow := newServer("katashiro", genA)
	slow.handshake = func(method string, _ json.RawMessage) (any, *rpcError, bool, bool) {
		return nil, nil, true, method == "tools/list"
	}
	withdraw(second, slow)
	var list frame
	e.await("its list's request", func() bool {
		for _, f := range e.frames {
			if strings.Contains(f.raw, `"tools/list"`) {
				list = f
			}
		}
		return strings.Contains(list.raw, slow.id)
	})
	withdraw(second)
	e.await("its disconnect", func() bool { return len(slow.ended()) == 1 })
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"katashiro.screenshot","inputSchema":{}}]}}`, list.ID))
	e.call("session/list", object{})
	if got := agent.names(); slices.Contains(got, "katashiro.screenshot") || len(got) != 3 {
		t.Errorf("after a late list: %q", got)
	}
}
