package clientcheck

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// fails gives the rows that marks fail, in order, each once.
func fails(marks []mark) string {
	var names []string
	for _, m := range marks {
		if m.status == tally.Fail && !strings.Contains(strings.Join(names, "; "), m.row) {
			names = append(names, m.row)
		}
	}
	return strings.Join(names, "; ")
}

// greeted is a watcher in the middle of a conversation: the pod has asked 1 and 2, the client has given a connection "c".
func greeted() *watcher {
	w := newWatcher()
	w.greeted, w.answered = true, true
	w.ask("mcp/message")
	w.ask("mcp/message")
	w.targets["c"] = true
	w.tokens[jsonrpc.StringID("t").Key()] = true
	return w
}

func TestEachMessageIsJudgedByItsRow(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, c := range []struct {
		messages []string // all but the last are sound
		row      string   // "" for none
	}{
		{[]string{answer}, ""},
		{[]string{`{"jsonrpc":"2.0","id":"1","result":null}`}, ""}, // some answer the number with a string
		{[]string{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`}, ""},
		{[]string{answer, answer}, rowAnswers},
		{[]string{`{"jsonrpc":"2.0","id":3,"result":{}}`}, rowAnswers},
		{[]string{`{"jsonrpc":"2.0","id":"mine","result":{}}`}, rowAnswers},
		{[]string{`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`}, rowAnswers},
		{[]string{`{"jsonrpc":"2.0","id":1,"error":"no"}`}, rowShape},
		{[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}`}, rowShape},
		{[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"result":{}}`}, rowShape},
		{[]string{`{"id":1,"result":{}}`}, rowVersion},
		{[]string{`{"jsonrpc":"1.0","id":"a","method":"_x"}`}, rowVersion},
		{[]string{`{"id":"a","method":"_x"}`}, rowVersion},
		{[]string{`{"jsonrpc":"2.0","id":"a","method":"_x"}`, `{"jsonrpc":"2.0","id":"b","method":"_x"}`}, ""},
		{[]string{`{"jsonrpc":"2.0","id":"a","method":"_x"}`, `{"jsonrpc":"2.0","id":"\u0061","method":"_x"}`}, rowReuse},
		{[]string{`{"jsonrpc":"2.0","id":1,"method":"_x"}`}, ""}, // its ids are its own
		{[]string{`{"jsonrpc":"2.0","id":1e3,"method":"_x"}`}, rowIDs},
		{[]string{`{"jsonrpc":"2.0","id":true,"method":"_x"}`}, rowIDs},
		{[]string{`{"jsonrpc":"2.0","id":null,"method":"_x"}`}, rowIDs},
		{[]string{`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 1024) + `","method":"_x"}`}, rowIDs},
		{[]string{`[` + answer + `]`}, rowBatch},
		{[]string{` `}, rowJSON}, {[]string{`"text"`}, rowJSON}, {[]string{`{"jsonrpc":"2.0"}`}, rowJSON}, {[]string{`{"jsonrpc":"2.0","id":1}`}, rowJSON},
		{[]string{`{"jsonrpc":"2.0","method":"_x","Method":"_y"}`}, rowJSON}, {[]string{`{"jsonrpc":"2.0","method":"_x"} {}`}, rowJSON},
		{[]string{"{\"jsonrpc\":\"2.0\",\"method\":\"_\xc3\"}"}, rowText},
		{[]string{`{"jsonrpc":"2.0","method":"_x","params":"` + strings.Repeat("x", requestBytes) + `"}`}, rowSizes},
		{[]string{`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", requestBytes) + `"}`}, ""}, // a result may be larger
		{[]string{`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`}, ""},
		{[]string{`{"jsonrpc":"2.0","method":"$/progress"}`}, ""}, // a pod drops it, and nothing comes of it
		{[]string{`{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}`}, rowOwn},
		{[]string{`{"jsonrpc":"2.0","method":"_acpod/keepalive"}`}, rowOwn},
		{[]string{`{"jsonrpc":"2.0","id":"a","method":"mcp/disconnect","params":{}}`}, rowOwn},
		{[]string{`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c","method":"notifications/tools/list_changed"}}`}, ""},
		{[]string{`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"d","method":"notifications/tools/list_changed"}}`}, rowInbound},
		{[]string{`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c"}}`}, rowInbound},
		{[]string{`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c","method":"notifications/progress","params":{"progressToken":"t","progress":1}}}`}, ""},
		{[]string{`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c","method":"notifications/progress","params":{"progressToken":"u","progress":1}}}`}, rowInbound},
	} {
		w := greeted()
		for k, text := range c.messages {
			_, _, marks := w.take(false, []byte(text))
			want := ""
			if k == len(c.messages)-1 {
				want = c.row
			}
			if got := fails(marks); got != want {
				t.Errorf("%.200q: failed %q, want %q: %+v", text, got, want, marks)
			}
		}
	}
	if _, _, marks := greeted().take(true, []byte(answer)); fails(marks) != rowText {
		t.Errorf("binary: %+v", marks)
	}
}

