package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// All of ACP passes through the pod, both ways, with the demo agent behind it.
func TestTheWholeOfACPPasses(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.queue", "1"))
	e := dial(t, p)
	e.other = func(f frame) (any, *rpcError, bool) {
		switch f.Method {
		case "fs/read_text_file":
			return object{"content": "the client's own\n"}, nil, true
		case "elicitation/create":
			return object{"action": "accept", "content": object{"answer": "yes"}}, nil, true
		case "_x/ask":
			return json.RawMessage(`{"n":1.50e3}`), nil, true
		case "_x/fail":
			return nil, &rpcError{Code: -32055, Message: "the client's own"}, true
		case "_x/open":
			return nil, nil, false
		}
		return nil, methodNotFound, f.ID != nil
	}
	var offered struct {
		AgentCapabilities struct {
			PromptCapabilities  map[string]bool
			SessionCapabilities map[string]any
		}
	}
	hello := e.call("initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"elicitation":{"form":{}},"x":1}}`)
	if err := json.Unmarshal(hello, &offered); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"image", "audio", "embeddedContext"} {
		if !offered.AgentCapabilities.PromptCapabilities[kind] {
			t.Errorf("offered: %s", hello)
		}
	}
	for _, method := range []string{"resume", "close", "list", "title", "additionalDirectories"} {
		if offered.AgentCapabilities.SessionCapabilities[method] == nil {
			t.Errorf("offered: %s", hello)
		}
	}
	var opened struct {
		SessionID     string
		Modes         struct{ CurrentModeID string }
		ConfigOptions []any
	}
	if err := json.Unmarshal(e.call("session/new", object{"cwd": "/", "mcpServers": []any{}}), &opened); err != nil || opened.Modes.CurrentModeID != "ask" || len(opened.ConfigOptions) != 2 {
		t.Fatalf("session/new: %+v, %v", opened, err)
	}
	session := opened.SessionID
	of := func(rest string) string { return fmt.Sprintf(`{"sessionId":%q%s}`, session, rest) }

	t.Run("client to agent", func(t *testing.T) {
		e.call("session/set_mode", of(`,"modeId":"auto"`))
		e.says(session, "/mode", "mode auto, pace fast\n")
		e.says(session, "/ask", "choice: allow (nobody was asked)\n")
		if result := e.call("session/set_config_option", of(`,"configId":"pace","value":"slow"`)); !strings.Contains(string(result), `"configOptions"`) {
			t.Errorf("set_config_option: %s", result)
		}
		e.says(session, "/mode", "mode auto, pace slow\n")
		e.refused(-32602, "session/set_mode", of(`,"modeId":"none"`))
		if result := e.call("_demo/echo", of(`,"n":1.50e3,"s":"\u003c"`)); !strings.Contains(string(result), `"n":1.50e3,"s":"\u003c"`) {
			t.Errorf("_demo/echo: %s", result)
		}
		e.refused(-32601, "_x/unknown", of(``))
		e.refused(-32601, "_x/unknown", `{}`)
		e.refused(-32602, "_x/unknown", `{"sessionId":"sess_00000000-0000-4000-8000-000000000000"}`)
		e.refused(-32601, "session/update", of(``))
		if result := e.call("session/set_title", of(`,"title":"mine"`)); result == nil {
			t.Error("session/set_title was not answered")
		}
		e.notify("_demo/note", of(`,"x":1.0`))
		e.await("what the agent notes", func() bool {
			for _, f := range e.frames {
				if f.Method == "_demo/noted" && strings.Contains(f.raw, session) {
					return true
				}
			}
			return false
		})
		blocks := `[{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"audio","mimeType":"audio/wav","data":"aGk="},{"type":"resource","resource":{"uri":"x:","text":"t"}},{"type":"text","text":"said"}]`
		if answer := e.answer(e.send("session/prompt", of(`,"prompt":`+blocks))); stopReason(answer) != "end_turn" {
			t.Errorf("a prompt of all kinds: %s", answer.raw)
		}
		var back struct {
			Modes struct{ CurrentModeID string }
		}
		if err := json.Unmarshal(e.call("session/resume", of(`,"cwd":"/"`)), &back); err != nil || back.Modes.CurrentModeID != "auto" {
			t.Errorf("resumed with %+v, %v", back, err)
		}
	})
	t.Run("agent to client", func(t *testing.T) {
		e.says(session, "/read /anything", "the client's own\n")
		e.says(session, "/elicit which?", `elicited: {"action":"accept","content":{"answer":"yes"}}`+"\n")
		e.says(session, `/request _x/ask {"a":1.0}`, `result: {"n":1.50e3}`+"\n")
		e.says(session, `/request _x/fail {}`, `refused: {"code":-32055,"message":"the client's own","data":null}`+"\n")
		for _, line := range []string{`terminal/create {"command":"x"}`, `fs/write_text_file {"path":"/x","content":""}`, `mcp/connect {"acpId":"x"}`, `_mcp/connect {"acp_id":"x"}`, `_acpod/x {}`} {
			if said, _ := e.prompt(session, "/request "+line); !strings.HasPrefix(said, `refused: {"code":-32601`) {
				t.Errorf("%s was answered %s", line, said)
			}
		}
		e.says(session, "/notify _x/note {\"a\":1.50}\n/notify _acpod/turn_ended {}\n/notify mcp/message {}", "")
		if got := e.received("_x/note"); len(got) != 1 || !strings.Contains(got[0].raw, `"a":1.50`) || !strings.Contains(got[0].raw, session) {
			t.Errorf("notifications of the agent: %v", got)
		}
		if len(e.received("_acpod/turn_ended"))+len(e.received("mcp/message"))+len(e.received("mcp/connect")) != 0 {
			t.Error("the agent spoke in the pod's place")
		}
		e.says(session, `/update {"sessionUpdate":"of_tomorrow", "x":[1.50,"\u003c"]}`, "")
		updates := e.received("session/update")
		if last := updates[len(updates)-1].raw; !strings.Contains(last, `{"sessionUpdate":"of_tomorrow", "x":[1.50,"\u003c"]}`) {
			t.Errorf("the last update is %s", last)
		}
	})
	t.Run("the ends of turns", func(t *testing.T) {
		e.says(session, "/twice", "")
		e.says(session, "/late behind", "")
		e.await("what was said behind a turn", func() bool {
			for _, f := range e.frames {
				if strings.Contains(chunk(f, session), "behind") {
					return true
				}
			}
			return false
		})
		e.says(session, "again", "echo: again\n")
		for _, line := range []string{"/sour 1h", "/sleep 1h"} {
			id, behind := e.sendPrompt(session, line), e.sendPrompt(session, "behind it")
			e.refused(-32001, "session/prompt", object{"sessionId": session, "prompt": lines("too many")})
			e.notify("session/cancel", object{"sessionId": session})
			if one, two := e.answer(id), e.answer(behind); stopReason(one) != "cancelled" || stopReason(two) != "cancelled" {
				t.Errorf("%s: %s and %s", line, one.raw, two.raw)
			}
		}
		id, behind := e.sendPrompt(session, "/sleep 1h"), e.sendPrompt(session, "behind it")
		e.write(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + id + `}}`)
		if one, two := e.answer(id), e.answer(behind); stopReason(one) != "cancelled" || stopReason(two) != "end_turn" {
			t.Errorf("one is taken back: %s and %s", one.raw, two.raw)
		}
	})
	t.Run("what the agent has open", func(t *testing.T) {
		open := func() frame {
			t.Helper()
			var found frame
			before := len(e.received("_x/open"))
			e.sendPrompt(session, "/request _x/open {}")
			e.await("the agent's request", func() bool {
				n := 0
				for _, f := range e.frames {
					if f.Method == "_x/open" {
						n, found = n+1, f
					}
				}
				return n > before
			})
			return found
		}
		taken := open()
		e.notify("session/cancel", object{"sessionId": session})
		e.await("the agent's cancel, by the pod's id", func() bool {
			for _, f := range e.frames {
				if f.Method == "$/cancel_request" && strings.Contains(string(f.Params), `"requestId":`+string(taken.ID)+"}") {
					return true
				}
			}
			return false
		})
		open()
		e.hangUp() // the agent hears of it at once, and its turn goes on
		again := dial(t, p)
		again.hello()
		again.resume(session)
		again.await("what was said meanwhile", func() bool {
			for _, f := range again.frames {
				if strings.HasPrefix(chunk(f, session), `refused: {"code":-32603`) {
					return true
				}
			}
			return false
		})
	})
}

