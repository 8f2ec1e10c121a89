package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wire sends bytes to the facade as they are and gives what comes back until the answer is whole.
func wire(t *testing.T, p *pod, text string, finish bool) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Facade)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if finish {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatalf("no answer to %.100q: %v", text, err)
	}
	last := response
	if response.StatusCode == http.StatusContinue { // what follows it is the answer
		if last, err = http.ReadResponse(reader, nil); err != nil || last.StatusCode != http.StatusOK {
			t.Fatalf("no answer to %.100q: %v %v", text, last, err)
		}
	}
	defer last.Body.Close()
	body, _ := io.ReadAll(last.Body)
	return response, string(body)
}

// What is wrong with a message is said with its id, exactly as it came, and reaches no client.
func TestTheFacadeIsExactAboutMessages(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	execute := func(id, arguments string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"execute_capability","arguments":` + arguments + `}}`
	}
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	click := `{"name":"katashiro.click","arguments":{}}`
	for _, row := range []struct {
		name, body string
		status     int
		contains   string
		calls      int // that reach the client
	}{
		{"a string id", execute(`"a\u0062\"é"`, click), 200, `"id":"a\u0062\"é"`, 1},
		{"an empty string id", execute(`""`, click), 200, `"id":""`, 1},
		{"a negative id", execute(`-7`, click), 200, `"id":-7`, 1},
		{"an id beyond 2^53", execute(`18446744073709551615`, click), 200, `"id":18446744073709551615`, 1},
		{"a null id", execute(`null`, click), 400, `"id":null`, 0},
		{"an id with a fraction", execute(`1.5`, click), 400, `-32600`, 0},
		{"an object as id", execute(`{}`, click), 400, `-32600`, 0},
		{"an id that stands twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{}}`, 400, `-32600`, 0},
		{"a method that stands twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, 400, `-32600`, 0},
		{"no version", `{"id":1,"method":"ping"}`, 400, `-32600`, 0},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, `-32600`, 0},
		{"a batch", `[` + execute(`1`, click) + `]`, 400, `-32600`, 0},
		{"an empty batch", `[]`, 400, `-32600`, 0},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, `-32600`, 0},
		{"nothing", ``, 400, `-32700`, 0},
		{"white space", " \n ", 400, `-32700`, 0},
		{"no object", `"x"`, 400, `-32600`, 0},
		{"something behind it", execute(`1`, click) + `{}`, 400, `-32700`, 0},
		{"a NUL behind it", execute(`1`, click) + "\x00", 400, `-32700`, 0},
		{"white space around it", " \r\n" + execute(`1`, click) + " \n\t", 200, `katashiro.click {}`, 1},
		{"a byte order mark", "\ufeff" + execute(`1`, click), 400, `-32700`, 0},
		{"nested too deep", execute(`1`, nested(10_001)), 400, `-32700`, 0},
		{"arguments that are nested deep", execute(`1`, `{"name":"katashiro.click","arguments":`+nested(200)+`}`), 200, `bad_arguments`, 0},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, 200, `-32601`, 0},
		{"a subscription", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, 200, `-32601`, 0},
		{"a change of the log", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`, 200, `"result":{}`, 0},
		{"a level of the log that is none", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, 200, `-32602`, 0},
		{"an unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"katashiro.click","arguments":{}}}`, 200, `-32602`, 0},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 200, `-32602`, 0},
		{"params that are a list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["execute_capability"]}`, 200, `-32602`, 0},
		{"a tool's name that is a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}`, 200, `-32602`, 0},
		{"a tool's name that stands twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_capabilities","name":"execute_capability","arguments":` + click + `}}`, 200, `-32602`, 0},
		{"a tool's name that stands twice, once escaped", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"search_capabilities","name":"execute_capability","arguments":` + click + `}}`, 200, `-32602`, 0},
		{"arguments that stand twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{},"arguments":` + click + `}}`, 200, `-32602`, 0},
		{"arguments of the tool that are text", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":"x"}}`, 200, `-32602`, 0},
		{"null for arguments of the tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_capabilities","arguments":null}}`, 200, `\"total\":1`, 0},
		{"no name of a capability", execute(`1`, `{"arguments":{}}`), 200, `bad_arguments`, 0},
		{"null for the name", execute(`1`, `{"name":null}`), 200, `bad_arguments`, 0},
		{"a capability's name that stands twice", execute(`1`, `{"name":"katashiro.read_dom","name":"katashiro.click"}`), 200, `bad_arguments`, 0},
		{"a capability's name in two cases", execute(`1`, `{"Name":"katashiro.read_dom","name":"katashiro.click"}`), 200, `bad_arguments`, 0},
		{"a tool's name in two cases", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"search_capabilities","name":"execute_capability","arguments":` + click + `}}`, 200, `-32602`, 0},
		{"a capability's name inside its arguments", execute(`1`, `{"arguments":{"name":"katashiro.click"}}`), 200, `not inside`, 0},
		{"a capability's arguments that stand twice", execute(`1`, `{"name":"katashiro.click","arguments":{"a":1},"arguments":{}}`), 200, `bad_arguments`, 0},
		{"a member of the arguments that stands twice", execute(`1`, `{"name":"katashiro.click","arguments":{"a":1,"\u0061":2}}`), 200, `bad_arguments`, 0},
		{"null for the arguments", execute(`1`, `{"name":"katashiro.click","arguments":null}`), 200, `katashiro.click {}`, 1},
		{"no arguments", execute(`1`, `{"name":"katashiro.click"}`), 200, `katashiro.click {}`, 1},
		{"a list for the arguments", execute(`1`, `{"name":"katashiro.click","arguments":[]}`), 200, `bad_arguments`, 0},
		{"text for the arguments", execute(`1`, `{"name":"katashiro.click","arguments":"x"}`), 200, `bad_arguments`, 0},
		{"text that holds the arguments", execute(`1`, `{"name":"katashiro.click","arguments":"{\"a\": 1}"}`), 200, `katashiro.click {\"a\": 1}`, 1},
		{"a number for the arguments", execute(`1`, `{"name":"katashiro.click","arguments":5}`), 200, `bad_arguments`, 0},
		{"an argument of the capability one level too high", execute(`1`, `{"name":"katashiro.click","selector":"a"}`), 200, `bad_arguments`, 0},
		{"a key that is a number", execute(`1`, `{"name":"katashiro.click","idempotency_key":5}`), 200, `bad_arguments`, 0},
		{"a key of 129 characters", execute(`1`, `{"name":"katashiro.click","idempotency_key":"`+strings.Repeat("é", 129)+`"}`), 200, `bad_arguments`, 0},
		{"a key of 128 characters", execute(`1`, `{"name":"katashiro.click","idempotency_key":"`+strings.Repeat("é", 128)+`"}`), 200, `katashiro.click {}`, 1},
	} {
		before := server.callCount()
		response, body := agent.do(agent.request(context.Background(), row.body))
		if response.StatusCode != row.status || !strings.Contains(string(body), row.contains) || !json.Valid(body) {
			t.Errorf("%s: %d, not %d with %s: %.300s", row.name, response.StatusCode, row.status, row.contains, body)
		}
		if n := server.callCount() - before; n != row.calls {
			t.Errorf("%s: %d calls reached the client, not %d", row.name, n, row.calls)
		}
	}
}

