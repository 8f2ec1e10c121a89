//go:build !race

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A result of exactly result_bytes passes, one more does not; the frame may be larger than either.
func TestAResultAtTheByte(t *testing.T) {
	t.Parallel()
	const limit = 6 << 20
	p := startPlain(t, with(leaving(noAgent), "limits.result_bytes", `"6MiB"`))
	e := dial(t, p)
	server := readsAndWrites(genA)
	size := limit
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return sizedResult(size), nil, false }
	agent := e.facadeOf(e.open(server))
	for _, name := range []string{"katashiro.click", "katashiro.read_dom"} {
		size = limit
		if result := agent.execute(name, `{}`); result.IsError || len(result.raw) < limit {
			t.Errorf("%s at the limit: %.300s", name, result.raw)
		}
		size = limit + 1
		result := agent.execute(name, `{}`)
		want := map[string]string{"katashiro.click": "outcome_unknown", "katashiro.read_dom": "overloaded"}[name]
		if result.refusal() != want || !strings.Contains(result.raw, `"acpod.dev/overload":{"scope":"result_bytes","limit":6291456,"used":6291457,"size":6291457}`) {
			t.Errorf("%s, one byte more: %.400s", name, result.raw)
		}
	}
	e.hangUp()
	p.rest()
}

// A body of exactly request_bytes is served, one more is 413, whether its length is told or not.
func TestAnHTTPBodyAtTheByte(t *testing.T) {
	t.Parallel()
	p := startPlain(t, leaving(noAgent))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"text":"`, `"}}}}`
	send := func(size int, chunked bool) (int, []byte) {
		request := agent.request(context.Background(), padded(head, tail, size))
		if chunked {
			request.Body, request.ContentLength, request.GetBody = io.NopCloser(strings.NewReader(padded(head, tail, size))), -1, nil
		}
		response, body := agent.do(request)
		return response.StatusCode, body
	}
	for _, chunked := range []bool{false, true} {
		for range 3 {
			if status, body := send(1<<20, chunked); status != http.StatusOK || len(body) < 1<<20-1024 || strings.Contains(string(body), "isError") {
				t.Errorf("exactly 1 MiB, chunked %v: %d %.300s", chunked, status, body)
			}
			if status, body := send(1<<20+1, chunked); status != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "request_bytes") {
				t.Errorf("one byte more, chunked %v: %d %.300s", chunked, status, body)
			}
		}
	}
	if n := p.refusals("request_bytes"); n != 6 {
		t.Errorf("%d were counted", n)
	}
	e.hangUp()
	p.rest()
}

// A line of an agent of exactly agent_line_bytes passes, one more is skipped and counted; what comes behind it is read.
func TestAnAgentsLineAtTheByte(t *testing.T) {
	t.Parallel()
	p := startPlain(t, with(attackerConfig(t, leaving(baseConfig)), "limits.agent_line_bytes", `"2MiB"`, "limits.outbound_bytes", `"4MiB"`))
	e := dial(t, p)
	session := e.open()
	for _, row := range []struct{ size, skipped int }{{2<<20 - 1, 0}, {2 << 20, 0}, {2<<20 + 1, 1}, {2 << 20, 1}} {
		streamed, answer := e.prompt(session, fmt.Sprint("/line ", row.size))
		if stopReason(answer) != "end_turn" {
			t.Fatalf("%d: %.300s", row.size, answer.raw)
		}
		if over := row.size > 2<<20; over != (streamed == "") || !over && (len(streamed) < row.size-256 || strings.Trim(streamed, "p") != "") {
			t.Errorf("a line of %d bytes: %d were streamed", row.size, len(streamed))
		}
		if n := p.refusals("long_line"); n != int64(row.skipped) {
			t.Errorf("behind a line of %d bytes %d are counted as skipped", row.size, n)
		}
	}
}

// What finds no room in a stream is told so: a frame of exactly outbound_bytes leaves, one more is refused with its account.
func TestOutboundAtTheByte(t *testing.T) {
	t.Parallel()
	const limit = 512 << 10
	p := startPlain(t, with(leaving(noAgent), "limits.agent_line_bytes", `"64KiB"`, "limits.outbound_bytes", `"512KiB"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return textResult("taken"), nil, false }
	agent := e.facadeOf(e.open(server))
	size := func() int { // of the frame of the last call
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.frames[len(e.frames)-1].raw)
	}
	call := func(n int) toolResult { return agent.execute("katashiro.click", `{"t":"`+strings.Repeat("p", n)+`"}`) }
	call(100_000) // numbers of five digits from here on: the frames of the next calls have the same rest
	rest := size() - 100_000
	if result := call(limit - rest); result.text() != "taken" || size() != limit {
		t.Errorf("a frame of exactly outbound_bytes (it had %d): %.300s", size(), result.raw)
	}
	result := call(limit - rest + 1)
	if result.refusal() != "overloaded" || !strings.Contains(result.raw, `"scope":"outbound_bytes","limit":524288,"used":0,"size":524289,"retry_after_ms":`) {
		t.Errorf("one byte more: %.400s", result.raw)
	}
	if result := call(1); result.text() != "taken" {
		t.Errorf("the call after it: %.300s", result.raw)
	}
	e.hangUp()
	p.rest()
}

