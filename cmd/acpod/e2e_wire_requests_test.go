package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// What initialize offers is the contract's, no more and no less, whatever the client says of itself, when the agent offers nothing.
func TestInitializeOffersExactlyTheContract(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.env", `{DEMO_AGENT = "plain"}`))
	w := greeted(t, p)
	for _, params := range []string{
		`{"protocolVersion":1}`, `{"protocolVersion":2,"info":{"name":"v2"},"capabilities":{}}`, `{"protocolVersion":65535}`,
		`{"protocolVersion":1,"clientInfo":{"name":"<script>\u001b[31m\n\r\u2028","title":7,"version":null},"clientCapabilities":[]}`,
		`{"protocolVersion":1,"clientInfo":"no object","clientCapabilities":{"fs":{"readTextFile":true},"terminal":true},"mcpServers":"no array"}`,
		`{"protocolVersion":1,"clientInfo":{"name":"` + strings.Repeat("n", 100_000) + `"}}`,
		`{"protocolVersion":1,"x":1,"x":2,"_meta":{"a":1,"a":2,"lone":"\ud800"}}`,
	} {
		w.send(`{"jsonrpc":"2.0","id":"again","method":"initialize","params":` + params + `}`)
		f := w.answered(`"again"`, 0)
		var got map[string]any
		if err := json.Unmarshal(f.Result, &got); err != nil {
			t.Fatal(err)
		}
		info, _ := got["agentInfo"].(map[string]any)
		if version, _ := info["version"].(string); version == "" || info["name"] != "acpod" {
			t.Errorf("agentInfo %v", info)
		}
		delete(got, "agentInfo")
		capabilities, _ := got["agentCapabilities"].(map[string]any)
		prompt, _ := capabilities["promptCapabilities"].(map[string]any)
		delete(capabilities, "promptCapabilities") // the agent's own
		for _, kind := range []string{"image", "audio", "embeddedContext"} {
			if _, ok := prompt[kind].(bool); !ok {
				t.Errorf("promptCapabilities %v", prompt)
			}
		}
		want := map[string]any{
			"protocolVersion": 1.0, "authMethods": []any{},
			"agentCapabilities": map[string]any{
				"loadSession":         false,
				"mcpCapabilities":     map[string]any{"http": false, "sse": false, "acp": true, "_meta": map[string]any{"dev.openab/acp": true}},
				"sessionCapabilities": map[string]any{"resume": map[string]any{}, "close": map[string]any{}, "list": map[string]any{}},
			},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s\n got %v\nwant %v", params, got, want)
		}
	}
	for _, params := range []string{`{}`, `null`, `[]`, `{"protocolVersion":"1"}`, `{"protocolVersion":1.0}`, `{"protocolVersion":1e0}`, `{"protocolVersion":null}`,
		`{"protocolVersion":0}`, `{"protocolVersion":-1}`, `{"protocolVersion":65536}`, `{"protocolVersion":99999999999999999999}`,
		`{"protocolVersion":1,"protocolVersion":2}`, `{"protocolVersion":1,"_meta":{"acpod.dev/client":"fifteen-chars-x"}}`} {
		w.send(`{"jsonrpc":"2.0","id":"bad","method":"initialize","params":` + params + `}`)
		w.answered(`"bad"`, -32602)
	}
	w.send(`{"jsonrpc":"2.0","id":"bad","method":"initialize","params":{"protocolVersion":0}}`)
	if e := w.answered(`"bad"`, -32602).Error; !strings.Contains(e.Message, "0") || !strings.Contains(e.Message, "1") {
		t.Errorf("the message does not name both versions: %s", e.Message)
	}

	other := upgraded(t, p) // a refused initialize opens nothing
	other.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":0}}`)
	other.answered("1", -32602)
	for i, method := range []string{"session/new", "session/resume", "session/prompt", "session/list", "session/close"} {
		other.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"cwd":"/","mcpServers":[]}}`, i, method))
		other.answered(fmt.Sprint(i), -32002)
	}
	for i, method := range []string{"logout", "session/load", "session/fork", "session/delete", "session/set_title", "mcp/connect", "mcp/message", "_acpod/keepalive", "$/cancel_request"} {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, i, method)) // not offered, and not there
		w.answered(fmt.Sprint(i), -32601)
	}
	if len(p.tree().Children) == 0 || p.tree().Pod.Sessions != 0 {
		t.Errorf("something of it opened a session: %+v", p.tree().Pod)
	}
}

// A client that uses one id twice gets two answers with it; its requests are told apart all the same.
func TestAReusedIDIsAnsweredForEachOfItsRequests(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := greeted(t, p)
	one, two := w.open(), w.open()
	w.prompt("7", one, "/sleep 1h")
	w.prompt("7", two, "/sleep 1h")
	w.prompt("7", one, "busy") // refused while both are open
	w.answered("7", -32001)
	for _, session := range []string{two, one} {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session))
		if f := w.answered("7", 0); stopReason(f) != "cancelled" {
			t.Errorf("answered %s", f.raw)
		}
	}
	w.prompt("7", one, "again")
	if f := w.answered("7", 0); stopReason(f) != "end_turn" {
		t.Errorf("answered %s", f.raw)
	}
	w.ping() // and nothing else came
}

// Limits of a connection say which limit it was, how large it is and how much of it is used.
func TestLimitsOfAConnectionNameThemselves(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "limits.prompts_per_connection", "2", "limits.sessions_per_connection", "3", "limits.servers_per_session", "2"))
	w := greeted(t, p)
	sessions := []string{w.open(), w.open(), w.open()}
	refused := func(id, frame, scope string, limit, used int) {
		t.Helper()
		w.send(frame)
		e := w.answered(id, -32000).Error
		if e.Data["scope"] != scope || e.Data["limit"] != float64(limit) || e.Data["used"] != float64(used) {
			t.Errorf("%s: %v", scope, e.Data)
		}
		if strings.Contains(e.Message, "sess_") {
			t.Errorf("a session id in %s", e.Message)
		}
	}
	refused("11", `{"jsonrpc":"2.0","id":11,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, "sessions_per_connection", 3, 3)
	w.send(`{"jsonrpc":"2.0","id":12,"method":"session/new","params":{"mcpServers":[]}}`)
	w.answered("12", -32602) // the schema comes first
	w.send(`{"jsonrpc":"2.0","id":13,"method":"session/resume","params":{"cwd":"/","sessionId":"sess_0"}}`)
	w.answered("13", -32602) // and so does the form of an id
	refused("14", `{"jsonrpc":"2.0","id":14,"method":"session/resume","params":{"cwd":"/","sessionId":"sess_00000000-0000-4000-8000-000000000000"}}`, "sessions_per_connection", 3, 3)
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":15,"method":"session/resume","params":{"cwd":"/","sessionId":%q}}`, sessions[0]))
	w.answered("15", 0) // one of its own takes no further place

	w.prompt("21", sessions[0], "/sleep 1h")
	w.prompt("22", sessions[1], "/sleep 1h")
	refused("23", `{"jsonrpc":"2.0","id":23,"method":"session/prompt","params":{}}`, "prompts_per_connection", 2, 2) // before everything else of a prompt
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, sessions[0]))
	w.answered("21", 0)
	w.prompt("24", sessions[2], "room again")
	w.answered("24", 0)
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, sessions[1]))
	w.answered("22", 0)

	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":31,"method":"session/close","params":{"sessionId":%q}}`, sessions[2]))
	w.answered("31", 0)
	server := func(n int) string { return fmt.Sprintf(`{"type":"acp","name":"n%d","id":"i%d"}`, n, n) }
	declare := func(servers ...string) string {
		return `{"jsonrpc":"2.0","id":32,"method":"session/new","params":{"cwd":"/","mcpServers":[` + strings.Join(servers, ",") + `]}}`
	}
	refused("32", declare(server(1), server(2), server(3)), "servers_per_session", 2, 3)
	w.send(declare(server(1), server(1), server(2), server(2), `{"name":"stdio","command":"x","args":[],"env":[]}`)) // equal ids count once, others not at all
	w.answered("32", 0)

	for _, silent := range []string{ // a cancel of what is not there is nothing
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sess_00000000-0000-4000-8000-000000000000"}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}`, `{"jsonrpc":"2.0","method":"session/cancel"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4711}}`,
	} {
		w.send(silent)
	}
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":33,"method":"session/cancel","params":{"sessionId":%q}}`, sessions[0]))
	w.answered("33", -32600)
	w.ping()
	node, ok := p.tree().find("/conn-1")
	for scope, n := range map[string]int64{"sessions_per_connection": 2, "prompts_per_connection": 1, "servers_per_session": 1, "invalid_params": 2, "invalid_request": 1} {
		if !ok || node.Refused[scope] != n {
			t.Errorf("refused[%s] is %d, want %d", scope, node.Refused[scope], n)
		}
	}
}