// What must not be answered has its row in place of the one about answers.
func TestAnAnswerToSilenceIsThatRowsFailure(t *testing.T) {
	w := greeted()
	w.silent = rowUpdates
	if _, _, marks := w.take(false, []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`)); fails(marks) != rowUpdates {
		t.Errorf("%+v", marks)
	}
	q := w.ask("session/request_permission")
	q.twice = rowPermission
	text := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, q.id.Raw())
	if _, _, marks := w.take(false, text); fails(marks) != "" || q.reply == nil {
		t.Errorf("a first answer: %+v", marks)
	}
	if _, _, marks := w.take(false, text); fails(marks) != rowPermission {
		t.Errorf("a second answer: %+v", marks)
	}
}

// What waits to be judged is bounded, whatever a client answers.
func TestAnswersAreNotKeptWithoutABound(t *testing.T) {
	w := greeted()
	w.room = 1 << 20
	filler := strings.Repeat("x", 64<<10)
	var failed string
	for range 40 {
		q := w.ask("mcp/message")
		_, _, marks := w.take(false, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":"%s"}`, q.id.Raw(), filler))
		if failed == "" {
			failed = fails(marks)
		}
		if q.reply == nil || w.held > w.room {
			t.Fatalf("%d bytes are held", w.held)
		}
	}
	if failed != rowSizes {
		t.Errorf("it failed %q", failed)
	}
	for _, q := range w.asked {
		w.judged(q)
	}
	if w.held != 0 {
		t.Errorf("%d bytes are held when all was judged", w.held)
	}
}

func TestTheBeginningHasItsOrder(t *testing.T) {
	const initialize, other = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"session/list"}`
	w := newWatcher()
	if _, _, marks := w.take(false, []byte(other)); fails(marks) != rowFirst {
		t.Errorf("before: %+v", marks)
	}
	if _, _, marks := w.take(false, []byte(initialize)); fails(marks) != "" || !w.greeted {
		t.Errorf("initialize: %+v", marks)
	}
	if _, _, marks := w.take(false, []byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)); fails(marks) != "" {
		t.Errorf("it may take it back: %+v", marks)
	}
	if _, _, marks := w.take(false, []byte(strings.Replace(other, ":2", ":3", 1))); fails(marks) != rowFirst {
		t.Errorf("too early: %+v", marks)
	}
	w.answered = true
	if _, _, marks := w.take(false, []byte(strings.Replace(other, ":2", ":4", 1))); fails(marks) != "" {
		t.Errorf("after: %+v", marks)
	}
	if _, _, marks := newWatcher().take(false, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":"`+strings.Repeat("x", earlyBytes)+`"}`)); fails(marks) != rowSizes {
		t.Errorf("a large initialize: %+v", marks)
	}
}

