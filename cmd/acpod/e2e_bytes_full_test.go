//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// With its session's account full, and with the pod's, each call and each search gets its answer: a result that says overloaded,
// or 503, with the account, its limit, its use and when to come back. Nothing is ever left without one.
func TestWhoeverFindsNoRoomIsTold(t *testing.T) {
	t.Parallel()
	p := startPlain(t, with(leaving(noAgent), "limits.pod_bytes", `"64MiB"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	server.run = func(_ string, arguments json.RawMessage) (any, *rpcError, bool) {
		if string(arguments) == `{"small":true}` {
			return textResult("small"), nil, false
		}
		return sizedResult(7 << 20), nil, false
	}
	e.hello()
	var agents []agentClient
	var sessions []string
	for range 2 {
		sessions = append(sessions, e.openMore(server))
		agents = append(agents, e.facadeOf(sessions[len(sessions)-1]))
	}
	told := func(agent agentClient, scopes ...string) (refused int) {
		t.Helper()
		for n, body := range []string{
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"small":true}}}}`,
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_capabilities","arguments":{}}}`,
			`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click","arguments":{"text":"` + strings.Repeat("p", 500_000) + `"}}}}`,
		} {
			begun := time.Now()
			response, got := agent.do(agent.request(t.Context(), body))
			if took := time.Since(begun); took > soon {
				t.Errorf("request %d was answered after %v", n+1, took)
			}
			text, named := string(got), false
			for _, scope := range scopes {
				named = named || strings.Contains(text, `"acpod.dev/overload":{"scope":"`+scope+`","limit":`) && strings.Contains(text, `"used":`) && strings.Contains(text, `"retry_after_ms":`)
				named = named || strings.Contains(text, "overloaded: "+scope+" has ") && response.Header.Get("Retry-After") != ""
			}
			switch response.StatusCode {
			case http.StatusServiceUnavailable:
				refused++
				if !named {
					t.Errorf("request %d: 503 %.300s", n+1, text)
				}
			case http.StatusOK:
				if strings.Contains(text, `"isError":true`) {
					refused++
					if !named {
						t.Errorf("request %d: %.300s", n+1, text)
					}
				}
			default:
				t.Errorf("request %d: %d %.300s", n+1, response.StatusCode, text)
			}
		}
		return refused
	}
	var held []*calling
	for range 4 { // 28 of 32 MiB
		call := agents[0].callSlowly(p, "katashiro.click")
		call.first()
		held = append(held, call)
	}
	large := agents[0].execute("katashiro.click", `{"n":1}`) // and no room for a fifth result
	if large.refusal() != "outcome_unknown" || !strings.Contains(large.raw, `"acpod.dev/overload":{"scope":"session_bytes","limit":33554432,"used":`) {
		t.Errorf("a result without room: %.300s", large.raw)
	}
	node, _ := p.tree().find("/" + treeName(sessions[0]))
	session := p.fill(agents[0].token, func() int64 { n, _ := p.tree().find(node.Path); return n.Account.Limit - n.Account.Used })
	if n := told(agents[0], "session_bytes"); n == 0 {
		t.Error("the session still had room")
	}
	if n := told(agents[1], "none"); n != 0 {
		t.Error("another session pays for it")
	}
	session.leave()
	for _, call := range held {
		if status, body := call.read(); status != http.StatusOK || len(body) < 7<<20 {
			t.Errorf("a held call: %d, %d bytes %.200s", status, len(body), body)
		}
	}
	rest := func() int64 { figures := p.tree().Pod; return figures.BytesLimit - figures.BytesUsed }
	p.await("room again", func() bool { return rest() > 56<<20 })

	pod := p.fill("", rest)
	for _, agent := range append(agents, anonymous(t, p)) {
		if n := told(agent, "pod_bytes"); n == 0 {
			t.Error("the pod still had room")
		}
	}
	pod.leave()
	p.await("room again", func() bool { return rest() > 56<<20 })
	for _, agent := range agents {
		if n := told(agent, "none"); n != 0 {
			t.Error("there is room again, and none is found")
		}
	}
	e.hangUp()
	p.rest()
	p.kept(300 << 20)
}

// fillers are requests of the facade whose bodies were announced and do not come: each pays for its body until it goes.
type fillers []net.Conn

func (f fillers) leave() {
	for _, conn := range f {
		conn.Close()
	}
}

// fill announces bodies until less than one more request has room.
func (p *pod) fill(token string, room func() int64) (f fillers) {
	p.t.Helper()
	const slot = 16 << 10
	for {
		left := room()
		if left < slot+1 {
			return f
		}
		body := min(left-slot-1, 1<<20)
		conn, err := net.Dial("tcp", p.Facade)
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { conn.Close() })
		f = append(f, conn)
		bearer := ""
		if token != "" {
			bearer = "Authorization: Bearer " + token + "\r\n"
		}
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n", p.Facade, bearer, body)
		p.await("the charge for a body", func() bool { return room() < left-slot })
	}
}

