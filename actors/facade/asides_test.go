package facade

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

const form = `{"message":"Your name?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}}`

// asks is a server that puts a question and answers the call with what it is told; "none" where it cannot ask.
func asks(question string) func(*kernel.Ctx, capability.Call, *kernel.Question) {
	return func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		say := func(raw []byte) {
			q.Answer(capability.Result{Raw: append(append([]byte(`{"content":[],"structuredContent":`), raw...), '}')}, nil)
		}
		if call.Elicit == nil {
			say([]byte(`"none"`))
			return
		}
		call.Elicit(capability.Elicitation{Provider: "mail", Params: []byte(question), Answer: func(result []byte, failed *jsonrpc.Error) {
			if failed != nil {
				result = fmt.Appendf(nil, "%d", failed.Code)
			}
			say(bytes.Clone(result))
		}})
	}
}

func hello(capabilities string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}}`
}

var streams = []string{"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25"}

// stream is the open answer of a call.
type stream struct {
	t      *testing.T
	body   io.ReadCloser
	reader *bufio.Reader
}

func (w *world) stream(t *testing.T, body string, header map[string]string) *stream {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.baseURL+endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &stream{t, resp.Body, bufio.NewReader(resp.Body)}
}

// next is the next message of the stream.
func (s *stream) next() jsonrpc.Frame {
	s.t.Helper()
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the stream ended: %v %q", err, line)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			frame, bad := jsonrpc.Scan([]byte(strings.TrimSpace(data)))
			if bad != nil {
				s.t.Fatalf("%v in %q", bad, data)
			}
			return frame
		}
	}
}

func TestAQuestionIsPutOnTheStreamOfTheCallAndItsAnswerComesOnceFromTheSameToken(t *testing.T) {
	w := newWorld(t, nil)
	s, other := w.session("alice", capability.Ready, asks(form)), w.session("bob", capability.Ready, asks(form))
	own := with(bearer(s.token), streams...)
	idle := s.desk.Account().Used()
	w.do(request{body: hello(`{"elicitation":{}}`), header: own})
	for answer, want := range map[string]string{
		`"result":{"action":"accept","content":{"n":9007199254740993}}`: `{"action":"accept","content":{"n":9007199254740993}}`,
		`"result":{"action":"decline"}`:                                 `{"action":"decline"}`,
		`"result":{"action":"sure"}`:                                    `{"action":"cancel"}`,
		`"error":{"code":-32601,"message":"no such method"}`:            `-32601`,
	} {
		call := w.stream(t, executeBody("5", "katashiro.read", "{}"), own)
		asked := call.next()
		params := string(asked.Params)
		if asked.Kind != jsonrpc.Request || asked.Method != "elicitation/create" || params != strings.Replace(form, "Your name?", "mail asks: Your name?", 1) {
			t.Fatalf("%s %s %s", asked.Method, asked.ID.Raw(), params)
		}
		response := `{"jsonrpc":"2.0","id":` + string(asked.ID.Raw()) + `,` + answer + `}`
		for name, header := range map[string]map[string]string{"another session": bearer(other.token), "nobody": nil} {
			if got := w.do(request{body: response, header: header}); got.status != 400 {
				t.Errorf("%s answered: %d %s", name, got.status, got.body)
			}
		}
		if got := w.do(request{body: response, header: own}); got.status != 202 || got.body != "" {
			t.Errorf("%d %s", got.status, got.body)
		}
		if end := call.next(); string(end.ID.Raw()) != "5" || string(end.Result) != `{"content":[],"structuredContent":`+want+`}` {
			t.Errorf("%s: the server was told %s", answer, end.Result)
		}
		if got := w.do(request{body: response, header: own}); got.status != 400 {
			t.Errorf("answered twice: %d", got.status)
		}
	}
	atRest(t, w)
	w.do(request{body: hello(`{}`), header: own}) // another client, which says nothing
	kerneltest.Eventually(t, "the session pays for nothing more", func() bool { return s.desk.Account().Used() == idle })
	if got := w.do(request{body: executeBody("6", "katashiro.read", "{}"), header: own}); !strings.Contains(got.body, `"none"`) {
		t.Errorf("a client that does not ask its user was asked: %s", got.body)
	}
}

func TestWhoCannotBeAskedIsNot(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, asks(form))
	own := with(bearer(s.token), streams...)
	call := executeBody("5", "katashiro.read", "{}")
	for _, c := range []struct{ name, capabilities, question, accept, want string }{
		{"declares nothing", `{}`, form, "text/event-stream", `"none"`},
		{"reads no stream", `{"elicitation":{}}`, form, "application/json", `"none"`},
		{"only addresses", `{"elicitation":{"url":{}}}`, form, "text/event-stream", `{"action":"decline"}`},
		{"only forms", `{"elicitation":{"form":{}}}`, `{"mode":"url","message":"m","url":"https://a.example","elicitationId":"1"}`, "text/event-stream", `{"action":"decline"}`},
		{"an address that is not https", `{"elicitation":{"url":{}}}`, `{"mode":"url","message":"m","url":"http://a.example","elicitationId":"1"}`, "text/event-stream", `{"action":"decline"}`},
		{"another mode", `{"elicitation":{"form":{},"url":{}}}`, `{"mode":"voice","message":"m"}`, "text/event-stream", `{"action":"decline"}`},
		{"no schema", `{"elicitation":{}}`, `{"message":"m"}`, "text/event-stream", `{"action":"decline"}`},
		{"two messages", `{"elicitation":{}}`, `{"message":"m","message":"n","requestedSchema":{}}`, "text/event-stream", `{"action":"decline"}`},
		{"too long", `{"elicitation":{}}`, `{"message":"` + strings.Repeat("m", longestQuestion) + `","requestedSchema":{}}`, "text/event-stream", `{"action":"decline"}`},
	} {
		w.do(request{body: hello(c.capabilities), header: own})
		s.server.behave = asks(c.question)
		if got := w.do(request{body: call, header: with(own, "Accept", c.accept)}); !strings.Contains(got.body, `"structuredContent":`+c.want) {
			t.Errorf("%s: %s", c.name, got.body)
		}
	}
}

func TestAQuestionEndsWithItsCallAndThereAreOnlySoMany(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, asks(form))
	own := with(bearer(s.token), streams...)
	w.do(request{body: hello(`{"elicitation":{"form":{}}}`), header: own})
	calls := make([]*stream, questionsOfToken)
	var first string
	for i := range calls {
		calls[i] = w.stream(t, executeBody(fmt.Sprint(i), "katashiro.read", fmt.Sprintf(`{"i":%d}`, i)), own)
		first = string(calls[i].next().ID.Raw())
	}
	if got := w.do(request{body: executeBody("99", "katashiro.read", "{}"), header: own}); !strings.Contains(got.body, `{"action":"decline"}`) {
		t.Errorf("one question too many was put: %s", got.body)
	}
	for _, call := range calls {
		_ = call.body.Close()
	}
	kerneltest.Eventually(t, "the questions are taken back", func() bool { return w.ref.Account().Used() == 0 })
	if got := w.do(request{body: `{"jsonrpc":"2.0","id":` + first + `,"result":{"action":"accept"}}`, header: own}); got.status != 400 {
		t.Errorf("a question of a call that has ended was answered: %d", got.status)
	}
}

func TestLogRecordsComeToWhoAskedForThem(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		if call.Log != nil {
			call.Log([]byte(`{"level":"debug","data":"a"}`))
			call.Log([]byte(`{"level":"warning","logger":"l","data":{"n":9007199254740993}}`))
			call.Log([]byte(`{"level":"loud","data":"c"}`))
		}
		q.Answer(capability.Result{Raw: []byte(`{"content":[]}`)}, nil)
	})
	own := with(bearer(s.token), streams...)
	set := func(level string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"` + level + `"}}`
	}
	count := func(name, body string, header map[string]string, want int) {
		t.Helper()
		got := w.do(request{body: body, header: header})
		if n := strings.Count(got.body, `"method":"notifications/message"`); n != want || !strings.Contains(got.body, `"content":[]`) {
			t.Errorf("%s: %d records of %d: %s", name, n, want, got.body)
		}
		if want == 1 && !strings.Contains(got.body, `"params":{"level":"warning","logger":"l","data":{"n":9007199254740993}}}`) {
			t.Errorf("%s: not as it was written: %s", name, got.body)
		}
	}
	call := executeBody("5", "katashiro.read", "{}")
	count("who set no level", call, own, 0)
	if got := w.do(request{body: set("quiet"), header: own}); !strings.Contains(got.body, "-32602") {
		t.Errorf("a level that is none: %s", got.body)
	}
	if got := w.do(request{body: set("debug")}); !strings.Contains(got.body, "-32601") {
		t.Errorf("somebody without a token set a level: %s", got.body)
	}
	for level, want := range map[string]int{"debug": 2, "info": 1, "warning": 1, "error": 0} {
		if got := w.do(request{body: set(level), header: own}); got.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Fatalf("%s: %s", level, got.body)
		}
		count(level, call, own, want)
		count(level+" without a stream", call, with(own, "Accept", "application/json"), 0)
	}

	w.do(request{body: hello(`{}`), header: own})
	count("another client", call, own, 0)

	for level, want := range map[string]int{"": 0, `,"io.modelcontextprotocol/logLevel":"debug"`: 2, `,"io.modelcontextprotocol/logLevel":"info"`: 1, `,"io.modelcontextprotocol/logLevel":"quiet"`: 0} {
		count("stateless "+level, modernExecute(5, `{}`, level, ""), modernHeader(s.token), want)
		count("stateless, held, "+level, modernExecute(5, `{"elicitation":{}}`, level+`,"progressToken":1`, ""), modernHeader(s.token), want)
	}
}

