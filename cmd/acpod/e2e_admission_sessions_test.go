package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// comesToOpen is a session/new without servers.
var comesToOpen = object{"cwd": "/", "mcpServers": []any{}}

// overloadedBy wants a refusal that names its limit, the use of it and when to come again.
func (e *extension) overloadedBy(scope string, limit float64, method string, params any) {
	e.t.Helper()
	data := e.refused(-32000, method, params).Data
	retry, _ := data["retry_after_ms"].(float64)
	if data["scope"] != scope || data["limit"] != limit || data["used"] != limit || retry <= 0 {
		e.t.Errorf("%s is refused with %v, not for %s of %v", method, data, scope, limit)
	}
}

// Sessions are counted in all and by the key that opened them, however many connections it has.
func TestSessionsAreCountedInAllAndByKey(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`, "limits.sessions", "5", "limits.sessions_per_key", "3", "acp.auth_key", `"one"`)+"[[acp.keys]]\nname = \"laptop\"\nkey = \"two\"\n")
	in := func(key string) *extension {
		e := dial(t, p, dialling{header: map[string][]string{"Authorization": {"Bearer " + key}}})
		e.hello(object{"acpod.dev/client": "the secret of this client"})
		return e
	}
	one, again, two := in("one"), in("one"), in("two")
	first, second := one.newSession(), one.newSession()
	third := again.newSession()
	for _, e := range []*extension{one, again} {
		e.overloadedBy("sessions_per_key", 3, "session/new", comesToOpen)
	}
	two.newSession()
	two.newSession()
	two.overloadedBy("sessions", 5, "session/new", comesToOpen)
	again.hangUp() // the session lives on, and counts
	back := in("one")
	back.resume(third) // a living one needs no slot but its connection's
	two.overloadedBy("sessions", 5, "session/new", comesToOpen)
	one.call("session/close", object{"sessionId": first})
	eventually(t, "the slot of the closed session", func() bool { return p.inUse("sessions") == 4 })
	two.newSession()
	one.call("session/close", object{"sessionId": second})
	eventually(t, "its slot", func() bool { return p.inUse("sessions") == 4 })
	two.overloadedBy("sessions_per_key", 3, "session/new", comesToOpen) // there is room, and not for this key
	back.newSession()
	supervisor, _ := p.tree().find("/sessions")
	if supervisor.Refused["sessions_per_key"] != 3 || supervisor.Refused["sessions"] != 2 {
		t.Errorf("the tree shows %v", supervisor.Refused)
	}
	if p.inUse("sessions") != 5 || p.inUse("sessions_per_key") != 5 {
		t.Errorf("%d and %d are in use", p.inUse("sessions"), p.inUse("sessions_per_key"))
	}
}

// A place is reserved before work starts: of two that come at once for the last one, one agent is started, and the other is
// refused while that one is still starting.
func TestTwoAtOnceForTheLastPlaceStartOneAgent(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	p := startPod(t, with(scripted(t, baseConfig, "starts slowly", record), "agent.max_sessions", "1"))
	var peers [2]*extension
	var ids [2]string
	for i := range peers {
		peers[i] = dial(t, p)
		peers[i].hello() // waits until the pod knows what the agent offers: nobody else starts one
	}
	started := strings.Count(readAll(t, record), `"initialize"`)
	var both sync.WaitGroup
	for i, e := range peers {
		both.Go(func() { ids[i] = e.send("session/new", comesToOpen) })
	}
	both.Wait()
	opened, refused := 0, 0
	for i, e := range peers {
		switch f := e.answer(ids[i]); {
		case f.Error == nil:
			opened++
		case f.Error.Code == -32000 && f.Error.Data["scope"] == "max_sessions":
			refused++
		default:
			t.Errorf("answered %s", f.raw)
		}
	}
	if opened != 1 || refused != 1 {
		t.Errorf("%d were opened, %d refused", opened, refused)
	}
	if n := strings.Count(readAll(t, record), `"initialize"`) - started; n != 1 {
		t.Errorf("%d agents were started", n)
	}
	if p.inUse("max_sessions") != 1 || p.inUse("sessions") != 1 {
		t.Errorf("%d agents and %d sessions are counted", p.inUse("max_sessions"), p.inUse("sessions"))
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A thousand refused requests leave no slot taken, for whatever reason they are refused and wherever.
func TestAThousandRefusalsLeaveNoSlotTaken(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`, "limits.sessions", "2", "limits.sessions_per_connection", "2"))
	one := dial(t, p)
	one.hello()
	one.newSession()
	for range 1000 { // admitted, and refused for what the request says
		one.refused(-32602, "session/new", object{"cwd": "/not/there", "mcpServers": []any{}})
	}
	if s, c := p.inUse("sessions"), p.inUse("sessions_per_connection"); s != 1 || c != 1 {
		t.Errorf("%d sessions, %d of connections are counted", s, c)
	}
	last := one.newSession()
	for range 25 { // 64 refusals in 10 s end a connection, so each has forty
		e := dial(t, p)
		e.hello()
		for range 40 {
			e.overloadedBy("sessions", 2, "session/new", comesToOpen)
		}
		e.hangUp()
	}
	one.overloadedBy("sessions_per_connection", 2, "session/new", comesToOpen)
	one.call("session/close", object{"sessionId": last})
	eventually(t, "its slot", func() bool { return p.inUse("sessions") == 1 && p.inUse("sessions_per_connection") == 1 })
	e := dial(t, p)
	e.hello()
	e.newSession()
	if s, c := p.inUse("sessions"), p.inUse("sessions_per_connection"); s != 2 || c != 2 {
		t.Errorf("%d sessions, %d of connections are counted", s, c)
	}
}