// Answers to requests that were never sent, or are over, are counted and cost nothing, however many there are.
func TestAnswersThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := greeted(t, p)
	used := p.tree().Pod.BytesUsed
	const flood = 20_000
	var batch []byte
	for i := range flood {
		id := fmt.Sprint(1_000_000 + i)
		if i%2 == 0 {
			id = `"` + id + `"`
		}
		batch = append(batch, maskedFrame(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)...)
		if len(batch) > 64<<10 {
			w.raw(batch)
			batch = batch[:0]
		}
	}
	w.raw(batch)
	w.ping()
	node, ok := p.tree().find("/conn-1")
	if !ok || node.Refused["late_answer"] != flood {
		t.Errorf("counted: %v", node.Refused)
	}
	eventually(t, "all that they held is free", func() bool { return p.tree().Pod.BytesUsed <= used })

	for _, quarrel := range []string{ // none of these is answered, or two peers that do not understand each other would never end
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, `{"jsonrpc":"2.0","id":null,"result":1}`, `{"jsonrpc":"2.0","id":-1,"result":1}`,
		`{"jsonrpc":"2.0","id":99999999999999999999999,"result":1}`, `{"id":5,"result":1}`,
	} {
		w.send(quarrel)
	}
	w.ping()
}

// A client may answer the number 1 with the string "1"; the pod goes on with it.
func TestAStringOfDigitsAnswersANumber(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	w := greeted(t, p)
	w.send(`{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"acp","name":"katashiro","id":"i"}]}}`)
	var connect frame
	for connect.Method != "mcp/connect" {
		connect = frame{}
		if err := json.Unmarshal([]byte(w.message()), &connect); err != nil {
			t.Fatal(err)
		}
	}
	if string(connect.ID) != "1" {
		t.Errorf("our ids begin with %s", connect.ID)
	}
	w.send(`{"jsonrpc":"2.0","id":"1","result":{"connectionId":"c"}}`)
	for {
		var next frame
		if err := json.Unmarshal([]byte(w.message()), &next); err != nil {
			t.Fatal(err)
		}
		if next.Method == "mcp/message" {
			if string(next.ID) != "2" || !strings.Contains(string(next.Params), `"initialize"`) {
				t.Errorf("the next request is %s", next.raw)
			}
			break
		}
	}
	w.send(`{"jsonrpc":"2.0","id":1,"result":{"connectionId":"d"}}`) // a second answer to the first
	w.ping()
	if node, _ := p.tree().find("/conn-1"); node.Refused["late_answer"] != 1 {
		t.Errorf("the second answer is not counted: %v", node.Refused)
	}
}