// Where the pod answers permissions, a client cannot switch the asking off.
func TestModesAreTheOperators(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.permissions", `"deny"`, "agent.modes", `["ask"]`))
	e := dial(t, p)
	session := e.open()
	of := func(rest string) string { return fmt.Sprintf(`{"sessionId":%q%s}`, session, rest) }
	e.refused(-32602, "session/set_mode", of(`,"modeId":"auto"`))
	e.refused(-32602, "session/set_config_option", of(`,"configId":"mode","value":"auto"`))
	e.refused(-32602, "session/set_config_option", of(`,"configId":"nothing","value":"auto"`))
	e.refused(-32601, "_demo/echo", of(``))
	e.call("session/set_mode", of(`,"modeId":"ask"`))
	e.call("session/set_config_option", of(`,"configId":"pace","value":"slow"`))
	e.says(session, "/mode", "mode ask, pace slow\n")
	e.says(session, "/ask", "choice: reject\n")
}

// A login runs in a process of its own, and what the agent offers is another thing after it.
func TestAClientLogsTheAgentIn(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.env", `{DEMO_AGENT = "login"}`))
	e := dial(t, p)
	hello := func() (methods []any, logout bool) {
		var got struct {
			AuthMethods       []any
			AgentCapabilities struct{ Auth map[string]any }
		}
		if err := json.Unmarshal(e.hello(), &got); err != nil {
			t.Fatal(err)
		}
		return got.AuthMethods, got.AgentCapabilities.Auth["logout"] != nil
	}
	if methods, logout := hello(); len(methods) != 1 || logout {
		t.Errorf("before the login: %v, %v", methods, logout)
	}
	e.refused(-32601, "logout", `{}`)
	if failed := e.refused(-32000, "session/new", object{"cwd": "/", "mcpServers": []any{}}); failed.Data["scope"] != nil {
		t.Errorf("it is the agent's own error: %+v", failed)
	}
	e.refused(-32602, "authenticate", `{"methodId":"none"}`)
	if result := e.call("authenticate", `{"methodId":"demo"}`); !reflect.DeepEqual(string(result), "{}") {
		t.Errorf("authenticate: %s", result)
	}
	p.await("what the agent offers now", func() bool { _, logout := hello(); return logout })
	session := e.newSession()
	e.says(session, "in", "echo: in\n")
	e.call("session/close", object{"sessionId": session})
	e.call("logout", `{}`)
	e.refused(-32000, "session/new", object{"cwd": "/", "mcpServers": []any{}})
	p.await("the end of all agents", func() bool { return p.tree().Pod.Agents == 0 })
}

// An agent that exits behind its last word takes no later prompt with it.
func TestAnAgentThatLeavesAfterEachTurn(t *testing.T) {
	t.Parallel()
	p := startPod(t, scripted(t, baseConfig, "leaves after a turn", ""))
	e := dial(t, p)
	session := e.open()
	for n := range 6 {
		if streamed, answer := e.prompt(session, "hello"); streamed != "here" || stopReason(answer) != "end_turn" {
			t.Fatalf("turn %d streamed %q and was answered %s", n, streamed, answer.raw)
		}
	}
}