// Slots return after every kind of end.
func TestSlotsReturnAfterEveryEnd(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		set []string
		end func(t *testing.T, p *pod, w *wirePeer, session string)
	}{
		"closed by the client": {nil, func(t *testing.T, p *pod, w *wirePeer, session string) {
			w.send(`{"jsonrpc":"2.0","id":9,"method":"session/close","params":{"sessionId":"` + session + `"}}`)
			w.answered("9", 0)
			w.raw(wireFrame(0x88, "\x03\xe8"))
			w.closed(1000)
		}},
		"a reset, then suspended": {[]string{"agent.session_ttl", `"50ms"`}, func(t *testing.T, p *pod, w *wirePeer, _ string) {
			_ = w.conn.(*net.TCPConn).SetLinger(0)
			_ = w.conn.Close()
		}},
		"the agent crashes": {[]string{"agent.session_ttl", `"50ms"`}, func(t *testing.T, p *pod, w *wirePeer, session string) {
			w.prompt("9", session, "/crash")
			w.answered("9", -32603)
			eventually(t, "the place of the agent", func() bool { return p.inUse("max_sessions") == 0 })
			if p.inUse("sessions") != 1 {
				t.Errorf("the session counts as %d", p.inUse("sessions"))
			}
			_ = w.conn.Close()
		}},
		"its place is needed": {[]string{"agent.session_ttl", `"50ms"`, "limits.connections", "2"}, func(t *testing.T, p *pod, w *wirePeer, session string) {
			other := greeted(t, p)
			other.open()
			if p.inUse("sessions") != 1 || p.inUse("max_sessions") != 1 {
				t.Errorf("%d sessions and %d agents are counted", p.inUse("sessions"), p.inUse("max_sessions"))
			}
			_ = other.conn.Close()
			_ = w.conn.Close()
		}},
		"no initialize": {[]string{"acp.initialize_timeout", `"300ms"`, "agent.session_ttl", `"50ms"`, "limits.connections", "2"}, func(t *testing.T, p *pod, w *wirePeer, _ string) {
			upgraded(t, p).closed(1008)
			_ = w.conn.Close()
		}},
		"it left while it was opened": {[]string{"agent.session_ttl", `"50ms"`, "limits.connections", "2"}, func(t *testing.T, p *pod, w *wirePeer, _ string) {
			other := greeted(t, p)
			other.send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
			_ = other.conn.Close()
			_ = w.conn.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPod(t, with(baseConfig, append([]string{"limits.connections", "1", "agent.max_sessions", "1", "agent.stop_grace", `"300ms"`}, row.set...)...))
			for range 2 { // the second time it needs what the first one gave back
				var w *wirePeer
				eventually(t, "the slot of the socket", func() bool { w, _, _, _ = comes(t, p, ""); return w != nil })
				w.send(initialize)
				w.answered("1", 0)
				session := w.open()
				row.end(t, p, w, session)
				p.slotsAtRest()
			}
			p.rest()
		})
	}
}

// A resume takes what it needs and no more: nothing of the pod's for a session that lives, one slot for one that does not.
func TestAResumeTakesASlotOnlyForASuspendedSession(t *testing.T) {
	t.Parallel()
	p := startPod(t, with(baseConfig, "agent.driver", `"none"`, "limits.sessions", "1", "agent.session_ttl", `"1s"`, "limits.sessions_per_connection", "1"))
	secret := object{"acpod.dev/client": "the secret of two tabs"}
	come := func() *extension {
		e := dial(t, p)
		e.hello(secret)
		return e
	}
	one := come()
	session := one.newSession()
	for range 3 { // of its own
		one.resume(session)
	}
	two := come()
	two.resume(session) // of another's
	if p.inUse("sessions") != 1 {
		t.Errorf("%d are counted", p.inUse("sessions"))
	}
	eventually(t, "the slot of the former owner", func() bool { return p.inUse("sessions_per_connection") == 1 })
	two.hangUp()
	eventually(t, "the suspension", func() bool { return p.inUse("sessions") == 0 })
	three := come()
	other := three.newSession()
	four := come()
	four.overloadedBy("sessions", 1, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
	three.overloadedBy("sessions_per_connection", 1, "session/resume", object{"sessionId": session, "cwd": "/", "mcpServers": []any{}})
	three.call("session/close", object{"sessionId": other})
	eventually(t, "its slot", func() bool { return p.inUse("sessions") == 0 })
	four.resume(session)
	if p.inUse("sessions") != 1 || p.inUse("sessions_per_connection") != 1 {
		t.Errorf("%d and %d are counted", p.inUse("sessions"), p.inUse("sessions_per_connection"))
	}
	four.hangUp()
	eventually(t, "rest", func() bool { return p.inUse("sessions") == 0 && p.inUse("sessions_per_connection") == 0 })
}