func TestTheParamsOfAnOpeningAreJudged(t *testing.T) {
	server := func(members string) string { return `{"cwd":"/","mcpServers":[{` + members + `}]}` }
	for params, row := range map[string]string{
		`{"cwd":"/","mcpServers":[]}`:                                   "",
		`{"cwd":"/a/b","mcpServers":[],"additionalDirectories":["/c"]}`: "",
		`{"cwd":"a","mcpServers":[]}`:                                   rowNew,
		`{"mcpServers":[]}`:                                             rowNew,
		`{"cwd":"/"}`:                                                   rowNew,
		`{"cwd":"/","mcpServers":{}}`:                                   rowNew,
		`{"cwd":"/","mcpServers":[],"additionalDirectories":["c"]}`:     rowNew,
		`[]`: rowNew,
		server(`"type":"acp","name":"a","id":"1"`):                                                                  "",
		server(`"type":"acp","name":"a","serverId":"1"`):                                                            "",
		server(`"type":"http","name":"a","url":"acp:1","headers":[]`):                                               "",
		server(`"type":"http","name":"a","url":"http://x","headers":[]`):                                            "", // it may: nothing comes of it
		server(`"name":"a","command":"x","args":[]`):                                                                "",
		server(`"type":"acp","name":"a"`):                                                                           rowServers,
		server(`"type":"acp","name":"a","id":7`):                                                                    rowServers,
		server(`"type":"acp","name":"","id":"1"`):                                                                   rowServers,
		server(`"type":"acp","name":"a.b","id":"1"`):                                                                rowServers,
		server(`"type":"acp","name":"a","id":"` + strings.Repeat("i", 1025) + `"`):                                  rowServers,
		server(`"type":"acp","name":"a","id":"1"},{"type":"acp","name":"a","id":"2"`):                               rowServers,
		server(`"type":"acp","name":"a","id":"1","_meta":{"acpod.dev/tools":[{"name":7}]}`):                         rowEarly,
		`{"cwd":"/","mcpServers":["x"]}`:                                                                            rowServers,
		`{"cwd":"/","mcpServers":[` + strings.Repeat(`{"type":"acp"},`, 8) + `{"type":"acp","name":"a","id":"1"}]}`: rowServers,
	} {
		_, marks, bad := judgeNew([]byte(params), nil)
		if fails(marks) != row || row == rowNew && bad == nil {
			t.Errorf("%s: failed %q, want %q; %v", params, fails(marks), row, bad)
		}
	}
	for params, row := range map[string]string{
		`{"protocolVersion":1}`: "",
		`{"protocolVersion":2,"clientCapabilities":null,"clientInfo":{"name":"n","version":"1"}}`: "",
		`{"protocolVersion":0}`:   rowInitialize,
		`{"protocolVersion":1.0}`: rowInitialize,
		`{}`:                      rowInitialize,
		`7`:                       rowInitialize,
		`{"protocolVersion":1,"clientCapabilities":[]}`:                                         rowCaps,
		`{"protocolVersion":1,"clientInfo":{"name":"n"}}`:                                       rowCaps,
		`{"protocolVersion":1,"clientInfo":"n"}`:                                                rowCaps,
		`{"protocolVersion":1,"clientCapabilities":{"terminal":"yes"}}`:                         rowCaps,
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":1}}}`:                  rowCaps,
		`{"protocolVersion":1,"_meta":{"acpod.dev/client":"short"}}`:                            rowCaps,
		`{"protocolVersion":1,"_meta":{"acpod.dev/client":"` + strings.Repeat("s", 128) + `"}}`: "",
		`{"protocolVersion":1,"_meta":{"acpod.dev/client":"` + strings.Repeat("s", 129) + `"}}`: rowCaps,
	} {
		if _, marks, _ := judgeInitialize([]byte(params)); fails(marks) != row {
			t.Errorf("%s: failed %q, want %q", params, fails(marks), row)
		}
	}
}

