package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheFacadeIsStatelessAndExactAboutHTTP(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	a := anonymous(t, p)
	initialize := `{"jsonrpc":"2.0","id":"i-1","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	search := `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"search_capabilities","arguments":{}}}`
	for _, row := range []struct {
		name, method, body string
		change             func(*http.Request)
		status             int
		contains           string
	}{
		{"initialize", "POST", initialize, nil, 200, `"oab-mcp-facade"`},
		{"a bare tools/call, its id kept to the digit", "POST", search, nil, 200, `"id":9007199254740993`},
		{"a stale session id", "POST", search, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "stale-1") }, 200, `"result"`},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{"GET", "GET", "", nil, 405, ""},
		{"DELETE", "DELETE", "", nil, 405, ""},
		{"PUT", "PUT", "{}", nil, 405, ""},
		{"OPTIONS", "OPTIONS", "", nil, 405, ""},
		{"HEAD", "HEAD", "", nil, 405, ""},
		{"not JSON by its type", "POST", search, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, ""},
		{"JSON with a charset", "POST", search, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, 200, `"result"`},
		{"too large", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, nil, 413, ""},
		{"too large, chunked", "POST", strings.Repeat(" ", 1<<20) + search, func(r *http.Request) { r.ContentLength = -1 }, 413, ""},
		{"an unknown version", "POST", search, func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "1999-01-01") }, 400, ""},
		{"a foreign origin", "POST", search, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, ""},
		{"the null origin", "POST", search, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, ""},
		{"a rebinding host", "POST", search, func(r *http.Request) { r.Host = "evil.example" }, 403, ""},
		{"a cross-site fetch", "POST", search, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, ""},
		{"not JSON", "POST", `{"jsonrpc":`, nil, 400, "-32700"},
		{"tools/list", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 200, "execute_capability"},
		{"an unknown tool", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, nil, 200, "-32602"},
	} {
		request := a.request(context.Background(), row.body)
		request.Method = row.method
		if row.change != nil {
			row.change(request)
		}
		response, body := a.do(request)
		if response.StatusCode != row.status || !strings.Contains(string(body), row.contains) {
			t.Errorf("%s: %d, not %d: %.300s", row.name, response.StatusCode, row.status, body)
		}
		if row.status == 405 && response.Header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow is %q", row.name, response.Header.Get("Allow"))
		}
		if id := response.Header.Get("Mcp-Session-Id"); id != "" {
			t.Errorf("%s: a session id was given: %q", row.name, id)
		}
	}
	request := a.request(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if _, body := a.do(request); len(body) > 2100 || strings.Count(string(body), `"inputSchema"`) != 2 {
		t.Errorf("tools/list has %d bytes: %s", len(body), body)
	}
}

// A session id of a former life of the pod is of no consequence: the call runs, once, under its own id.
func TestAStaleSessionIDAfterARestartIsServed(t *testing.T) {
	t.Parallel()
	first := startPod(t, noAgent)
	e := dial(t, first)
	old := e.facadeOf(e.open(newServer("katashiro", genA, "katashiro.click")))
	first.stop()

	second := startPod(t, noAgent)
	e = dial(t, second)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	request := agent.request(context.Background(), `{"jsonrpc":"2.0","id":"mine-77","method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{}}}}`)
	request.Header.Set("Mcp-Session-Id", "from-before")
	response, body := agent.do(request)
	if response.StatusCode != 200 || !strings.Contains(string(body), `"id":"mine-77"`) || !strings.Contains(string(body), "katashiro.click {}") || server.callCount() != 1 {
		t.Errorf("%d %s after %d calls", response.StatusCode, body, server.callCount())
	}
	stale := agentClient{t, agent.url, old.token}
	if result := stale.execute("katashiro.click", `{}`); result.refusal() != "unknown" || server.callCount() != 1 {
		t.Errorf("a token of a former pod: %s", result.raw)
	}
}

// A closed request ends a reading call at once; a writing one runs on, and the same call again gets its result.
func TestWhatAClosedRequestDoesDependsOnTheTool(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.tools = append(server.tools, object{"name": "katashiro.read_dom", "inputSchema": object{"type": "object"}, "annotations": object{"readOnlyHint": true}})
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }
	agent := e.facadeOf(e.open(server))
	left := int64(0)
	abort := func(name string) {
		t.Helper()
		before := server.callCount()
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			request := agent.request(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":%q,"arguments":{"once":1}}}}`, name))
			if response, err := http.DefaultClient.Do(request); err == nil {
				response.Body.Close()
			}
		}()
		e.await("the call at the client", func() bool { return server.callCount() == before+1 })
		cancel()
		<-gone
		// A result that arrives before the pod has seen the closing goes to the one who has gone.
		left++
		p.await("the news of the closing", func() bool {
			facade, _ := p.tree().find("pod/facade")
			return facade.Refused["client_gone"] == left
		})
	}

	abort("katashiro.read_dom")
	e.await("the cancel of the reading call", func() bool { return server.cancelled() == 2 }) // generation A has two words for it

	cancels := server.cancelled()
	abort("katashiro.click")
	id := e.lastCallID()
	p.await("the orphan at the desk", func() bool { // an answer before that would be the first caller's, who cannot read it any more
		desk, _ := p.tree().find("/desk")
		return desk.Attrs["orphans"] == 1.0
	})
	again := make(chan toolResult, 1)
	go func() { again <- agent.execute("katashiro.click", `{"once":1}`) }()
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"clicked once"}]}}`, id))
	if result := <-again; result.text() != "clicked once" {
		t.Errorf("the same call again: %s", result.raw)
	}
	if server.callCount() != 2 || server.cancelled() != cancels {
		t.Errorf("%d calls reached the client, %d cancels; want one of each tool and none of the writing one", server.callCount(), server.cancelled()-cancels)
	}
	// Another call with other arguments is a call of its own.
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return textResult("fresh"), nil, false }
	if result := agent.execute("katashiro.click", `{"once":2}`); result.text() != "fresh" {
		t.Errorf("another call: %s", result.raw)
	}
}

// lastCallID is the outer id of the newest tools/call that the pod sent.
func (e *extension) lastCallID() string {
	frames := append(e.received("mcp/message"), e.received("_mcp/message")...)
	for i := len(frames) - 1; i >= 0; i-- {
		if strings.Contains(frames[i].raw, `"tools/call"`) {
			return string(frames[i].ID)
		}
	}
	e.t.Fatal("no call was sent")
	return ""
}

func TestNobodyCancelsAnothersCall(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e, f := dial(t, p), dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return nil, nil, true }
	mine := e.facadeOf(e.open(server))
	theirs := f.facadeOf(f.open(newServer("katashiro", genA, "katashiro.click")))
	result := make(chan toolResult, 1)
	go func() { result <- mine.execute("katashiro.click", `{}`) }() // its request id is 7
	e.await("the call at the client", func() bool { return server.callCount() == 1 })
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	for _, other := range []agentClient{theirs, anonymous(t, p)} {
		request := other.request(context.Background(), cancel)
		request.Header.Set("Mcp-Session-Id", "guessed")
		if response, _ := other.do(request); response.StatusCode != http.StatusAccepted {
			t.Errorf("a cancel of somebody else: %d", response.StatusCode)
		}
	}
	// Nothing has reached the client: the next thing that it sees is the cancel of the caller itself.
	if n := server.cancelled(); n != 0 {
		t.Errorf("%d cancels reached the client", n)
	}
	mine.do(mine.request(context.Background(), cancel))
	e.await("the caller's own cancel", func() bool { return server.cancelled() > 0 })
	select {
	case got := <-result:
		if got.refusal() != "outcome_unknown" {
			t.Errorf("the cancelled call: %s", got.raw)
		}
	case <-time.After(patience):
		t.Error("the cancelled call was never answered")
	}
}