// Bodies that lie about their length, come in pieces, or never come whole execute nothing, and the next request is not read out
// of what they left.
func TestBodiesThatLieExecuteNothing(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click"}}}`
	head := func(lines string) string {
		return "POST /mcp HTTP/1.1\r\nHost: " + p.Facade + "\r\nContent-Type: application/json\r\nAuthorization: Bearer " + agent.token + "\r\n" + lines + "\r\n"
	}
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	chunked := "Transfer-Encoding: chunked\r\n"
	for _, row := range []struct {
		name, text string
		finish     bool
		status     int
		calls      int
	}{
		{"as it should be", head(length(len(body))) + body, false, 200, 1},
		{"in chunks", head(chunked) + fmt.Sprintf("5\r\n%s\r\n%x;x=y\r\n%s\r\n0\r\n\r\n", body[:5], len(body)-5, body[5:]), false, 200, 1},
		{"one byte less than announced", head(length(len(body)+1)) + body, true, 400, 0},
		{"one byte more than announced", head(length(len(body)-1)) + body, false, 400, 0},
		{"cut in a chunk", head(chunked) + fmt.Sprintf("%x\r\n%s", len(body)+5, body), true, 400, 0},
		{"chunks without an end", head(chunked) + fmt.Sprintf("%x\r\n%s\r\n", len(body), body), true, 400, 0},
		{"a length and chunks", head(length(len(body))+chunked) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), false, 0, 1},
		{"two lengths", head(length(len(body))+length(len(body)-1)) + body, false, 400, 0},
		{"a length that is no number", head("Content-Length: +5\r\n") + body, false, 400, 0},
		{"another coding", head("Transfer-Encoding: gzip, chunked\r\n") + body, false, 501, 0},
		{"a length of a terabyte", head(length(1<<40)) + body, false, 413, 0},
		{"expecting to go on", head(length(len(body))+"Expect: 100-continue\r\n") + body, false, 100, 1},
		{"expecting something else", head(length(len(body))+"Expect: tea\r\n") + body, false, 417, 0},
		{"a compressed body", head(length(len(body))+"Content-Encoding: gzip\r\n") + body, false, 415, 0},
		{"a space before the colon", head("Content-Length : 5\r\n") + body, false, 400, 0},
		{"no host", strings.Replace(head(length(len(body))), "Host: "+p.Facade+"\r\n", "", 1) + body, false, 400, 0},
		{"a second host", head("Host: evil.example\r\n"+length(len(body))) + body, false, 400, 0},
	} {
		before := server.callCount()
		response, got := wire(t, p, row.text, row.finish)
		if row.status != 0 && response.StatusCode != row.status {
			t.Errorf("%s: %d, not %d: %.200s", row.name, response.StatusCode, row.status, got)
		}
		if row.calls > 0 {
			e.await("the call of "+row.name, func() bool { return server.callCount() == before+row.calls })
		}
		if n := server.callCount() - before; n != row.calls {
			t.Errorf("%s: %d calls reached the client, not %d", row.name, n, row.calls)
		}
	}

	// What stands behind a body that was refused is not another request.
	smuggled := head(length(len(body))) + body
	before := server.callCount()
	response, _ := wire(t, p, head(length(1<<21))+smuggled, true)
	if response.StatusCode != 413 || !response.Close {
		t.Errorf("a body that is too long: %d, closed %v", response.StatusCode, response.Close)
	}
	// Two requests on one connection are answered in their order.
	conn, err := net.Dial("tcp", p.Facade)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	first := strings.Replace(body, `"katashiro.click"`, `"katashiro.click","arguments":{"n":1}`, 1)
	second := strings.Replace(first, `"id":1`, `"id":2`, 1)
	if _, err := io.WriteString(conn, head(length(len(first)))+first+head(length(len(second)))+second); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	for id := 1; id <= 2; id++ {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(response.Body)
		if !strings.Contains(string(got), fmt.Sprintf(`"id":%d`, id)) {
			t.Errorf("answer %d: %s", id, got)
		}
	}
	if n := server.callCount() - before; n != 2 {
		t.Errorf("%d calls reached the client after a smuggled and two honest ones", n)
	}
	e.hangUp()
}