func TestToolsAreJudged(t *testing.T) {
	tool := func(n int) string { return fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, n) }
	var many []string
	for n := range maxTools + 1 {
		many = append(many, tool(n))
	}
	for result, want := range map[string]string{
		`{"tools":[` + tool(1) + `]}`:                                                                                "",
		`{"tools":[` + tool(1) + `],"nextCursor":null}`:                                                              "",
		`{"tools":[` + strings.Join(many[:maxTools], ",") + `]}`:                                                     "",
		`{"tools":[` + strings.Join(many, ",") + `]}`:                                                                rowTools,
		`{"tools":[` + tool(1) + `,` + tool(1) + `]}`:                                                                rowTools,
		`{"tools":[{"name":"","inputSchema":{"type":"object"}}]}`:                                                    rowTools,
		`{"tools":[{"name":"t","inputSchema":[]}]}`:                                                                  rowTools,
		`{"tools":[{"name":"t","inputSchema":{"type":"string"}}]}`:                                                   rowTools,
		`{"tools":[{"name":"t","inputSchema":{}}]}`:                                                                  rowTools,
		`{"tools":[{"name":"t","inputSchema":{"type":"object","x":"` + strings.Repeat("x", maxSchemaBytes) + `"}}]}`: rowTools,
		`{}`:                            rowPages,
		`{"tools":[],"nextCursor":7}`:   rowPages,
		`{"tools":[],"nextCursor":"a"}`: "",
	} {
		c := newCatalog("")
		next, marks := c.page([]byte(result))
		if fails(marks) != want {
			t.Errorf("%.200s: failed %q, want %q", result, fails(marks), want)
		}
		if next == "a" {
			if _, marks = c.page([]byte(result)); fails(marks) != rowPages {
				t.Errorf("a cursor that leads to itself: %+v", marks)
			}
		}
	}
	for result, sound := range map[string]bool{
		`{"content":[]}`: true, `{"content":[{"type":"text","text":"a"}],"isError":true,"structuredContent":{}}`: true, `{"content":[{"type":"of another day"}]}`: true,
		`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`: true, `{"content":[{"type":"resource","resource":{"uri":"a"}}]}`: true,
		`{"content":[{"type":"resource_link","uri":"a","name":"b"}]}`: true,
		`{}`: false, `[]`: false, `{"content":{}}`: false, `{"content":["a"]}`: false, `{"content":[{}]}`: false, `{"content":[{"type":"text"}]}`: false, `{"content":[],"isError":"no"}`: false,
		`{"content":[{"type":"image","data":"aGk","mimeType":"image/png"}]}`: false, `{"content":[{"type":"image","data":"aGk="}]}`: false, `{"content":[{"type":"resource"}]}`: false,
		`{"content":[{"type":"resource_link","uri":"a"}]}`: false,
	} {
		if m := judgeContent([]byte(result)); (m.status == tally.Pass) != sound {
			t.Errorf("%s: %+v", result, m)
		}
	}
}