// The log of a pod that traces frames has sizes and methods, nothing of what they carry, and one record a line.
func TestATraceHoldsNoPayload(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig, func(c *exec.Cmd) {
		c.Env = append(c.Env, "OPENAB_ACP_TRACE=1")
		c.Args = append(c.Args, "--log-level", "debug")
	})
	e := dial(t, p, dialling{header: http.Header{"X-Secret": {"swordfish"}}})
	e.hello(object{"acpod.dev/client": "swordfish-swordfish"})
	server := newServer("katashiro", genA, "katashiro.click")
	session := e.openMore(server)
	e.says(session, "swordfish", "echo: swordfish\n")
	e.prompt(session, `/call katashiro.click {"swordfish":"swordfish"}`)
	e.refused(-32602, "session/prompt", object{"sessionId": "sess_swordfish", "prompt": []any{}})
	for range 30 {
		e.write(`{"swordfish":`)
	}
	e.write(`{"jsonrpc":"2.0","id":"swordfish","method":"no\nsuch\u001b[31m\u2028method"}`)
	e.answer(`"swordfish"`)
	if err := e.conn.WriteClose(4000, []byte("swordfish\n\x1b[31m")); err != nil {
		t.Log(err)
	}
	eventually(t, "the end in the log", func() bool { return strings.Contains(p.log.String(), "connection ended") })
	text := p.log.String()
	for _, secret := range []string{"swordfish", session, strings.TrimPrefix(session, "sess_"), "\x1b", "\u2028"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
	for _, traced := range []string{"acp frame", "session/prompt", "dir=in", "dir=out"} {
		if !strings.Contains(text, traced) {
			t.Errorf("%q is not in the log of a pod that traces", traced)
		}
	}
	if n := strings.Count(text, "level=WARN") + strings.Count(text, "level=ERROR"); n > 20 {
		t.Errorf("30 refused frames make %d records", n)
	}
	if n := strings.Count(text, `msg="connection ended"`); n != 1 {
		t.Errorf("one connection ended in %d records", n)
	}
}