// Who calls is what one Authorization header says, and nothing else.
func TestWhoCallsTheFacade(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	agent := e.facadeOf(e.open(server))
	search := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_capabilities","arguments":{}}}`
	refused := func(scope string) int64 { n, _ := p.tree().find("/facade"); return n.Refused[scope] }
	for _, row := range []struct {
		name    string
		lines   []string
		mine    bool
		counted string
	}{
		{"a bearer", []string{"Bearer " + agent.token}, true, ""},
		{"in another case", []string{"bEARER " + agent.token}, true, ""},
		{"with more spaces", []string{"Bearer   " + agent.token + " "}, true, ""},
		{"none", nil, false, ""},
		{"twice", []string{"Bearer " + agent.token, "Bearer " + agent.token}, false, "two_bearers"},
		{"two that differ", []string{"Bearer x", "Bearer " + agent.token}, false, "two_bearers"},
		{"another scheme", []string{"Basic " + agent.token}, false, "odd_bearer"},
		{"no scheme", []string{agent.token}, false, "odd_bearer"},
		{"nothing behind it", []string{"Bearer "}, false, "odd_bearer"},
		{"a token that never was", []string{"Bearer " + strings.Repeat("x", 43)}, false, "dead_bearer"},
		{"one character more", []string{"Bearer " + agent.token + "x"}, false, "dead_bearer"},
		{"one character less", []string{"Bearer " + agent.token[1:]}, false, "dead_bearer"},
		{"a very long one", []string{"Bearer " + strings.Repeat("x", 4096)}, false, "odd_bearer"},
	} {
		before := refused(row.counted)
		request := agentClient{t, agent.url, ""}.request(context.Background(), search)
		request.Header["Authorization"] = row.lines
		response, body := agent.do(request)
		if response.StatusCode != 200 || strings.Contains(string(body), `\"total\":1`) != row.mine {
			t.Errorf("%s: %d %s", row.name, response.StatusCode, body)
		}
		if row.counted != "" && refused(row.counted) != before+1 {
			t.Errorf("%s: not counted as %s", row.name, row.counted)
		}
	}
	// A token in another place is none.
	request := agentClient{t, agent.url + "?access_token=" + agent.token, ""}.request(context.Background(), search)
	request.Header.Set("X-OpenAB-Session-Token", agent.token)
	request.Header.Set("Mcp-Session-Id", agent.token)
	if _, body := agent.do(request); strings.Contains(string(body), `\"total\":1`) {
		t.Errorf("a token in a query was taken: %s", body)
	}
}