func TestAnswersAreJudged(t *testing.T) {
	of := func(result string) reply { return reply{result: []byte(result)} }
	for _, c := range []struct {
		m     mark
		sound bool
	}{
		{judgeUnknown(rowUnknown, reply{err: &jsonrpc.Error{Code: jsonrpc.MethodNotFound}}), true},
		{judgeUnknown(rowUnknown, reply{err: &jsonrpc.Error{Code: jsonrpc.Internal}}), false},
		{judgeUnknown(rowUnknown, of(`{}`)), false},
		{judgeHandshake(of(`{"protocolVersion":"2024-11-05"}`)), true},
		{judgeHandshake(of(`{"protocolVersion":"2026-07-28"}`)), false},
		{judgeHandshake(reply{err: &jsonrpc.Error{Code: jsonrpc.MethodNotFound}}), false},
		{judgeOutcome([]string{"a"}, of(`{"outcome":{"outcome":"selected","optionId":"a"}}`)), true},
		{judgeOutcome([]string{"a"}, of(`{"outcome":{"outcome":"cancelled"}}`)), true},
		{judgeOutcome([]string{"a"}, of(`{"outcome":{"outcome":"selected","optionId":"b"}}`)), false},
		{judgeOutcome([]string{"a"}, of(`{"outcome":{"outcome":"selected"}}`)), false},
		{judgeOutcome([]string{"a"}, reply{err: &jsonrpc.Error{Code: jsonrpc.MethodNotFound}}), false},
		{judgeSecret("a", "a"), true}, {judgeSecret("a", "b"), false}, {judgeSecret("a", ""), false},
	} {
		if (c.m.status == tally.Pass) != c.sound {
			t.Errorf("%+v", c.m)
		}
	}
	if m := judgeSecret("", ""); m.status != tally.Skipped {
		t.Errorf("without a secret: %+v", m)
	}
	t0 := time.Now()
	at := func(millis ...int) (list []time.Time) {
		for _, ms := range millis {
			list = append(list, t0.Add(time.Duration(ms)*time.Millisecond))
		}
		return list
	}
	for _, c := range []struct {
		at    []time.Time
		sound bool
	}{{at(0), true}, {at(0, 1, 2, 3, 4), true}, {at(0, 1, 2, 3, 4, 5), false}, {at(0, 100, 300, 700, 1500, 3100, 6300), true}, {at(0, 5000, 5001, 5002, 5003, 5004, 5999), false}} {
		if m := judgeAttempts(c.at); (m.status == tally.Pass) != c.sound {
			t.Errorf("%v: %+v", c.at, m)
		}
	}
}