// A schema of exactly tool_schema_bytes is offered, one more is left out and counted; of tools_per_server the same by number.
func TestToolsAtTheirLimits(t *testing.T) {
	t.Parallel()
	const limit = 8 << 10
	p := startPlain(t, with(leaving(noAgent), "limits.tool_schema_bytes", `"8KiB"`, "limits.tools_per_server", "5"))
	tool := func(name string, size int) object {
		return object{"name": name, "inputSchema": json.RawMessage(padded(`{"type":"object","description":"`, `"}`, size))}
	}
	e := dial(t, p)
	fitting, numbered := newServer("other", genA), newServer("katashiro", genA)
	fitting.tools = []object{tool("under", limit-1), tool("exact", limit), tool("over", limit+1), tool("small", 100)}
	for _, name := range []string{"click", "type", "navigate", "screenshot"} {
		numbered.tools = append(numbered.tools, tool("katashiro."+name, 100))
	}
	numbered.tools = append(numbered.tools, tool("katashiro.read_dom", 100)) // the fifth
	agent := e.facadeOf(e.open(fitting, numbered))
	if got := fmt.Sprint(agent.names()); got != "[exact katashiro.click katashiro.navigate katashiro.read_dom katashiro.screenshot katashiro.type small under]" {
		t.Errorf("offered are %s", got)
	}
	if got := p.refusals("tool_schema_bytes"); got != 1 {
		t.Errorf("%d tools are counted as left out for their schema", got)
	}
	if got := p.refusals("tools_per_server"); got != 0 {
		t.Errorf("%d tools are counted as too many", got)
	}
	many := newServer("other", genA)
	for n := range 6 {
		many.tools = append(many.tools, tool(fmt.Sprint("t", n), 100))
	}
	agent = e.facadeOf(e.openMore(many))
	if got := fmt.Sprint(agent.names()); got != "[t0 t1 t2 t3 t4]" {
		t.Errorf("offered are %s", got)
	}
	if got := p.refusals("tools_per_server"); got == 0 {
		t.Error("a list that was cut short is not counted")
	}
}

// What a session or a connection cannot hold is refused with the account, its limit, its use and when to retry; an answer is
// never refused.
func TestAccountsNameThemselves(t *testing.T) {
	t.Parallel()
	const session = 9 << 20 // one line of an agent and one result
	p := startPlain(t, with(leaving(noAgent), "limits.agent_line_bytes", `"1MiB"`, "limits.session_bytes", `"9MiB"`, "limits.connection_bytes", `"20MiB"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return sizedResult(7 << 20), nil, false }
	id := e.open(server)
	agent := e.facadeOf(id)
	held := agent.callSlowly(p, "katashiro.click")
	held.first()
	result := agent.execute("katashiro.click", `{"n":2}`) // it finds no room for its result
	if result.refusal() != "outcome_unknown" || !strings.Contains(result.raw, `"scope":"session_bytes","limit":9437184,"used":`) || !strings.Contains(result.raw, `"retry_after_ms":`) {
		t.Errorf("a result without room: %.500s", result.raw)
	}
	for range 8 { // the session has no room for such arguments: not sent
		status, body := agent.big(3 << 19)
		if status != http.StatusRequestEntityTooLarge { // over request_bytes: the limit that is judged first
			t.Errorf("%d %.300s", status, body)
		}
	}
	status, body := agent.big(1<<20 - 512)
	if status != http.StatusOK && (status != http.StatusServiceUnavailable || !strings.Contains(string(body), "session_bytes has ")) {
		t.Errorf("a body without room: %d %.300s", status, body)
	}
	if node, _ := p.tree().find("/" + treeName(id)); node.Account.Used > session || node.Account.Used < 7<<20 {
		t.Errorf("the session uses %d of %d", node.Account.Used, node.Account.Limit)
	}
	if found := agent.search(`{}`); found.Total != 1 {
		t.Errorf("a search beside it: %+v", found)
	}
	if status, got := held.read(); status != http.StatusOK || len(got) < 7<<20 {
		t.Errorf("the held result: %d, %d bytes", status, len(got))
	}
	e.hangUp()
	p.rest()
}

// big sends a call whose body has about that many bytes.
func (a agentClient) big(size int) (int, []byte) {
	a.t.Helper()
	response, body := a.do(a.request(context.Background(), padded(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"text":"`, `"}}}}`, size)))
	return response.StatusCode, body
}
