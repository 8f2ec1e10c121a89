package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A result over result_bytes is refused to the agent and counted: a reading call is told so, one that may have had an effect ends
// unknown. One of exactly that size passes.
func TestAResultOverItsLimitIsRefused(t *testing.T) {
	t.Parallel()
	for _, generation := range []generation{genA, genC} {
		t.Run(string(generation), func(t *testing.T) {
			t.Parallel()
			p := startPod(t, with(noAgent, "limits.result_bytes", `"64KiB"`))
			e := dial(t, p)
			server := readsAndWrites(generation)
			server.run = func(_ string, arguments json.RawMessage) (any, *rpcError, bool) {
				var a struct{ N int }
				_ = json.Unmarshal(arguments, &a)
				text := `{"content":[{"type":"text","text":"` + strings.Repeat("x", a.N) + `"}]}`
				return json.RawMessage(text), nil, false
			}
			session := e.open(server)
			agent := e.facadeOf(session)
			fits := 64<<10 - len(`{"content":[{"type":"text","text":""}]}`)
			for _, row := range []struct {
				name string
				n    int
				want string
			}{
				{"katashiro.read_dom", fits, ""}, {"katashiro.read_dom", fits + 1, "overloaded"}, {"katashiro.read_dom", 1 << 20, "overloaded"},
				{"katashiro.click", fits, ""}, {"katashiro.click", fits + 1, "outcome_unknown"}, {"katashiro.click", 1, ""},
			} {
				result := agent.execute(row.name, fmt.Sprintf(`{"N":%d}`, row.n))
				if result.refusal() != row.want || row.want == "" && len(result.text()) != row.n || row.want != "" && !strings.Contains(result.text(), "result_bytes") {
					t.Errorf("%s of %d: %.300s", row.name, row.n, result.raw)
				}
			}
			if desk, _ := p.tree().find("/desk"); true {
				found := int64(0)
				p.tree().each(func(n node) { found += n.Refused["result_bytes"] })
				if found != 3 {
					t.Errorf("%d were counted: %+v", found, desk.Refused)
				}
			}
			e.hangUp()
		})
	}
}

// Whatever a server answers, its caller gets one answer, and what is an object passes as it is.
func TestOddAnswersOfAServer(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	var answer string // the members of the response beside the id
	server.run = heldCall
	session := e.open(server)
	agent := e.facadeOf(session)
	image := `{"content":[{"type":"image","data":"` + strings.Repeat("QUJD", 30_000) + `","mimeType":"image/jpeg"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"future","k":[1.0]}],"structuredContent":{"a":1e400,"a":2},"_meta":{"acpod.dev/other":"mine","x/y":null},"isError":false,"later":9007199254740993}`
	for _, row := range []struct {
		name, answer string
		contains     string // in the answer
		isError      bool
	}{
		{"content of every kind, structured content and _meta", `"result":` + image, `"result":` + image + `}`, false},
		{"an empty object", `"result":{}`, `"result":{}}`, false},
		{"an error of its own", `"result":{"content":[],"isError":true,"_meta":{"k":1}}`, `"_meta":{"k":1}`, true},
		{"isError that is text", `"result":{"content":[],"isError":"true"}`, `"isError":"true"`, false},
		{"null", `"result":null`, "without a result object", true},
		{"a list", `"result":[1]`, "without a result object", true},
		{"a text", `"result":"done"`, "without a result object", true},
		{"a JSON-RPC error", `"error":{"code":-32000, "message":"no such element","data":{"big":9007199254740993}}`, `"text":"no such element"}],"isError":true,"_meta":{"acpod.dev/error":{"code":-32000, "message":"no such element","data":{"big":9007199254740993}}}`, true},
		{"an error whose message is a number", `"error":{"code":1,"message":5}`, `"isError":true`, true},
		{"an error that is text", `"error":"broken"`, `"isError":true`, true},
		{"an error without a code", `"error":{"message":"half"}`, `"isError":true`, true},
		{"both", `"result":{"content":[]},"error":{"code":1,"message":"both"}`, `"result"`, true},
		{"an error that is null beside a result", `"result":{"content":[{"type":"text","text":"fine"}]},"error":null`, ``, false},
	} {
		answer = row.answer
		call := agent.start(e, server, `1`, writing)
		id := e.lastCallID()
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, answer))
		if row.name == "both" { // which is no response: the call goes on, and is answered soundly
			e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"sound"}}`, id))
		}
		result := call.wait()
		if !strings.Contains(result.raw, row.contains) || row.contains != "" && result.IsError != row.isError {
			t.Errorf("%s: %.400s", row.name, result.raw)
		}
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"twice"}]}}`, id)) // answered again
	}
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return textResult("fresh"), nil, false }
	if result := agent.execute("katashiro.click", `{"last":1}`); result.text() != "fresh" {
		t.Errorf("after all that: %s", result.raw)
	}
	if len(p.tree().Children) == 0 || p.tree().Pod.CallsInFlight != 0 {
		t.Errorf("%d calls are in flight", p.tree().Pod.CallsInFlight)
	}
}

