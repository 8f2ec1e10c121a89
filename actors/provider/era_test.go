package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// modernServer speaks the era without a handshake only; tools are the elements of its list.
func modernServer(tools, supported string) *fakeServer {
	s := newFakeServer()
	s.tools = tools
	s.answer = func(l *fakeLink, m said) bool {
		switch m.method {
		case "initialize":
			l.say(string(jsonrpc.AppendRawError(nil, m.id, []byte(`{"code":-32022,"message":"no","data":{"supported":`+supported+`,"requested":"2025-11-25"}}`))))
		case "server/discover":
			l.reply(m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"new","version":"1"}}`)
		case "tools/call":
			return ok(l, m)
		default:
			return false
		}
		return true
	}
	return s
}

func TestAServerOfTheEraWithoutAHandshakeIsFoundOutAndRemembered(t *testing.T) {
	s := modernServer(`{"name":"buy","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Count"}}}},{"name":"bad","inputSchema":{"type":"object","properties":{"n":{"type":"array","x-mcp-header":"X"}}}}`, `["2026-07-28"]`)
	cfg := with(s, func(e *mcpjson.Server) { e.PingInterval = time.Minute })
	cfg.Set.IdleTTL = 10 * time.Minute
	play(t, cfg, func(w *world) {
		if o := w.call("buy"); o.err != nil || o.result == "" {
			t.Fatalf("%+v", o)
		}
		if s.dials() != 2 || s.peak() != 1 || !s.last().modern || s.first().modern {
			t.Errorf("%d connections, %d at a time", s.dials(), s.peak())
		}
		if all := w.tools().List.All(); len(all) != 1 || !strings.Contains(w.tools().Reason, "x-mcp-header") {
			t.Errorf("%d tools, %q", len(all), w.tools().Reason)
		}
		if headers := s.last().headers; len(headers) != 1 || headers[0] != [2]string{"Mcp-Param-Count", "1"} {
			t.Errorf("%v", headers)
		}
		w.pass(time.Hour)
		w.call("buy")
		if s.dials() != 3 || len(s.heard("initialize")) != 1 || len(s.heard("notifications/initialized")) != 0 || len(s.heard(mcp.MethodPing)) != 0 {
			t.Errorf("%d connections, %d handshakes", s.dials(), len(s.heard("initialize")))
		}
		if got := w.node("shop").Attrs["breaker"]; got != "closed" || s.last().s.speaks[0] != mcp.VersionModern {
			t.Error(got)
		}
	})
}

func TestNoEraIsTriedTwiceInOneAttempt(t *testing.T) {
	s := newFakeServer("buy")
	s.answer = func(l *fakeLink, m said) bool {
		l.say(string(jsonrpc.AppendRawError(nil, m.id, []byte(`{"code":-32601,"message":"no such method"}`))))
		return true
	}
	play(t, with(s), func(w *world) {
		o := w.call("buy")
		if unsent(t, o); s.dials() != 2 || w.state() != capability.Failed {
			t.Errorf("%d connections, %v: %v", s.dials(), w.state(), o.err)
		}
	})
}

func TestWhichErrorsSayThatAServerSpeaksTheOtherEra(t *testing.T) {
	version := func(supported string) error {
		return jsonrpc.ParseError([]byte(`{"code":-32022,"message":"no","data":{"supported":` + supported + `}}`))
	}
	for _, c := range []struct {
		kind   mcpjson.Kind
		modern bool
		err    error
		want   bool
	}{
		{mcpjson.HTTP, false, version(`["2026-07-28"]`), true},
		{mcpjson.HTTP, false, version(`["2025-06-18"]`), false},
		{mcpjson.HTTP, true, version(`["2025-06-18"]`), true},
		{mcpjson.HTTP, true, version(`["2026-07-28"]`), false},
		{mcpjson.HTTP, false, &jsonrpc.Error{Code: jsonrpc.MethodNotFound}, true},
		{mcpjson.HTTP, false, &jsonrpc.Error{Code: jsonrpc.Internal}, false},
		{mcpjson.HTTP, true, mcp.ErrVersion, true},
		{mcpjson.HTTP, false, errCut, false},
		{mcpjson.HTTP, false, nil, false},
		{mcpjson.Stdio, false, version(`["2026-07-28"]`), false},
		{mcpjson.SSE, false, &jsonrpc.Error{Code: jsonrpc.MethodNotFound}, false},
	} {
		if got := otherEra(c.kind, c.modern, c.err); got != c.want {
			t.Errorf("%v, modern %v, %v: %v", c.kind, c.modern, c.err, got)
		}
	}
}

func TestAnEntryThatSaysSoIsSpokenToWithoutAHandshakeFromTheStart(t *testing.T) {
	s := modernServer(`{"name":"buy","inputSchema":{}}`, `["2026-07-28"]`)
	answer, asked := s.answer, 0
	s.answer = func(l *fakeLink, m said) bool {
		if m.method == "server/discover" {
			if asked++; asked == 1 { // a version that is refused and named is asked for again, once
				l.say(string(jsonrpc.AppendRawError(nil, m.id, []byte(`{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`))))
				return true
			}
		}
		return answer(l, m)
	}
	play(t, with(s, func(e *mcpjson.Server) { e.Modern = true }), func(w *world) {
		if o := w.call("buy"); o.err != nil {
			t.Fatalf("%+v", o)
		}
		if s.dials() != 1 || len(s.heard("initialize")) != 0 || len(s.heard("server/discover")) != 2 {
			t.Errorf("%d connections, %d handshakes, %d questions", s.dials(), len(s.heard("initialize")), len(s.heard("server/discover")))
		}
	})
}

func TestAHandshakeThatEndsInTheVersionWithoutOneTurnsToThatEra(t *testing.T) {
	s := modernServer(`{"name":"buy","inputSchema":{}}`, `["2026-07-28"]`)
	answer := s.answer
	s.answer = func(l *fakeLink, m said) bool {
		if m.method == "initialize" {
			l.reply(m, `{"protocolVersion":"2026-07-28","capabilities":{"tools":{}},"serverInfo":{"name":"new","version":"1"}}`)
			return true
		}
		return answer(l, m)
	}
	play(t, with(s), func(w *world) {
		if o := w.call("buy"); o.err != nil || s.dials() != 2 || !s.last().modern {
			t.Fatalf("%+v, %d connections", o, s.dials())
		}
	})
}

func TestAServerOfTheEraWithoutAHandshakeIsListenedTo(t *testing.T) {
	s := modernServer(`{"name":"buy"}`, `["2026-07-28"]`)
	answer := s.answer
	s.answer = func(l *fakeLink, m said) bool {
		if m.method == "server/discover" {
			l.reply(m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
			return true
		}
		return answer(l, m)
	}
	play(t, with(s, func(e *mcpjson.Server) { e.Modern = true }), func(w *world) {
		w.discover()
		asked := s.heard(mcp.MethodListen)
		if len(asked) != 1 || asked[0].params != `{"notifications":{"toolsListChanged":true}}` {
			t.Fatalf("%+v", asked)
		}
		s.last().sayAbout(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`, asked[0].id)
		w.pass(time.Hour)
		s.set(func() { s.tools += `,{"name":"sell"}` })
		s.last().sayAbout(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`, asked[0].id)
		w.pass(time.Second)
		if n := len(w.tools().List.All()); n != 2 || len(s.heard(mcp.MethodListen)) != 1 {
			t.Fatalf("%d tools", n)
		}
		s.set(func() { s.tools += `,{"name":"swap"}` })
		s.last().to.Failed(asked[0].id, errCut) // the stream ended
		w.pass(listenAgain + time.Second)
		if n := len(w.tools().List.All()); n != 3 || len(s.heard(mcp.MethodListen)) != 2 || w.state() != capability.Ready {
			t.Errorf("%d tools, %d subscriptions", n, len(s.heard(mcp.MethodListen)))
		}
		s.last().say(string(jsonrpc.AppendRawError(nil, s.heard(mcp.MethodListen)[1].id, []byte(`{"code":-32601,"message":"no"}`))))
		w.pass(time.Hour)
		if len(s.heard(mcp.MethodListen)) != 2 || w.state() != capability.Ready {
			t.Error("a server that has no subscriptions is asked again")
		}
	})
}
