package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The main job: a prompt in, a tool call out through the client's own socket, in each of the wire's generations.
func TestAnExtensionOfEachGenerationIsDeclaredListedCalledAndEnded(t *testing.T) {
	t.Parallel()
	for _, generation := range []generation{genA, genB, genC, gen0} {
		t.Run(string(generation), func(t *testing.T) {
			t.Parallel()
			p := startPod(t, baseConfig)
			e := dial(t, p)
			server := newServer("katashiro", generation, "katashiro.click", "katashiro.read_dom")
			server.run = func(name string, arguments json.RawMessage) (any, *rpcError, bool) {
				switch {
				case strings.Contains(string(arguments), "error"):
					return nil, &rpcError{Code: -32602, Message: "no element matches"}, false
				case strings.Contains(string(arguments), "hold"):
					return nil, nil, true
				}
				return textResult(name + " did " + string(arguments)), nil, false
			}
			session := e.open(server)

			e.says(session, "/search", "katashiro.click\nkatashiro.read_dom\n")
			e.says(session, `/call katashiro.click {"selector":"#bump"}`, `katashiro.click did {"selector":"#bump"}`+"\n")
			if streamed, answer := e.prompt(session, `/call katashiro.click {"a":"error"}`); !strings.Contains(streamed, "no element matches") || stopReason(answer) != "end_turn" {
				t.Errorf("a tool's error was streamed as %q (%s)", streamed, answer.raw)
			}

			// A cancel goes all the way down to the client, and the turn ends as cancelled.
			calls := server.callCount()
			id := e.sendPrompt(session, `/call katashiro.click {"a":"hold"}`)
			e.await("the call at the client", func() bool { return server.callCount() > calls })
			e.notify("session/cancel", object{"sessionId": session})
			if reason := stopReason(e.answer(id)); reason != "cancelled" {
				t.Errorf("the cancelled turn ended with %q", reason)
			}
			e.await("the cancel at the client", func() bool { return server.cancelled() > 0 })

			e.call("session/close", object{"sessionId": session})
			if generation != genC { // which has no connection to end
				e.await("the disconnect", func() bool { return len(server.ended()) == 1 })
				if server.ended()[0] != server.connected[0] {
					t.Errorf("%v was ended, %v was opened", server.ended(), server.connected)
				}
				if server.initialized != 1 {
					t.Errorf("notifications/initialized came %d times", server.initialized)
				}
			}
			e.hangUp()
			p.rest()
		})
	}
}

// What the agent streams reaches the client unchanged, in order, and before the turn's answer.
func TestUpdatesAreCompleteInOrderAndBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	p := startPod(t, baseConfig)
	e := dial(t, p)
	session := e.open()
	streamed, answer := e.prompt(session, "/flood 600\n/emit 3000000\nthe last words")
	if stopReason(answer) != "end_turn" {
		t.Fatalf("answered %s", answer.raw)
	}
	rest := streamed
	for i := range 600 {
		want := fmt.Sprintf("%08d ", i)
		if len(rest) < 1024 || rest[:len(want)] != want {
			t.Fatalf("update %d is %.20q", i, rest)
		}
		rest = rest[1024:]
	}
	if rest != strings.Repeat("e", 3000000)+"echo: the last words\n" {
		t.Errorf("after the flood came %d bytes ending with %.40q", len(rest), rest[max(0, len(rest)-40):])
	}
}

// A result is carried, not interpreted: what a client answers reaches the agent to the byte.
func TestAResultPassesToTheByte(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.click")
	odd := `{"content":[{"type":"text","text":"\u003cb\u003e \ud800 é"}],"n":12345678901234567890,"x":1,"x":2 , "structuredContent":{"a" : 1e400}}`
	server.run = func(string, json.RawMessage) (any, *rpcError, bool) { return json.RawMessage(odd), nil, false }
	agent := e.facadeOf(e.open(server))
	if got := agent.execute("katashiro.click", `{}`).raw; !strings.Contains(got, odd) {
		t.Errorf("the result came as %s", got)
	}
}

// The arguments that an agent sends reach the client to the byte.
func TestArgumentsPassToTheByte(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`))
	e := dial(t, p)
	server := newServer("katashiro", genA, "katashiro.type")
	agent := e.facadeOf(e.open(server))
	odd := `{"text":"\u003c\ud83d","n" :12345678901234567890, "deep":{"a":[1.0,-0]}}`
	agent.execute("katashiro.type", odd)
	found := false
	for _, f := range e.received("mcp/message") {
		found = found || strings.Contains(f.raw, `"arguments":`+odd)
	}
	if !found {
		t.Errorf("the arguments came otherwise:\n%s", e.lastFrames(3))
	}
}