// In generation C the envelope tells a result from an error; what is no envelope is an error result, not silence.
func TestOddEnvelopesOfGenerationC(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := readsAndWrites(genC)
	agent := e.facadeOf(e.open(server))
	for _, row := range []struct{ name, tool, answer, contains string }{
		{"a result", writing, `"result":{"result":{"content":[{"type":"text","text":"in"}]}}`, `"text":"in"`},
		{"an inner error", writing, `"result":{"error":{"code":-32602,"message":"inner"}}`, `inner`},
		{"neither", writing, `"result":{}`, `"isError":true`},
		{"both", writing, `"result":{"result":{},"error":{"code":1,"message":"x"}}`, `"isError":true`},
		{"no envelope", writing, `"result":{"content":[{"type":"text","text":"bare"}]}`, `"isError":true`},
		{"an inner error that is text", writing, `"result":{"error":"x"}`, `"isError":true`},
		{"its limit is reached: nothing was sent to the server", writing, `"error":{"code":-33000,"message":"busy"}`, `"overloaded"`},
		{"it is not there: nothing was sent", writing, `"error":{"code":-33001,"message":"gone"}`, `"detached"`},
		{"it failed: it may have begun", writing, `"error":{"code":-33002,"message":"broken"}`, `"outcome_unknown"`},
		{"it failed while it read", reading, `"error":{"code":-33002,"message":"broken"}`, `"detached"`},
	} {
		call := agent.start(e, server, `1`, row.tool)
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, e.lastCallID(), row.answer))
		if result := call.wait(); !strings.Contains(result.raw, row.contains) {
			t.Errorf("%s: %s", row.name, result.raw)
		}
	}
}

