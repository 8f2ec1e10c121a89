package conform

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Servers that a client declares: which of them are connected, and what goes through them.

func tunnelRows() []Row {
	rows := generationRows()
	return append(rows, []Row{
		{Name: "two servers are connected each once, by their own ids", Expected: "two mcp/connect with distinct ids", needs: needSecond, check: func(a *attempt) {
			p := a.greeted()
			one, two := newServer(a.survey.names[0], genA), newServer(a.survey.names[1], genA)
			p.openReady(one, two)
			p.rest(quiet)
			for _, s := range []*server{one, two} {
				s.connectedOnce(a)
			}
			a.note("two connects")
		}},
		{Name: "each call lands at its own server", Expected: "the result of the server that published the tool", needs: needSecond | needCaller, check: func(a *attempt) {
			p := a.greeted()
			var servers []*server
			for _, name := range a.survey.names[:2] {
				one := newServer(name, genA)
				one.run = func(toolCall) reply { return reply{result: textResult("served by " + name)} }
				servers = append(servers, one)
			}
			s := p.openReady(servers...)
			for _, name := range a.survey.names[:2] {
				s.wants(s.result(a.survey.toolOf(name), `{}`), "served by "+name)
			}
			a.note("each its own")
		}},
		{Name: "of acp and other declarations only acp is connected", Expected: "one mcp/connect, the others reported as ignored", check: func(a *attempt) {
			p := a.greeted()
			one := newServer(a.name(), genA)
			declared := append(p.declare(one), object{"type": "http", "name": "wirecheck-http", "url": "http://127.0.0.1:9/mcp", "headers": []any{}},
				object{"type": "sse", "name": "wirecheck-sse", "url": "http://127.0.0.1:9/sse", "headers": []any{}},
				object{"name": "wirecheck-stdio", "command": "/bin/false", "args": []any{}, "env": []any{}})
			s := p.openWith(object{"cwd": "/", "mcpServers": declared})
			s.ready(one.name)
			for _, name := range []string{"wirecheck-http", "wirecheck-sse", "wirecheck-stdio"} {
				if state := s.state(name).State; state != "ignored" {
					a.fail("state "+jsonrpc.Show(state), "%s is not said to be ignored", name)
				}
			}
			p.rest(quiet)
			one.connectedOnce(a)
			a.note("one connect, three ignored")
		}},
		{Name: "a server without a grant, or with a name that is none, is refused and never connected", Expected: "the session opens, state refused with a reason, no mcp/connect", check: func(a *attempt) {
			p := a.greeted()
			names := []string{"wirecheck-" + rand.Text()[:8], "bad name", ""}
			var declared []any
			for i, name := range names {
				declared = append(declared, object{"type": "acp", "name": name, "id": fmt.Sprintf("refused-%d", i)})
			}
			s := p.openWith(object{"cwd": "/", "mcpServers": declared})
			states := s.states()
			for i, name := range names {
				at := slices.IndexFunc(states, func(one serverState) bool { return one.Name == name })
				if at < 0 || states[at].State != "refused" || states[at].Reason == "" {
					a.fail(s.opened.show(), "server %d, %q, is not reported as refused with a reason", i+1, name)
				}
			}
			p.rest(quiet)
			if n := len(p.received("mcp/connect")); n > 0 {
				a.fail("mcp/connect", "a refused server was connected")
			}
			a.note("refused")
		}},
		{Name: "of equal ids the first counts, of equal names the last", Expected: "one mcp/connect, for the last of the name", check: func(a *attempt) {
			p := a.greeted()
			first, last := newServer(a.name(), genA), newServer(a.name(), genA)
			declared := p.declare(first, last)
			s := p.openWith(object{"cwd": "/", "mcpServers": append(declared, object{"type": "acp", "name": "wirecheck-again", "id": last.id})})
			s.ready(last.name)
			p.rest(quiet)
			last.connectedOnce(a)
			if len(first.connects) > 0 {
				a.fail("mcp/connect", "the first of two servers of one name was connected")
			}
			for _, one := range s.states() {
				if one.ID == first.id && one.State != "superseded" {
					a.fail("state "+jsonrpc.Show(one.State), "the first of two servers of one name is not said to be superseded")
				}
			}
			a.note("one connect")
		}},
		{Name: "too many servers are refused whole", Expected: "-32000 with scope servers_per_session, its limit and use; no mcp/connect", check: func(a *attempt) {
			const many = 200
			p := a.greeted()
			var declared []any
			for i := range many {
				declared = append(declared, object{"type": "acp", "name": fmt.Sprintf("%s%d", a.name()[:min(len(a.name()), 60)], i), "id": fmt.Sprintf("many-%d", i)})
			}
			declared[0] = newServer(a.name(), genA).declaration()
			m := p.answer(p.send("session/new", object{"cwd": "/", "mcpServers": declared}))
			data, _ := decode[limitData](p.refused(m, jsonrpc.Overload, fmt.Sprintf("session/new with %d servers", many)).RawData)
			if data.Scope != "servers_per_session" || data.Limit == 0 || data.Used == nil {
				a.fail(m.show(), "data does not name the scope, its limit and its use")
			}
			p.rest(quiet)
			if len(p.received("mcp/connect")) > 0 {
				a.fail("mcp/connect", "a refused session/new connected a server")
			}
			a.note("-32000, limit %d", data.Limit)
		}},
		{Name: "servers of initialize stand in for those that session/new leaves out", Expected: "mcp/connect with the id that initialize declared", check: func(a *attempt) {
			p := a.enter()
			one := newServer(a.name(), genA)
			p.call("initialize", object{"protocolVersion": 1, "mcpServers": p.declare(one)})
			s := p.openWith(object{"cwd": "/", "mcpServers": []any{}})
			s.ready(one.name)
			one.connectedOnce(a)
			a.note("connected")
		}},
		{Name: "a server that does not answer holds up nobody", Expected: "session/new is answered, the server is connecting", check: func(a *attempt) {
			p := a.greeted()
			one := newServer(a.name(), genA)
			one.connect = func() reply { return reply{hold: true} }
			s := p.open(one)
			p.await("mcp/connect", func() bool { return len(one.connects) > 0 || s.state(one.name).State == "refused" })
			if state := s.state(one.name); state.State != "connecting" {
				a.fail("state "+jsonrpc.Show(state.State), "it is not said to be connecting: %s%s", jsonrpc.Show(state.Reason), grantHint(state.State))
			}
			a.note("connecting")
		}},
		{Name: "a connection id that is none fails its server", Expected: "state failed with a reason", check: func(a *attempt) {
			p := a.greeted()
			one := newServer(a.name(), genA)
			one.connect = func() reply { return reply{result: `{"connectionId":""}`} }
			if state := p.open(one).expectState(one.name, "failed"); state.Reason == "" {
				a.fail("failed", "no reason is given")
			}
			a.note("failed")
		}},
		{Name: "a server that a resume leaves out is disconnected once", Expected: "one mcp/disconnect, state withdrawn; none without an array", check: withdrawn},
		{Name: "a session that moves to another connection takes its servers along", Expected: "one mcp/disconnect on the old socket, one mcp/connect on the new", check: movesAlong},
		{Name: "a server may ask for nothing", Expected: "-32601 to its request", check: func(a *attempt) {
			p := a.greeted()
			one := newServer(a.name(), genA)
			p.openReady(one)
			m := p.answer(p.send("mcp/message", object{"connectionId": one.connections[0], "method": "sampling/createMessage", "params": object{"messages": []any{}}}))
			_ = p.refused(m, jsonrpc.MethodNotFound, "a request of a server")
			a.note("-32601")
		}},
		{Name: "a changed list is fetched again", Expected: "tools/list after notifications/tools/list_changed", check: func(a *attempt) {
			p := a.greeted()
			one := newServer(a.name(), genA)
			p.openReady(one)
			lists := one.lists
			p.notify("mcp/message", object{"connectionId": one.connections[0], "method": "notifications/tools/list_changed"})
			p.await("tools/list", func() bool { return one.lists > lists })
			a.note("fetched again")
		}},
		{Name: "what the config withholds is counted and not offered", Expected: "tools {offered, withheld}: all that were listed; as many found as offered", needs: needCaller, check: func(a *attempt) {
			p := a.greeted()
			one := newServer(a.name(), genA)
			s := p.openReady(one)
			state := s.state(one.name)
			if state.Tools == nil || state.Tools.Offered+state.Tools.Withheld != len(suffixes) {
				a.fail(fmt.Sprintf("tools %+v", state.Tools), "of %d tools that were listed, not all are accounted for", len(suffixes))
			}
			found := s.search()
			if len(ofServer(found, one.name)) != state.Tools.Offered {
				a.fail("found "+jsonrpc.Show(strings.Join(found, " ")), "it is not what is offered, %d tools", state.Tools.Offered)
			}
			a.note("offered %d, withheld %d", state.Tools.Offered, state.Tools.Withheld)
		}},
		{Name: "a result larger than a request may be reaches its caller", Expected: "all of it", needs: needCaller, check: func(a *attempt) {
			size := 2 * a.survey.requestBytes
			if size > a.survey.frameBytes-1024 {
				size = a.survey.frameBytes / 2
			}
			p := a.greeted()
			one := newServer(a.name(), genA)
			text := strings.Repeat("r", size)
			one.run = func(toolCall) reply { return reply{result: textResult(text)} }
			s := p.openReady(one)
			s.wants(s.result(a.survey.toolOf(one.name), `{}`), text)
			a.note("%d bytes", size)
		}},
		{Name: "text of all scripts passes through a tool", Expected: "the result as it was given", needs: needCaller, check: func(a *attempt) {
			const text = "樱花 ☕ 👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 <b>&amp;</b> \\u003c"
			p := a.greeted()
			one := newServer(a.name(), genA)
			one.run = func(toolCall) reply { return reply{result: textResult(text)} }
			s := p.openReady(one)
			s.wants(s.result(a.survey.toolOf(one.name), `{}`), text)
			a.note("intact")
		}},
		{Name: "a result passes to the byte", Expected: "unknown members, repeated ones, escapes and large numbers as they came", needs: needNone | needCaller, check: func(a *attempt) {
			const odd = `{"content":[{"type":"text","text":"\u003cb\u003e \ud800 é","x":[1.0,-0]}],"n":12345678901234567890,"x":1,"x":2 , "structuredContent":{"a" : 1e400}}`
			p := a.greeted()
			one := newServer(a.name(), genA)
			one.run = func(toolCall) reply { return reply{result: odd} }
			s := p.openReady(one)
			if o := s.result(a.survey.toolOf(one.name), `{}`); !strings.Contains(string(o.raw), odd) {
				a.fail(jsonrpc.Show(string(o.raw)), "it is not what the server gave")
			}
			a.note("to the byte")
		}},
		{Name: "arguments pass to the byte", Expected: "unknown members, escapes and large numbers as they came", needs: needNone | needCaller, check: func(a *attempt) {
			const odd = `{"text":"\u003c\ud83d","n" :12345678901234567890, "deep":{"a":[1.0,-0]}}`
			p := a.greeted()
			one := newServer(a.name(), genA)
			s := p.openReady(one)
			if o := s.result(a.survey.toolOf(one.name), odd); o.isError || len(one.calls) != 1 || one.calls[0].arguments != odd {
				a.fail(fmt.Sprintf("%s, calls %s", o.show(), jsonrpc.Show(fmt.Sprint(one.calls))), "it is not what the caller gave")
			}
			a.note("to the byte")
		}},
	}...)
}