func TestAnUpgradeIsJudgedAsAPodDoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    string
		change func(*http.Request)
		status int
		row    string
	}{
		{"sound", "", func(*http.Request) {}, 101, ""},
		{"localhost", "", func(r *http.Request) { r.Host = "LOCALHOST:80" }, 101, ""},
		{"::1", "", func(r *http.Request) { r.Host = "[::1]" }, 101, ""},
		{"a foreign host", "", func(r *http.Request) { r.Host = "example.com" }, 403, rowHost},
		{"an extension's origin", "", func(r *http.Request) { r.Header.Set("Origin", "chrome-extension://abc") }, 101, ""},
		{"POST", "", func(r *http.Request) { r.Method = http.MethodPost }, 405, rowUpgrade},
		{"no upgrade", "", func(r *http.Request) { r.Header.Del("Upgrade") }, 426, rowUpgrade},
		{"version 8", "", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") }, 400, rowUpgrade},
		{"half a key", "", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "aGk=") }, 400, rowUpgrade},
		{"two lines of subprotocols", "", func(r *http.Request) {
			r.Header["Sec-Websocket-Protocol"] = []string{"mcp", " acp.v1 "}
		}, 101, ""},
		{"another subprotocol", "", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", "mcp") }, 101, rowSubprotocol},
		{"a key", "k", func(r *http.Request) { r.Header.Set("Authorization", "Bearer k") }, 101, ""},
		{"a key and a foreign host", "k", func(r *http.Request) { r.Header.Set("Authorization", "Bearer k"); r.Host = "example.com" }, 101, ""},
		{"a key in a subprotocol", "k", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", "openab.bearer.k, acp.v1") }, 101, ""},
		{"a key and no acp.v1", "k", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", "openab.bearer.k") }, 101, rowSubprotocol},
		{"no key", "k", func(*http.Request) {}, 401, rowKey},
		{"a wrong key", "k", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer j")
			r.Header.Set("Sec-WebSocket-Protocol", "openab.bearer.k, acp.v1")
		}, 401, rowKey},
		{"a wrong key in a subprotocol", "k", func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", "openab.bearer.j, acp.v1") }, 101, rowKey},
		{"two keys", "k", func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer k", "Bearer k"} }, 400, rowKey},
		{"another scheme", "k", func(r *http.Request) { r.Header.Set("Authorization", "Basic k") }, 401, rowKey},
		{"a key in the query", "k", func(r *http.Request) { r.URL.RawQuery = "token=k" }, 401, rowKey},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/acp", nil)
		for name, value := range map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			r.Header.Set(name, value)
		}
		c.change(r)
		if e := judgeUpgrade(r, c.key); e.status != c.status || fails(e.marks) != c.row {
			t.Errorf("%s: %d, failed %q: %+v", c.name, e.status, fails(e.marks), e.marks)
		}
	}
}

func TestArgumentsAreInventedAndBroken(t *testing.T) {
	for schema, want := range map[string][3]string{ // the least that is allowed, whether it is sure, something that is not allowed
		`{"type":"object"}`: {"{}", "true", ""},
		`{"type":"object","properties":{"a":{"type":"string","minLength":3},"b":{"type":"integer","minimum":2}},"required":["a","b"]}`:                                       {`{"a":"xxx","b":2}`, "false", "{}"},
		`{"type":"object","properties":{"a":{"enum":["p","q"]},"c":{"type":"object","required":["d"],"properties":{"d":{"type":["boolean","null"]}}}},"required":["a","c"]}`: {`{"a":"p","c":{"d":false}}`, "false", "{}"},
		`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"array"}}}`:                                                                                        {"{}", "true", `{"a":{"client-check":true}}`},
		`{"type":"object","additionalProperties":false}`:                                                                                                                     {"{}", "true", `{"client-check":true}`},
		`{"type":"object","const":7}`: {"{}", "false", ""},
		`[]`:                          {"{}", "false", ""},
	} {
		arguments, sure := sample([]byte(schema))
		broken, _ := wrong([]byte(schema))
		if string(arguments) != want[0] || fmt.Sprint(sure) != want[1] || string(broken) != want[2] {
			t.Errorf("%s: %s, %v, %s", schema, arguments, sure, broken)
		}
	}
}

// FuzzClient holds that no message of a client panics the judgement, that each failure is told in one short line, and that what is
// fulfilled fails nothing.
func FuzzClient(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `[1]`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"n"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{}},"_meta":{"acpod.dev/client":"0123456789abcdef"}}}`,
		`{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"acp","name":"a","id":"1","_meta":{"acpod.dev/tools":[{}]}}]}}`,
		`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c","method":"notifications/progress","params":{"progressToken":"t"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"?"}]}}`, `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected"}}}`,
	} {
		f.Add([]byte(text), false)
	}
	f.Add([]byte("\xff"), true)
	f.Fuzz(func(t *testing.T, text []byte, binary bool) {
		w := greeted()
		frame, _, marks := w.take(binary, text)
		_, more, _ := judgeInitialize(frame.Params)
		marks = append(marks, more...)
		_, more, _ = judgeNew(frame.Params, nil)
		marks = append(marks, more...)
		c := newCatalog("")
		_, more = c.page(frame.Result)
		marks = append(append(marks, more...), judgeContent(frame.Result))
		answer := reply{result: frame.Result}
		marks = append(marks, judgeOutcome([]string{"a"}, answer), judgeHandshake(answer), judgeUnknown(rowUnknown, answer))
		for _, codec := range []acp.Codec{acp.Gen0, acp.GenA, acp.GenB} {
			_, _, m := judgeConnected(&tunnel{codec: codec}, frame)
			if m.row != "" {
				marks = append(marks, m)
			}
		}
		if schema, ok := wrong(frame.Params); ok && !jsonrpc.Valid(schema) {
			t.Errorf("arguments that are no JSON: %s", schema)
		}
		if arguments, _ := sample(frame.Params); !jsonrpc.Valid(arguments) {
			t.Errorf("arguments that are no JSON: %s", arguments)
		}
		for _, m := range marks {
			if line := m.came + m.why; strings.ContainsAny(line, "\r\n\x1b") || len(line) > 2<<10 {
				t.Errorf("%s is told in %q", m.row, line)
			}
		}
	})
}
