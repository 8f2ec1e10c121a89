package tunnel

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

const initParams = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"acpod","version":"1.2.3"}}`

func TestEachGenerationConnectsListsCallsCancelsAndDisconnectsInItsOwnWords(t *testing.T) {
	modern := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"acpod","version":"1.2.3"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, g := range []struct {
		name                     string
		declared                 acp.Declared
		connect, message, target string
		params, answered, bye    string
		cancel                   []string
		stateless                bool
	}{
		{name: "A", declared: declaredA, connect: "mcp/connect", params: `{"acpId":"srv-1"}`, answered: `{"connectionId":"c1"}`, message: "mcp/message", target: `{"connectionId":"c1"`,
			bye: `mcp/disconnect {"connectionId":"c1"}`, cancel: []string{`$/cancel_request {"requestId":42}`, `mcp/cancel {"requestId":42}`}},
		{name: "B", declared: acp.Declared{Name: "katashiro", ID: "srv-1", Form: acp.FormServerID}, connect: "mcp/connect", params: `{"serverId":"srv-1"}`, answered: `{"connectionId":"c1"}`, message: "mcp/message", target: `{"connectionId":"c1"`,
			bye: `mcp/disconnect {"connectionId":"c1"}`, cancel: []string{`$/cancel_request {"requestId":42}`}},
		{name: "0", declared: acp.Declared{Name: "katashiro", ID: "acp:srv-1", Form: acp.FormURL}, connect: "_mcp/connect", params: `{"acp_id":"acp:srv-1"}`, answered: `{"connection_id":"c1"}`, message: "_mcp/message", target: `{"connectionId":"c1"`,
			bye: `_mcp/disconnect {"connection_id":"c1"}`, cancel: []string{`$/cancel_request {"requestId":42}`}},
		{name: "C", declared: acp.Declared{Name: "katashiro", ID: "srv-1", Form: acp.FormServerID}, connect: "mcp/connect", params: `{"serverId":"srv-1"}`, message: "mcp/message", target: `{"serverId":"srv-1","requestId":"acpod-3-`,
			cancel: []string{`$/cancel_request {"requestId":42}`}, stateless: true},
	} {
		run(t, g.declared, Limits{}, func(l *lab) {
			wrap := func(inner string) string {
				if g.stateless {
					return `{"result":` + inner + `}`
				}
				return inner
			}
			connect := l.request(g.connect, g.params)
			list := g.target + `,"method":"tools/list"}`
			if g.stateless {
				l.fault(connect, -32601, "unknown method")
				list = g.target + `1","method":"tools/list","params":{` + modern + `}}`
			} else {
				l.answer(connect, g.answered)
				l.answer(l.request(g.message, g.target+`,"method":"initialize","params":`+initParams+`}`), initialized)
				if want := g.message + " " + g.target + `,"method":"notifications/initialized"}`; !slices.Equal(l.notified, []string{want}) {
					t.Errorf("%s: notified %q, want %q", g.name, l.notified, want)
				}
			}
			l.answer(l.request(g.message, list), wrap(oneTool))
			l.state(Ready)

			ticket := l.call(capability.Call{Tool: "katashiro.click", Arguments: []byte(`{ "a" : 1e2 }`)})
			q := l.request(g.message, "")
			if sent := string(l.out(q).Params); !jsonrpc.Valid(l.out(q).Params) || !strings.HasPrefix(sent, g.target) ||
				!strings.Contains(sent, `"method":"tools/call","params":{"name":"katashiro.click","_meta":{`) || !strings.HasSuffix(sent, `,"arguments":{ "a" : 1e2 }}}`) {
				t.Errorf("%s: the call is %s", g.name, sent)
			}
			l.answer(q, wrap(`{"content":[]}`))
			if a := l.ended(ticket); a.Err != nil || string(a.Msg.(capability.Result).Raw) != `{"content":[]}` {
				t.Errorf("%s: got %v, %v", g.name, a.Msg, a.Err)
			}
			ticket = l.call(capability.Call{Tool: "katashiro.click", Arguments: []byte(`{}`)})
			q = l.request(g.message, "")
			if g.stateless {
				l.answer(q, `{"error":{"code":-32602,"message":"bad selector"}}`)
			} else {
				l.fault(q, -32602, "bad selector")
			}
			if a := l.ended(ticket); a.Err == nil || !strings.Contains(a.Err.Error(), "bad selector") {
				t.Errorf("%s: got %v", g.name, a.Err)
			}
			ticket = l.call(capability.Call{Tool: "katashiro.click", Arguments: []byte(`{}`)})
			q = l.request(g.message, "")
			kerneltest.Do(t, l.deskRef, func(c *kernel.Ctx) { c.Cancel(ticket) })
			if frames := l.cancelled(q); !slices.Equal(frames, g.cancel) {
				t.Errorf("%s: cancelled by %q", g.name, frames)
			}
			l.ref.Stop(ErrWithdrawn)
			l.over()
			l.state(Withdrawn)
			want := []string{g.bye}
			if g.bye == "" {
				want = nil
			}
			if got := l.said(); !slices.Equal(got, want) {
				t.Errorf("%s: closed by %q, want %q", g.name, got, want)
			}
		})
	}
}

func TestAHandshakeThatFailsEndsTheTunnelAndClosesWhatWasOpened(t *testing.T) {
	const opened, nothing = 1, 0
	for what, tc := range map[string]struct {
		play   func(l *lab)
		reason string
		closed int
	}{
		"connect is refused":     {func(l *lab) { l.fault(l.request("mcp/connect", ""), -32000, "no\nroom") }, `no\nroom`, nothing},
		"no connection id":       {func(l *lab) { l.answer(l.request("mcp/connect", ""), `{}`) }, "missing", nothing},
		"an empty connection id": {func(l *lab) { l.answer(l.request("mcp/connect", ""), `{"connectionId":""}`) }, "empty", nothing},
		"a connection id too long": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), `{"connectionId":"`+strings.Repeat("x", 1025)+`"}`)
		}, "1025 bytes", nothing},
		"a connection id in use": {func(l *lab) {
			l.bound["conn-1"] = l.session
			l.answer(l.request("mcp/connect", ""), connected)
		}, "in use", nothing}, // closing it would close the other's
		"initialize is refused": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			l.fault(l.request("mcp/message", ""), -32603, "broken")
		}, "broken", opened},
		"another version": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			l.answer(l.request("mcp/message", ""), `{"protocolVersion":"1999-01-01"}`)
		}, "1999-01-01", opened},
		"initialize is never answered": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			q := l.request("mcp/message", "")
			time.Sleep(31 * time.Second)
			l.cancelled(q)
		}, "no answer within 30s", opened},
		"the list is refused": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			l.answer(l.request("mcp/message", ""), initialized)
			l.fault(l.request("mcp/message", ""), -32601, "no tools")
		}, "no tools", opened},
		"the list is no list": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			l.answer(l.request("mcp/message", ""), initialized)
			l.answer(l.request("mcp/message", ""), `{"tools":{}}`)
		}, "tools/list", opened},
		"the socket has no room": {func(l *lab) {
			l.answer(l.request("mcp/connect", ""), connected)
			q := l.request("mcp/message", "")
			l.mu.Lock()
			l.refuse = &kernel.Overloaded{Scope: "outbound_bytes"}
			l.mu.Unlock()
			l.answer(q, initialized)
		}, "outbound_bytes", opened},
	} {
		run(t, declaredA, Limits{}, func(l *lab) {
			tc.play(l)
			l.over()
			l.state(Failed)
			if r := l.tunnel.Status().Reason; !strings.Contains(r, tc.reason) || strings.Contains(r, "\n") {
				t.Errorf("%s: the reason is %q", what, r)
			}
			if got := l.said(); len(got) != tc.closed || tc.closed == 1 && got[0] != `mcp/disconnect {"connectionId":"conn-1"}` {
				t.Errorf("%s: closed by %q, want %d", what, got, tc.closed)
			}
			if s := l.tunnel.Tools().State; s != capability.Failed {
				t.Errorf("%s: the source is %v", what, s)
			}
		})
	}
}