func modernExecute(id int, capabilities, meta, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s%s},"name":"execute_capability","arguments":{"name":"katashiro.read"}%s}}`, id, capabilities, meta, more)
}

func modernHeader(token string) map[string]string {
	return with(bearer(token), "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_capability")
}

func TestAStatelessCallIsHeldWhileItsUserIsAsked(t *testing.T) {
	w := newWorld(t, nil)
	s, other := w.session("alice", capability.Ready, asks(form)), w.session("bob", capability.Ready, asks(form))
	const can = `{"elicitation":{}}`
	ask := func(token, more string) (state, body string) {
		t.Helper()
		got := w.do(request{body: modernExecute(7, can, "", more), header: modernHeader(token)})
		_, rest, ok := strings.Cut(got.body, `"requestState":"`)
		if !ok {
			return "", fmt.Sprint(got.status, got.body)
		}
		return rest[:strings.IndexByte(rest, '"')], got.body
	}
	answered := func(state, answer string) string {
		return `,"requestState":"` + state + `","inputResponses":{"else":1,"answer":` + answer + `}`
	}
	state, body := ask(s.token, "")
	if want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"answer":{"method":"elicitation/create","params":` + strings.Replace(form, "Your", "mail asks: Your", 1) + `}},"requestState":"` + state + `"}}`; body != want {
		t.Fatalf("got  %s\nwant %s", body, want)
	}
	for name, r := range map[string]request{
		"another session":  {body: modernExecute(8, can, "", answered(state, `{"action":"accept"}`)), header: modernHeader(other.token)},
		"nobody":           {body: modernExecute(8, can, "", answered(state, `{"action":"accept"}`)), header: with(modernHeader(""), "Authorization", "")},
		"another state":    {body: modernExecute(8, can, "", answered(state+"x", `{"action":"accept"}`)), header: modernHeader(s.token)},
		"another call":     {body: strings.Replace(modernExecute(8, can, "", answered(state, `{"action":"accept"}`)), `"name":"katashiro.read"`, `"name":"katashiro.write"`, 1), header: modernHeader(s.token)},
		"a number":         {body: modernExecute(8, can, "", `,"requestState":7,"inputResponses":{"answer":{"action":"accept"}}`), header: modernHeader(s.token)},
		"an empty state":   {body: modernExecute(8, can, "", answered("", `{"action":"accept"}`)), header: modernHeader(s.token)},
		"other characters": {body: modernExecute(8, can, "", answered(`\u0000`, `{"action":"accept"}`)), header: modernHeader(s.token)},
	} {
		if got := w.do(r); got.status != 400 || !strings.Contains(got.body, "-32602") {
			t.Errorf("%s joined the call: %d %s", name, got.status, got.body)
		}
	}
	// Without an answer it is asked again, under another state.
	for _, more := range []string{`,"requestState":"` + state + `"`, answered("STATE", `"yes"`), answered("STATE", `{"action":"perhaps"}`)} {
		again, body := ask(s.token, strings.Replace(more, "STATE", state, 1))
		if again == "" || again == state {
			t.Fatalf("not asked again: %s", body)
		}
		state = again
	}
	accepted := modernExecute(9, can, "", answered(state, `{"action":"accept","content":{"n":9007199254740993}}`))
	got := w.do(request{body: accepted, header: modernHeader(s.token)})
	if want := `{"jsonrpc":"2.0","id":9,"result":{"resultType":"complete","content":[],"structuredContent":{"action":"accept","content":{"n":9007199254740993}}}}`; got.body != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	if got := w.do(request{body: accepted, header: modernHeader(s.token)}); got.status != 400 {
		t.Errorf("answered twice: %s", got.body)
	}
	calls := 0
	for _, e := range w.audit.all() {
		if e.Event == capability.EventCall {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("%d calls were made of one", calls)
	}
	atRest(t, w)
	kerneltest.Eventually(t, "the session's account is as before", func() bool { return s.desk.Account().Used() == s.idle })
	if got := w.do(request{body: modernExecute(9, `{}`, "", ""), header: modernHeader(s.token)}); !strings.Contains(got.body, `"none"`) {
		t.Errorf("a client that did not say that it can ask was asked: %s", got.body)
	}
}

func TestWhatIsHeldGoesWithItsSession(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, asks(form))
	own := with(bearer(s.token), streams...)
	w.do(request{body: hello(`{"elicitation":{}}`), header: own})
	call := w.stream(t, executeBody("5", "katashiro.read", `{"i":1}`), own)
	call.next()
	for range 3 {
		if got := w.do(request{body: modernExecute(7, `{"elicitation":{}}`, "", ""), header: modernHeader(s.token)}); !strings.Contains(got.body, "input_required") {
			t.Fatal(got.body)
		}
	}
	if used := w.ref.Account().Used(); used < 4*questionBytes {
		t.Errorf("open questions cost %d bytes", used)
	}
	w.tokens.revoke(s.token)
	s.desk.Stop(nil)
	kerneltest.Eventually(t, "nothing is kept of the session", func() bool { return w.ref.Account().Used() == 0 && s.desk.Account().Used() == 0 })
}
