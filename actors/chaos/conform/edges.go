package conform

import (
	"fmt"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// What is no JSON-RPC, no ACP, or close to it.

// deepest is how many arrays and objects may stand in each other, the envelope counted.
const deepest = 10_000

// hello1 is the beginning of an initialize that a row writes by hand.
const hello1 = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`

func edgeRows() []Row {
	return []Row{
		{Name: "a higher protocol version is answered with 1", Expected: "a result with protocolVersion 1", check: func(a *attempt) {
			p := a.enter()
			m := p.call("initialize", object{"protocolVersion": 5})
			if result, _ := decode[struct {
				Version int `json:"protocolVersion"`
			}](m.Result); result.Version != 1 {
				a.fail(m.show(), "protocolVersion is not 1")
			}
			a.note("1")
		}},
		{Name: "protocol version 0, or none, is refused", Expected: "-32602", check: func(a *attempt) {
			p := a.enter()
			for _, params := range []string{`{"protocolVersion":0}`, `{}`, `{"protocolVersion":"1"}`} {
				_ = p.refused(p.answer(p.send("initialize", params)), jsonrpc.InvalidParams, "initialize "+params)
			}
			a.note("-32602")
		}},
		{Name: "nothing comes before initialize", Expected: "-32002", check: func(a *attempt) {
			p := a.enter()
			for _, method := range []string{"session/new", "session/resume", "session/prompt", "session/list", "session/close"} {
				_ = p.refused(p.answer(p.send(method, object{"cwd": "/", "mcpServers": []any{}})), jsonrpc.NotInitialized, method+" before initialize")
			}
			a.note("-32002")
		}},
		{Name: "what is no JSON is said to be none", Expected: "-32700 with id null, and the connection lives", check: badFrames(jsonrpc.CodeParse, "null",
			`this is no JSON`, `{"jsonrpc":"2.0","id":1,"method":"_wirecheck/ping"`, `{"jsonrpc":"2.0","id":01,"method":"_wirecheck/ping"}`, ``)},
		{Name: "what is nested deeper than 10,000 is no JSON", Expected: "-32700 with id null; 10,000 pass", check: func(a *attempt) {
			nested := func(id string, depth int) string {
				return `{"jsonrpc":"2.0","id":` + id + `,"method":"_wirecheck/ping","params":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
			}
			p := a.greeted()
			p.expect(`"deepest"`)
			p.raw(nested(`"deepest"`, deepest))
			_ = p.refused(p.answer(`"deepest"`), jsonrpc.MethodNotFound, "a request that is nested 10,000 deep")
			p.bad(nested("1", deepest+1), jsonrpc.CodeParse, "null")
			p.ping()
			a.note("-32700 at 10,001")
		}},
		{Name: "a batch is refused", Expected: "-32600 with id null, nothing of it executed", check: badFrames(jsonrpc.InvalidRequest, "null",
			`[{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}]`, `[{"jsonrpc":"2.0","id":1,"method":"_wirecheck/ping"},{"jsonrpc":"2.0","id":2,"method":"_wirecheck/ping"}]`, `[]`)},
		{Name: "a repeated member of the envelope is refused", Expected: "-32600 with id null", check: badFrames(jsonrpc.InvalidRequest, "null",
			`{"jsonrpc":"2.0","id":1,"id":2,"method":"_wirecheck/ping"}`, `{"jsonrpc":"2.0","id":1,"method":"session/list","method":"_wirecheck/ping"}`,
			`{"jsonrpc":"2.0","id":1,"method":"_wirecheck/ping","params":{},"p\u0061rams":{}}`)},
		{Name: "what is only carried is not judged", Expected: "repeated members and lone surrogates inside params pass", check: func(a *attempt) {
			p := a.greeted()
			p.expect(`"odd"`)
			p.raw(`{"jsonrpc":"2.0","id":"odd","method":"_wirecheck/ping","params":{"a":1,"a":2,"b":"\ud800","c":1e400}}`)
			_ = p.refused(p.answer(`"odd"`), jsonrpc.MethodNotFound, "a request with odd params")
			a.note("-32601")
		}},
		{Name: "an id of another type is refused", Expected: "-32600 with id null", check: badFrames(jsonrpc.InvalidRequest, "null",
			hello1Of(`{}`), hello1Of(`[1]`), hello1Of(`true`), hello1Of(`1.5`))},
		{Name: "another version of JSON-RPC is refused", Expected: "-32600 with its id", check: badFrames(jsonrpc.InvalidRequest, `"v1"`,
			`{"jsonrpc":"1.0","id":"v1","method":"initialize","params":{"protocolVersion":1}}`, `{"jsonrpc":"2.1","id":"v1","method":"session/list"}`)},
		{Name: "what is no request is refused", Expected: "-32600 with id null", check: badFrames(jsonrpc.InvalidRequest, "null",
			`{"jsonrpc":"2.0","id":1}`, `{"id":1,"method":"initialize","params":{"protocolVersion":1}}`, `{"jsonrpc":"2.0","id":1,"method":7}`)},
		{Name: "nonsense without end closes the connection", Expected: "at most 64 answers in 10 s, then close 1013", check: func(a *attempt) {
			const budget, sent = 64, 80
			p := a.greeted()
			p.sent["null"] = sent
			for range sent {
				if p.write("nonsense") != nil {
					break
				}
			}
			p.closed(1013)
			if n := len(p.answered["null"]); n > budget {
				a.fail(fmt.Sprintf("%d answers, then close 1013", n), "more than %d were answered", budget)
			}
			a.note("%d answers, then close 1013", len(p.answered["null"]))
		}},
		{Name: "a notification is never answered", Expected: "silence, also where it is wrong, and nothing executed", check: func(a *attempt) {
			p := a.greeted()
			listed := p.call("session/list", object{})
			p.silent("a notification", func() {
				p.notify("wirecheck/unknown", object{})
				p.notify("session/new", object{"cwd": "/", "mcpServers": []any{}})
				p.notify("session/prompt", object{})
				p.notify("initialize", object{"protocolVersion": 0})
				p.raw(`{"jsonrpc":"1.0","method":"initialize"}`)
			})
			if after := p.call("session/list", object{}); string(after.Result) != string(listed.Result) {
				a.fail(after.show(), "a session/new without an id was executed")
			}
			a.note("silence")
		}},
		{Name: "a cancel of nothing is silent", Expected: "silence", check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			p.silent("a cancel of nothing", func() {
				p.notify("session/cancel", object{"sessionId": "sess_00000000-0000-4000-8000-000000000000"})
				p.notify("session/cancel", `{"sessionId":7}`)
				p.notify("session/cancel", `{}`)
				p.notify("$/cancel_request", object{"requestId": 4711})
				s.cancel()
			})
			a.note("silence")
		}},
		{Name: "session/cancel as a request is refused", Expected: "-32600 with its id", check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			_ = p.refused(p.answer(p.send("session/cancel", object{"sessionId": s.id})), jsonrpc.InvalidRequest, "session/cancel with an id")
			a.note("-32600")
		}},
		{Name: "an answer that nobody waits for is taken in silence", Expected: "silence", check: func(a *attempt) {
			p := a.greeted()
			p.silent("an answer", func() {
				for _, id := range []string{`4711`, `"4711"`, `null`} {
					p.raw(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
					p.raw(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"late"}}`)
				}
			})
			a.note("silence")
		}},
		{Name: "a binary frame is ignored", Expected: "silence", check: func(a *attempt) {
			p := a.greeted()
			p.silent("a binary frame", func() {
				_ = p.socket.Frame(2, true, []byte(`{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}`))
			})
			a.note("silence")
		}},
		{Name: "session/new without cwd or mcpServers is refused", Expected: "-32602", check: badNew("", `{"mcpServers":[]}`, `{"cwd":7,"mcpServers":[]}`, `{"cwd":"/","mcpServers":7}`, `[]`)},
		{
			Name: "a cwd that is no folder of the pod is refused", Expected: "-32602 with data.reason cwd",
			check: badNew("cwd", `{"cwd":"relative","mcpServers":[]}`, `{"cwd":"","mcpServers":[]}`, `{"cwd":"/no/such/folder/of/wire-check","mcpServers":[]}`, `{"cwd":"/proc/self/status","mcpServers":[]}`,
				`{"cwd":"/proc","mcpServers":[]}`, `{"cwd":"/","additionalDirectories":["/proc"],"mcpServers":[]}`, `{"cwd":"/","additionalDirectories":["relative"],"mcpServers":[]}`),
		},
		{Name: "a prompt without its session is refused", Expected: "-32602", check: func(a *attempt) {
			p := a.greeted()
			text := []any{object{"type": "text", "text": greeting}}
			for _, params := range []any{object{"prompt": text}, object{"sessionId": 7, "prompt": text}, object{"sessionId": "sess_00000000-0000-4000-8000-000000000000", "prompt": text}} {
				_ = p.refused(p.answer(p.send("session/prompt", params)), jsonrpc.InvalidParams, "a prompt without its session")
			}
			a.note("-32602")
		}},
		{Name: "an empty prompt is refused", Expected: "-32602 for nothing and for only white space", needs: needTurns, check: badPrompt("",
			`[]`, `[{"type":"text","text":""}]`, `[{"type":"text","text":" \n\t"},{"type":"text","text":" "}]`)},
		{Name: "a block of an unknown kind is refused by its name", Expected: "-32602 naming it", needs: needTurns, check: badPrompt("wirecheck_kind", `[{"type":"wirecheck_kind"}]`)},
		{Name: "a block that is no block is refused", Expected: "-32602", needs: needTurns, check: badPrompt("", `[{}]`, `[7]`, `7`, `[{"type":"text"}]`)},
		{Name: "an image is taken or refused as initialize said", Expected: "-32602 naming image, or a turn", needs: needTurns, check: imageAsOffered},
		{Name: "a resource link passes", Expected: "end_turn", needs: needDemo, check: func(a *attempt) {
			p := a.greeted()
			s := p.open()
			m := p.answer(s.promptBlocks(object{"type": "text", "text": greeting}, object{"type": "resource_link", "name": "a page", "uri": "https://wire-check.invalid/"}))
			if stop(m) != "end_turn" {
				a.fail(m.show(), "a resource link is for every agent")
			}
			a.note("end_turn")
		}},
		{Name: "a long text arrives whole", Expected: "200,000 bytes in one update", needs: needDemo, check: func(a *attempt) {
			const size = 200_000
			a.greeted().open().says(fmt.Sprintf("/emit %d", size), strings.Repeat("e", size))
			a.note("%d bytes", size)
		}},
		{Name: "text of all scripts arrives as it was sent", Expected: "CJK, combining marks and emoji of several code points, intact", needs: needDemo, check: func(a *attempt) {
			const text = "樱花が咲く ☕ 👩‍👩‍👧‍👦 🏳️‍🌈 é ñ e\u0301 <b>&amp;</b> \\u003c \u2028 العربية"
			a.greeted().open().says(text, "echo: "+text+"\n")
			a.note("intact")
		}},
	}
}

func hello1Of(id string) string {
	return strings.Replace(hello1, `"id":1`, `"id":`+id, 1) + `{"protocolVersion":1}}`
}

// bad sends a frame and wants that error with that id.
func (p *peer) bad(frame string, code int, id string) {
	p.expect(id)
	p.raw(frame)
	_ = p.refused(p.answer(id), code, shown(frame))
}

// badFrames wants each frame to be refused so, on one connection that lives on.
func badFrames(code int, id string, frames ...string) func(*attempt) {
	return func(a *attempt) {
		p := a.greeted()
		for _, frame := range frames {
			p.bad(frame, code, id)
		}
		p.ping()
		a.note("%d with id %s", code, id)
	}
}

// badNew wants each session/new to be refused with -32602 and, where it is given, that reason.
func badNew(reason string, params ...string) func(*attempt) {
	return func(a *attempt) {
		p := a.greeted()
		for _, one := range params {
			m := p.answer(p.send("session/new", one))
			e := p.refused(m, jsonrpc.InvalidParams, "session/new "+one)
			if reason != "" && e.Reason() != reason {
				a.fail(m.show(), "data.reason is not %s for session/new %s", reason, one)
			}
		}
		a.note("-32602")
	}
}

// badPrompt wants each prompt to be refused with -32602 and, where it is given, that word in the message.
func badPrompt(word string, prompts ...string) func(*attempt) {
	return func(a *attempt) {
		p := a.greeted()
		s := p.open()
		for _, prompt := range prompts {
			m := p.answer(p.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":%s}`, s.id, prompt)))
			e := p.refused(m, jsonrpc.InvalidParams, "the prompt "+prompt)
			if !strings.Contains(e.Message, word) {
				a.fail("message "+jsonrpc.Show(e.Message), "it does not name %s", word)
			}
		}
		a.note("-32602")
	}
}

// onePixel is the smallest picture there is.
const onePixel = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

func imageAsOffered(a *attempt) {
	if a.survey.images && a.survey.agent != agentDemo {
		a.skip("the agent takes images, and is sent nothing but a greeting")
	}
	p := a.greeted()
	s := p.open()
	m := p.answer(s.promptBlocks(object{"type": "text", "text": greeting}, object{"type": "image", "mimeType": "image/gif", "data": onePixel}))
	if a.survey.images {
		if stop(m) != "end_turn" {
			a.fail(m.show(), "initialize said that images are taken")
		}
		a.note("a turn")
		return
	}
	if e := p.refused(m, jsonrpc.InvalidParams, "an image, which initialize did not offer,"); !strings.Contains(e.Message, "image") {
		a.fail("message "+jsonrpc.Show(e.Message), "it does not name image")
	}
	a.note("-32602")
}