func TestAConnectThatIsAnsweredAfterItWasGivenUpIsClosedOnce(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) { // after our timeout
		q := l.request("mcp/connect", "")
		time.Sleep(31 * time.Second)
		l.over()
		l.cancelled(q)
		if got := l.said(); len(got) != 0 {
			t.Errorf("closed by %q before anything was opened", got)
		}
		l.answer(q, connected)
		if got := l.said(); len(got) != 1 {
			t.Errorf("closed by %q", got)
		}
	})
	run(t, declaredA, Limits{}, func(l *lab) { // after the session stopped it
		q := l.request("mcp/connect", "")
		l.ref.Stop(ErrTakenOver)
		l.over()
		l.answer(q, connected)
		if got := l.said(); len(got) != 1 {
			t.Errorf("closed by %q", got)
		}
		l.state(Superseded)
	})
	run(t, declaredA, Limits{}, func(l *lab) { // between the reader and the turn
		q := l.request("mcp/connect", "")
		if f := l.out(q).Arrived([]byte(connected)); f != nil {
			t.Fatalf("closed by %+v though it is wanted", f)
		}
		l.ref.Stop(ErrWithdrawn)
		l.over()
		if got := l.said(); len(got) != 1 {
			t.Errorf("closed by %q", got)
		}
	})
}