// A client that reads nothing holds its own result and nothing else: beside it a cancel passes at once, and its session is no
// poorer once it has gone. One that takes nothing for write_timeout is closed.
func TestWhoReadsNothingHoldsOnlyItsOwnResult(t *testing.T) {
	t.Parallel()
	p := startPlain(t, with(leaving(noAgent), "acp.write_timeout", `"5s"`))
	e := dial(t, p)
	server := readsAndWrites(genA)
	server.run = func(name string, _ json.RawMessage) (any, *rpcError, bool) {
		if name == "katashiro.click" {
			return nil, nil, true
		}
		return sizedResult(8<<20 - 128), nil, false
	}
	session := e.open(server)
	agent := e.facadeOf(session)
	used := func() int64 { n, _ := p.tree().find("/" + treeName(session)); return n.Account.Used }
	idle := used()
	for range 3 {
		agent.callSlowly(p, "katashiro.read_dom").first()
	}
	if now := used(); now < 24<<20-1024 {
		t.Errorf("the session pays %d for three results of 8 MiB", now)
	}
	begun := time.Now()
	call := agent.start(e, server, "9", `{"name":"katashiro.click","arguments":{"n":1}}`)
	response, _ := agent.do(agent.request(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`))
	if result := call.wait(); response.StatusCode != http.StatusAccepted || result.refusal() != "outcome_unknown" {
		t.Errorf("%d, the cancelled call: %.300s", response.StatusCode, result.raw)
	}
	e.await("the cancel at the client", func() bool { return server.cancelled() > 0 })
	if took := time.Since(begun); took > soon {
		t.Errorf("the cancel took %v", took)
	}
	if result := agent.execute("katashiro.none", `{}`); result.refusal() == "" { // small ones go on as well
		t.Errorf("%.300s", result.raw)
	}
	p.await("the end of those that take nothing", func() bool { return used() <= idle+64<<10 })
	if took := time.Since(begun); took < 3*time.Second {
		t.Errorf("they were closed after %v, before their time", took)
	}
	e.hangUp()
	p.rest()
}

// What one client does not read holds up no other stream of the same socket: while arguments of a megabyte stand in the way of
// one tunnel, a cancel of another tunnel's call is out before them.
func TestACancelOvertakesLargeArguments(t *testing.T) {
	t.Parallel()
	p := startPlain(t, leaving(noAgent))
	w := greeted(t, p)
	session := w.served("katashiro", "other")
	agent := agentClient{t, session.url, session.token}
	quiet := agent.send(`"quiet"`, `{"name":"other.wait","arguments":{}}`)
	w.call("other.wait")
	var large []*inFlight
	text := strings.Repeat("p", 1<<20-1024)
	for n := range 20 { // read by nobody: more than the sockets' buffers hold
		large = append(large, agent.send(fmt.Sprint(100+n), `{"name":"katashiro.click","arguments":{"text":"`+text+`"}}`))
	}
	p.await("arguments that wait", func() bool {
		node, _ := p.tree().find(nodeOfNewest(p))
		return node.Account.Used > 8<<20
	})
	agent.do(agent.request(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"quiet"}}`))
	if result := quiet.wait(); result.refusal() != "outcome_unknown" {
		t.Errorf("the cancelled call: %.300s", result.raw)
	}
	before, cancelled := 0, false
	for !cancelled {
		text := w.message()
		cancelled = strings.Contains(text, `"$/cancel_request"`)
		if strings.Contains(text, `"katashiro.click"`) {
			before++
		}
	}
	// What was in the sockets' buffers when the cancel came had left already, and the message under way is finished first.
	if before > 14 {
		t.Errorf("%d calls of a megabyte came before the cancel", before)
	}
	_ = w.conn.Close()
	for _, call := range large {
		call.wait()
	}
	p.rest()
}

// served opens a session whose client serves these servers by hand, one tool each, and gives where its agent would call.
func (w *wirePeer) served(names ...string) (at struct{ url, token string }) {
	w.t.Helper()
	var declared []string
	for _, name := range names {
		declared = append(declared, fmt.Sprintf(`{"type":"acp","name":%q,"id":%q}`, name, name))
	}
	w.send(`{"jsonrpc":"2.0","id":"open","method":"session/new","params":{"cwd":"/","mcpServers":[` + strings.Join(declared, ",") + `]}}`)
	tools := map[string]string{"katashiro": "katashiro.click", "other": "other.wait"}
	for listed := 0; listed < len(names) || at.token == ""; {
		var f struct {
			ID     json.RawMessage
			Method string
			Params struct{ AcpID, ConnectionID, Method string }
			Result struct {
				Meta struct {
					Facade struct{ URL, Token string } `json:"acpod.dev/facade"`
				} `json:"_meta"`
			}
		}
		if text := w.message(); json.Unmarshal([]byte(text), &f) != nil {
			w.t.Fatalf("not JSON: %.300s", text)
		}
		result := ""
		switch {
		case f.Method == "mcp/connect":
			result = fmt.Sprintf(`{"connectionId":%q}`, f.Params.AcpID)
		case f.Params.Method == "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		case f.Params.Method == "tools/list":
			result = fmt.Sprintf(`{"tools":[{"name":%q,"inputSchema":{"type":"object"}}]}`, tools[f.Params.ConnectionID])
			listed++
		case f.Method == "" && f.Result.Meta.Facade.Token != "":
			at.url, at.token = f.Result.Meta.Facade.URL, f.Result.Meta.Facade.Token
		}
		if result != "" {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, result))
		}
	}
	return at
}

// call waits until a call of that tool comes.
func (w *wirePeer) call(tool string) {
	w.t.Helper()
	for !strings.Contains(w.message(), fmt.Sprintf(`"name":%q`, tool)) {
	}
}