// name is the server that rows declare which need only one.
func (a *attempt) name() string { return a.survey.names[0] }

// connectedOnce wants exactly one connect.
func (s *server) connectedOnce(a *attempt) {
	if len(s.connects) != 1 {
		a.fail(fmt.Sprintf("%d connects of server %q", len(s.connects), s.name), "a server is connected exactly once")
	}
	if len(s.odd) > 0 {
		a.fail(s.odd[0], "each generation is spoken to in its own manner")
	}
}

// wants a call to have given that text.
func (s *session) wants(o *toolOutcome, text string) {
	switch {
	case o.isError || o.stop != "" && o.stop != "end_turn":
		s.p.a.fail(o.show(), "the call failed")
	case o.text != text:
		s.p.a.fail(o.show(), "it is not what the server gave: %d bytes of %d", len(o.text), len(text))
	}
}

// ofServer are the names that belong to a server.
func ofServer(names []string, server string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, server+".") })
}

func withdrawn(a *attempt) {
	p := a.greeted()
	one := newServer(a.name(), genA)
	s := p.openReady(one)
	p.call("session/resume", object{"sessionId": s.id, "cwd": "/"}) // no array: nothing is withdrawn
	p.rest(quiet)
	if len(one.ended) > 0 {
		a.fail("mcp/disconnect", "a resume without an array of servers withdrew one")
	}
	s.opened = p.call("session/resume", object{"sessionId": s.id, "cwd": "/", "mcpServers": []any{}})
	p.await("mcp/disconnect", func() bool { return len(one.ended) > 0 })
	s.expectState(one.name, "withdrawn")
	p.rest(quiet)
	one.disconnectedOnce(a)
	a.note("disconnected once")
}

// disconnectedOnce wants the one connection to have been ended once.
func (s *server) disconnectedOnce(a *attempt) {
	if len(s.connections) != 1 || !slices.Equal(s.ended, s.connections) {
		a.fail(fmt.Sprintf("%d connects, %d disconnects", len(s.connections), len(s.ended)), "the connection that was opened is ended exactly once")
	}
}

func movesAlong(a *attempt) {
	secret := object{"acpod.dev/client": rand.Text() + rand.Text()}
	former := a.greeted(secret)
	old := newServer(a.name(), genA)
	s := former.openReady(old)
	latter := a.greeted(secret)
	fresh := newServer(a.name(), genA)
	m := latter.call("session/resume", object{"sessionId": s.id, "cwd": "/", "mcpServers": latter.declare(fresh)})
	s.closed = true
	latter.sessions = append(latter.sessions, &session{p: latter, id: s.id, opened: m})
	latter.await("mcp/connect on the new socket", func() bool { return len(fresh.connects) > 0 })
	former.await("mcp/disconnect on the old socket", func() bool { return len(old.ended) > 0 })
	former.rest(quiet)
	latter.rest(quiet)
	old.disconnectedOnce(a)
	fresh.connectedOnce(a)
	a.note("moved")
}