func TestNobodyWaitsForADisconnectAndAGoneSocketOwesNone(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		l.mu.Lock()
		l.hold = make(chan struct{})
		l.mu.Unlock()
		begun := time.Now()
		l.ref.Stop(ErrEvicted)
		select {
		case <-l.ref.Done():
		case <-time.After(time.Hour):
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the end took %v", took)
		}
		old := l.tunnel
		l.tunnel = New(Params{Declared: declaredA, Carrier: l.socket, Attach: 4, Session: "sess_x", Desk: l.deskRef})
		l.ref = kerneltest.Spawn(t, l.session, l.tunnel.Spec("tunnel-2"))
		l.answer(l.request("mcp/connect", ""), `{"connectionId":"conn-2"}`)
		l.answer(l.request("mcp/message", ""), initialized)
		l.answer(l.request("mcp/message", ""), oneTool)
		l.state(Ready)
		old.Tools().List.Release()
		time.Sleep(10 * time.Second)
		if got := l.said(); !slices.Equal(got, []string{`mcp/disconnect {"connectionId":"conn-1"}`}) {
			t.Errorf("closed by %q", got)
		}
	})
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		close(l.gone)
		l.over()
		if got := l.said(); len(got) != 0 {
			t.Errorf("closed by %q on a socket that is gone", got)
		}
		if s := l.tunnel.Tools(); s.State != capability.Detached || len(s.List.All()) != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestACrashConnectsAgainAndClosesWhatTheGenerationBeforeOpened(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		ticket := l.call(capability.Call{Tool: "x", Arguments: []byte(`{}`), Progress: func([]byte) { panic("a fault of our own") }})
		l.request("mcp/message", "")
		l.inbound(acp.Inbound{Method: "notifications/progress", Params: []byte(`{"progressToken":3,"progress":1}`)})
		if a := l.ended(ticket); a.Err == nil {
			t.Error("the call did not end with its tunnel")
		}
		l.state(Connecting)
		time.Sleep(10 * time.Second) // past the backoff
		connect := l.request("mcp/connect", "")
		if got := l.said(); !slices.Equal(got, []string{`mcp/disconnect {"connectionId":"conn-1"}`}) {
			t.Errorf("closed by %q", got)
		}
		l.answer(connect, `{"connectionId":"conn-2"}`)
		l.answer(l.request("mcp/message", ""), initialized)
		l.answer(l.request("mcp/message", ""), oneTool)
		l.state(Ready)
		ticket = l.call(capability.Call{Tool: "x", Arguments: []byte(`{}`)})
		l.answer(l.request("mcp/message", ""), `{"content":[]}`)
		if a := l.ended(ticket); a.Err != nil {
			t.Error(a.Err)
		}
	})
}

func TestTheSessionAndTheDeskAreToldOfEachState(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		if m := kerneltest.Await[Changed](t, l.parent); m.Tunnel != l.tunnel || m.Status.State != Ready {
			t.Errorf("got %+v", m)
		}
		if m := kerneltest.Await[capability.Changed](t, l.desk); m.Source != capability.Source(l.tunnel) {
			t.Errorf("got %+v", m)
		}
		l.ref.Stop(ErrStoodDown)
		l.over()
		if m := kerneltest.Await[Changed](t, l.parent); m.Status.State != Superseded {
			t.Errorf("got %+v", m)
		}
		synctest.Wait()
	})
}