// With anonymous = false a request needs a live token or the operator's key, which is no identity.
func TestAFacadeThatIsClosedToAnonymousCallers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("the operator's key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for name, row := range map[string]struct {
		config string
		key    int // status with the key
	}{
		"without a key": {with(noAgent, "mcp.anonymous", "false"), 401},
		"with a key":    {with(noAgent, "mcp.anonymous", "false", "mcp.auth_key_file", fmt.Sprintf("%q", file)), 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, row.config)
			e := dial(t, p)
			server := newServer("katashiro", genA, "katashiro.click")
			agent := e.facadeOf(e.open(server))
			for _, caller := range []struct {
				name, token string
				status      int
			}{
				{"nobody", "", 401}, {"a dead token", strings.Repeat("x", 43), 401}, {"the key", "the operator's key", row.key},
				{"the key and a letter", "the operator's keyx", 401}, {"a live token", agent.token, 200},
			} {
				for _, body := range []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{`} {
					want := caller.status
					if want == 200 && strings.Contains(body, "notifications") {
						want = 202
					}
					if want == 200 && body == "{" {
						want = 400
					}
					response, got := agent.do(agentClient{t, agent.url, caller.token}.request(context.Background(), body))
					if response.StatusCode != want || want == 401 && response.Header.Get("WWW-Authenticate") == "" {
						t.Errorf("%s, %.60s: %d, not %d: %s", caller.name, body, response.StatusCode, want, got)
					}
				}
			}
			if row.key == 200 {
				keyed := agentClient{t, agent.url, "the operator's key"}
				if names := keyed.names(); len(names) != 0 {
					t.Errorf("the key sees %v", names)
				}
				if result := keyed.execute("katashiro.click", "{}"); result.refusal() != "unknown" || server.callCount() != 0 {
					t.Errorf("the key executes: %s", result.raw)
				}
			}
		})
	}
}