// Progress of a call is a stream for a client that asked for it and reads streams, with its own token, and the answer is its last
// event.
func TestProgressReachesTheOneWhoAskedForIt(t *testing.T) {
	t.Parallel()
	for _, generation := range []generation{genA, genC} {
		t.Run(string(generation), func(t *testing.T) {
			t.Parallel()
			p := startPod(t, noAgent)
			e := dial(t, p)
			server := newServer("katashiro", generation, "katashiro.click")
			server.run = heldCall
			agent := e.facadeOf(e.open(server))
			notify := func(params string) {
				var sent struct {
					ConnectionID, RequestID string
					Params                  struct {
						Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
					}
				}
				for _, f := range e.received("mcp/message") {
					if strings.Contains(f.raw, `"tools/call"`) {
						_ = json.Unmarshal(f.Params, &sent)
					}
				}
				address := fmt.Sprintf(`"connectionId":%q`, sent.ConnectionID)
				if generation == genC {
					address = fmt.Sprintf(`"serverId":%q,"requestId":%q`, server.id, sent.RequestID)
				}
				e.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"mcp/message","params":{%s,"method":"notifications/progress","params":{"progressToken":%s,%s}}}`,
					address, sent.Params.Meta.ProgressToken, params))
			}
			answer := func(text string) {
				result := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text)
				if generation == genC {
					result = `{"result":` + result + `}`
				}
				e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, e.lastCallID(), result))
			}
			body := func(token string) string {
				return `{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"execute_capability","arguments":` + writing + `,"_meta":{"progressToken":` + token + `}}}`
			}
			before := server.callCount()
			response := make(chan *http.Response, 1)
			go func() {
				r, err := http.DefaultClient.Do(agent.request(context.Background(), body(`"t\u0031"`)))
				if err != nil {
					t.Error(err)
				}
				response <- r
			}()
			e.await("the call", func() bool { return server.callCount() == before+1 })
			notify(`"progress":0.5,"total":1,"message":"half way"`)
			r := <-response
			if r == nil {
				t.Fatal("no answer")
			}
			defer r.Body.Close()
			lines := bufio.NewScanner(r.Body)
			var events []string
			next := func() string {
				for lines.Scan() {
					if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
						events = append(events, data)
						return data
					}
				}
				t.Fatalf("the stream ended after %q", events)
				return ""
			}
			if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
				t.Errorf("it is %s", kind)
			}
			if note := next(); !strings.Contains(note, `"progressToken":"t\u0031"`) || !strings.Contains(note, "half way") || !strings.Contains(note, "notifications/progress") {
				t.Errorf("the note is %s", note)
			}
			answer("done")
			if last := next(); !strings.Contains(last, `"id":"p"`) || !strings.Contains(last, "done") {
				t.Errorf("the answer is %s", last)
			}
			if lines.Scan() && lines.Text() != "" || lines.Scan() {
				t.Errorf("more came: %q", lines.Text())
			}

			// One who does not read streams gets a plain answer.
			plain := agent.request(context.Background(), strings.Replace(body("5"), `"n":1`, `"n":2`, 1))
			plain.Header.Set("Accept", "application/json")
			before = server.callCount()
			whole := make(chan string, 1)
			go func() {
				r, err := http.DefaultClient.Do(plain)
				if err != nil {
					whole <- err.Error()
					return
				}
				defer r.Body.Close()
				text, _ := io.ReadAll(r.Body)
				whole <- r.Header.Get("Content-Type") + " " + string(text)
			}()
			e.await("the call", func() bool { return server.callCount() == before+1 })
			notify(`"progress":1`)
			answer("plain")
			if got := <-whole; !strings.HasPrefix(got, "application/json {") || !strings.Contains(got, "plain") {
				t.Errorf("without streams: %s", got)
			}
		})
	}
}

// A client that is slow to read a large result holds nobody up, and its session pays until it has read.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := startPod(t, noAgent)
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click", "katashiro.read_dom")
	large := `{"content":[{"type":"text","text":"` + strings.Repeat("z", 4<<20) + `"}]}`
	server.run = func(name string, arguments json.RawMessage) (any, *rpcError, bool) {
		if name == "katashiro.click" {
			return json.RawMessage(large), nil, false
		}
		return textResult("quick"), nil, false
	}
	session := e.open(server)
	agent := e.facadeOf(session)
	used := func() int64 { n, _ := p.tree().find("/" + treeName(session)); return n.Account.Used }
	idle := used()
	conn, err := net.Dial("tcp", p.Facade)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_ = conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"katashiro.click"}}}`
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", p.Facade, agent.token, len(body), body)
	reader := bufio.NewReaderSize(conn, 512)
	if _, err := reader.Peek(1); err != nil {
		t.Fatal(err)
	}
	if now := used(); now < 4<<20 {
		t.Errorf("the session pays %d for a result of 4 MiB that nobody has read", now)
	}
	for n := range 20 {
		if result := agent.execute("katashiro.read_dom", fmt.Sprintf(`{"n":%d}`, n)); result.text() != "quick" {
			t.Fatalf("another call: %s", result.raw)
		}
	}
	if now := used(); now < 4<<20 {
		t.Errorf("after other calls the session pays %d", now)
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(got, []byte(`{"jsonrpc":"2.0","id":1,"result":`+large+`}`)) {
		t.Errorf("%d bytes came: %v", len(got), err)
	}
	p.await("the result is paid back", func() bool { return used() < idle+1<<20 })
}
