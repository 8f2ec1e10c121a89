package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// readsAndWrites is a server with a tool that only reads and one that may change something; it answers neither.
func readsAndWrites(generation generation) *mcpServer {
	server := newServer("katashiro", generation, "katashiro.click")
	server.tools = append(server.tools, object{"name": "katashiro.read_dom", "inputSchema": object{"type": "object"}, "annotations": object{"readOnlyHint": true}})
	server.run = heldCall
	return server
}

// inFlight is a call that an agent has open.
type inFlight struct {
	t      testing.TB
	result chan toolResult
	hangUp func()
}

// start makes a call with that request id and waits until it is at the client.
func (a agentClient) start(e *extension, server *mcpServer, id, arguments string) *inFlight {
	a.t.Helper()
	before := server.callCount()
	f := a.send(id, arguments)
	e.await("the call at the client", func() bool { return server.callCount() == before+1 })
	return f
}

// send makes a call and waits for nothing.
func (a agentClient) send(id, arguments string) *inFlight {
	ctx, cancel := context.WithCancel(context.Background())
	f := &inFlight{a.t, make(chan toolResult, 1), cancel}
	a.t.Cleanup(cancel)
	request := a.request(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"execute_capability","arguments":`+arguments+`}}`)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			f.result <- toolResult{raw: err.Error()}
			return
		}
		defer response.Body.Close()
		var answer struct{ Result toolResult }
		text, err := io.ReadAll(response.Body)
		_ = json.Unmarshal(text, &answer) // what a tool's own result has in odd places is looked at in the text
		answer.Result.raw = string(text)
		if err != nil {
			answer.Result.raw = err.Error()
		}
		f.result <- answer.Result
	}()
	return f
}

func (f *inFlight) wait() toolResult {
	f.t.Helper()
	select {
	case result := <-f.result:
		return result
	case <-time.After(patience):
		f.t.Fatal("the call was never answered")
		return toolResult{}
	}
}

// open tells whether the call has no answer yet.
func (f *inFlight) open() bool {
	select {
	case result := <-f.result:
		f.result <- result
		return false
	default:
		return true
	}
}

const (
	reading = `{"name":"katashiro.read_dom","arguments":{"n":1}}`
	writing = `{"name":"katashiro.click","arguments":{"n":1}}`
)

// cancelFrames are what a client of each generation is told when a call is to end.
var cancelFrames = map[generation][]string{
	genA: {"$/cancel_request", "mcp/cancel"}, genB: {"$/cancel_request"}, genC: {"$/cancel_request"}, gen0: {"$/cancel_request"},
}

// What ends a call ends it at once for its caller, with the right word and cause, and down to the client, in the client's own words.
func TestWhatEndsACallIsToldUpAndDownInEachGeneration(t *testing.T) {
	t.Parallel()
	for _, generation := range []generation{genA, genB, genC, gen0} {
		t.Run(string(generation), func(t *testing.T) {
			t.Parallel()
			patient, hasty := startPod(t, noAgent), startPod(t, with(noAgent, "mcp.tunnel_timeout", `"1s"`))
			ends := []struct {
				name   string
				end    func(e *extension, a agentClient, session string, f *inFlight)
				word   string // for the reading one
				cause  string
				silent bool // the client is not told, for it has gone
			}{
				{"a cancelled notification", func(_ *extension, a agentClient, _ string, _ *inFlight) {
					a.do(a.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}`))
				}, "cancelled", "the caller cancelled the request", false},
				{"session/cancel", func(e *extension, _ agentClient, session string, _ *inFlight) {
					e.notify("session/cancel", object{"sessionId": session})
				}, "cancelled", "the turn was cancelled", false},
				{"session/close", func(e *extension, _ agentClient, session string, _ *inFlight) {
					e.call("session/close", object{"sessionId": session})
				}, "cancelled", "", false},
				{"the deadline", func(*extension, agentClient, string, *inFlight) {}, "timeout", "in time", false},
				{"its client's end", func(e *extension, _ agentClient, _ string, _ *inFlight) { e.hangUp() }, "detached", "connection ended", true},
			}
			for _, row := range ends {
				p := patient
				if row.word == "timeout" {
					p = hasty
				}
				for _, arguments := range []string{reading, writing} {
					e := dial(t, p)
					server := readsAndWrites(generation)
					session := e.open(server)
					agent := e.facadeOf(session)
					call := agent.start(e, server, `"mine"`, arguments)
					outer := e.lastCallID()
					row.end(e, agent, session, call)
					result := call.wait()
					want := row.word
					if arguments == writing {
						want = "outcome_unknown"
					}
					if result.refusal() != want || !strings.Contains(result.text(), row.cause) {
						t.Errorf("%s of %s: %s, want %s with %q", row.name, arguments, result.raw, want, row.cause)
					}
					if row.silent {
						continue
					}
					e.await("the cancel at the client", func() bool { return server.cancelled() == len(cancelFrames[generation]) })
					server.snapshot(func() {
						for i, frame := range cancelFrames[generation] {
							if server.cancels[i] != frame+" "+outer {
								t.Errorf("%s: the client was told %v of call %s", row.name, server.cancels, outer)
							}
						}
					})
					// A late answer is of no consequence.
					e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"result":{"content":[]}}}`, outer))
					e.hangUp()
				}
			}
			for _, p := range []*pod{patient, hasty} {
				p.await("no call in flight", func() bool { return p.tree().Pod.CallsInFlight == 0 })
			}
		})
	}
}

// A cancel for a call that was answered, was never made or is somebody else's id does nothing, whatever its shape.
func TestACancelOfNothingIsTakenAndDoesNothing(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	agent.execute("katashiro.click", "{}") // its request id is 7
	held := readsAndWrites(genA).run
	server.snapshot(func() { server.run = held })
	call := agent.start(e, server, `"7"`, writing)
	for _, params := range []string{`{"requestId":7}`, `{"requestId":7,"reason":"x"}`, `{"requestId":null}`, `{"requestId":1.5}`, `{"requestId":{}}`, `{}`, `[]`, `null`,
		`{"requestId":"07"}`, `{"requestId":"` + strings.Repeat("7", 2000) + `"}`} {
		response, body := agent.do(agent.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+params+`}`))
		if response.StatusCode != 202 || len(body) != 0 {
			t.Errorf("%.60s: %d %s", params, response.StatusCode, body)
		}
	}
	response, _ := agent.do(agent.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled"}`))
	if response.StatusCode != 202 || !call.open() || server.cancelled() != 0 {
		t.Errorf("%d; the call is open: %v; the client was told %d times", response.StatusCode, call.open(), server.cancelled())
	}
	agent.do(agent.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`))
	if result := call.wait(); result.refusal() != "outcome_unknown" {
		t.Errorf("its own cancel: %s", result.raw)
	}
}

// An orphan ends with its window, and with a cancel of the request that it was; a join by the same call keeps it for as long as
// there is somebody.
func TestOrphansEndWithTheirWindowOrTheirCancel(t *testing.T) {
	t.Parallel()
	t.Run("window", func(t *testing.T) {
		t.Parallel()
		p := startPod(t, with(noAgent, "mcp.orphan_window", `"1s"`))
		e := dial(t, p)
		server := readsAndWrites(genA)
		agent := e.facadeOf(e.open(server))
		call := agent.start(e, server, "1", writing)
		call.hangUp()
		call.wait()
		e.await("the cancel at the end of the window", func() bool { return server.cancelled() == 2 })
		// Whoever comes after that has a call of its own.
		again := agent.start(e, server, "2", writing)
		if server.callCount() != 2 {
			t.Errorf("%d calls", server.callCount())
		}
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, e.lastCallID()))
		again.wait()
	})
	t.Run("no window", func(t *testing.T) {
		t.Parallel()
		p := startPod(t, with(noAgent, "mcp.orphan_window", `"0s"`))
		e := dial(t, p)
		server := readsAndWrites(genA)
		agent := e.facadeOf(e.open(server))
		begun := time.Now()
		call := agent.start(e, server, "1", writing)
		call.hangUp()
		call.wait()
		e.await("the cancel at once", func() bool { return server.cancelled() == 2 })
		if took := time.Since(begun); took > 25*time.Second {
			t.Errorf("after %v: the default of half a minute holds", took)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		p := startPod(t, noAgent)
		e := dial(t, p)
		server := readsAndWrites(genB)
		agent := e.facadeOf(e.open(server))
		call := agent.start(e, server, `"gone"`, writing)
		call.hangUp()
		call.wait()
		begun := time.Now()
		agent.do(agent.request(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}`))
		e.await("the cancel", func() bool { return server.cancelled() == 1 })
		if took := time.Since(begun); took > 25*time.Second {
			t.Errorf("after %v: that was the window's end", took)
		}
	})
	t.Run("join", func(t *testing.T) {
		t.Parallel()
		p := startPod(t, with(noAgent, "mcp.orphan_window", `"5s"`))
		e := dial(t, p)
		server := readsAndWrites(genA)
		agent := e.facadeOf(e.open(server))
		call := agent.start(e, server, "1", writing)
		id := e.lastCallID()
		call.hangUp()
		call.wait()
		joined := agent.send("2", writing)
		other := agent.start(e, server, "3", `{"name":"katashiro.click","arguments":{"n": 1}}`) // a byte more: another call
		p.await("the window's end", func() bool { return time.Now().After(e.stamp(id).Add(7 * time.Second)) })
		if !joined.open() || server.cancelled() != 0 {
			t.Error("the window of a call that was joined went on")
		}
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"once"}]}}`, id))
		if result := joined.wait(); result.text() != "once" {
			t.Errorf("the one who joined got %s", result.raw)
		}
		if !other.open() || server.callCount() != 2 {
			t.Errorf("another call was joined; %d calls", server.callCount())
		}
		// Anonymous callers and other sessions join nothing: to them it is unknown.
		f := dial(t, p)
		theirs := f.facadeOf(f.open(newServer("katashiro", genA, "katashiro.click")))
		if result := theirs.execute("katashiro.click", `{"n":1}`); result.text() != `katashiro.click {"n":1}` {
			t.Errorf("another session: %s", result.raw)
		}
		if result := anonymous(t, p).execute("katashiro.click", `{"n":1}`); result.refusal() != "unknown" {
			t.Errorf("nobody: %s", result.raw)
		}
	})
}

// stamp is about when a frame was sent: the first time that it is asked for.
func (e *extension) stamp(id string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stamps == nil {
		e.stamps = map[string]time.Time{}
	}
	if _, known := e.stamps[id]; !known {
		e.stamps[id] = time.Now()
	}
	return e.stamps[id]
}

// In the stateless version the closing of a request is a cancel, whatever the tool says of itself.
func TestInTheStatelessVersionClosingCancels(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := readsAndWrites(genA)
	agent := e.facadeOf(e.open(server))
	ctx, cancel := context.WithCancel(context.Background())
	request := agent.modern(ctx, `"m-1"`, "tools/call", `"name":"execute_capability","arguments":`+writing, "execute_capability")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}()
	e.await("the call at the client", func() bool { return server.callCount() == 1 })
	begun := time.Now()
	cancel()
	<-gone
	e.await("the cancel", func() bool { return server.cancelled() == 2 })
	if took := time.Since(begun); took > 25*time.Second {
		t.Errorf("after %v", took)
	}
}

// modern builds a request of protocol version 2026-07-28; params are the members beside _meta.
func (a agentClient) modern(ctx context.Context, id, method, params, name string) *http.Request {
	a.t.Helper()
	if params != "" {
		params += ","
	}
	request := a.request(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`)
	request.Header.Set("MCP-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", method)
	if name != "" {
		request.Header.Set("Mcp-Name", name)
	}
	return request
}

// A request of the stateless version brings what that version asks, in the headers as in the body, and is answered in its kind.
func TestTheStatelessVersion(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	ctx := context.Background()
	execute := `"name":"execute_capability","arguments":` + writing
	for _, row := range []struct {
		name     string
		request  *http.Request
		change   func(*http.Request)
		status   int
		contains []string
		calls    int
	}{
		{"discover, as one agent probes", agent.modern(ctx, `"server-discover-probe-1"`, "server/discover", "", ""), nil, 200, []string{`"id":"server-discover-probe-1"`, `oab-mcp-facade`, `2026-07-28`, `2025-06-18`}, 0},
		{"list", agent.modern(ctx, `1`, "tools/list", "", ""), nil, 200, []string{`execute_capability`, `"resultType":"complete"`}, 0},
		{"a call", agent.modern(ctx, `2`, "tools/call", execute, "execute_capability"), nil, 200, []string{`"resultType":"complete"`, `katashiro.click {\"n\":1}`}, 1},
		{"a search", agent.modern(ctx, `3`, "tools/call", `"name":"search_capabilities"`, "search_capabilities"), nil, 200, []string{`"resultType":"complete"`, `\"total\":1`}, 0},
		{"another tool in the header", agent.modern(ctx, `4`, "tools/call", execute, "search_capabilities"), nil, 400, []string{`"id":4`, `-32020`}, 0},
		{"no tool in the header", agent.modern(ctx, `5`, "tools/call", execute, ""), nil, 400, []string{`-32020`}, 0},
		{"another method in the header", agent.modern(ctx, `6`, "tools/call", execute, "execute_capability"), func(r *http.Request) { r.Header.Set("Mcp-Method", "ping") }, 400, []string{`-32020`}, 0},
		{"an older version in the header", agent.modern(ctx, `7`, "tools/call", execute, "execute_capability"), func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2025-11-25") }, 400, []string{`-32020`}, 0},
		{"no version in the header", agent.modern(ctx, `8`, "tools/call", execute, "execute_capability"), func(r *http.Request) { r.Header.Del("MCP-Protocol-Version") }, 400, []string{`-32020`}, 0},
		{"no version in the body", agent.request(ctx, `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`), func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2026-07-28") }, 400, []string{`"id":9`}, 0},
		{"a version of the future", agent.modern(ctx, `10`, "tools/list", "", ""), func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2030-01-01") }, 400, []string{`-32022`, `supported`}, 0},
		{"two versions", agent.modern(ctx, `11`, "tools/list", "", ""), func(r *http.Request) { r.Header.Add("MCP-Protocol-Version", "2025-11-25") }, 400, []string{`-32020`}, 0},
		{"an unknown method", agent.modern(ctx, `12`, "prompts/get", `"name":"p"`, "p"), nil, 404, []string{`"id":12`, `-32601`}, 0},
		{"a stream that is to be resumed", agent.modern(ctx, `13`, "tools/list", "", ""), func(r *http.Request) { r.Header.Set("Last-Event-ID", "1") }, 400, []string{`-32020`}, 0},
		{"an old probe without the headers", agent.request(ctx, `{"jsonrpc":"2.0","id":"server-discover-probe-1","method":"server/discover"}`), nil, 200, []string{`"id":"server-discover-probe-1"`}, 0},
	} {
		before := server.callCount()
		if row.change != nil {
			row.change(row.request)
		}
		response, body := agent.do(row.request)
		if response.StatusCode != row.status || slices.ContainsFunc(row.contains, func(s string) bool { return !strings.Contains(string(body), s) }) {
			t.Errorf("%s: %d, not %d with %q: %.400s", row.name, response.StatusCode, row.status, row.contains, body)
		}
		if n := server.callCount() - before; n != row.calls {
			t.Errorf("%s: %d calls reached the client", row.name, n)
		}
	}
}
