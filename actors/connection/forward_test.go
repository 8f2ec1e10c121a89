package connection

import (
	"fmt"
	"testing"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// What has the id of a session that the connection owns, and is not the pod's to answer, is for that session's agent.
func TestWhatTheAgentMayKnowGoesToItsSession(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	send := func(id, method, of string) {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"sessionId":%q}}`, id, method, of))
	}
	for _, method := range []string{"session/set_mode", "session/set_config_option", "session/set_title", "_vendor/x", "of/tomorrow"} {
		send(`"a"`, method, s.id)
		m := kerneltest.Await[session.Forward](t, s.probe)
		if m.Method != method || m.Client != s.client || string(m.Params) != `{"sessionId":"`+s.id+`"}` {
			t.Errorf("the session got %+v", m)
		}
		if id, ok := s.client.RequestID(m.Req); !ok || string(id.Raw()) != `"a"` {
			t.Errorf("the request is called %s, %v", id.Raw(), ok)
		}
		m.Held.Release()
		s.client.Respond(s.id, m.Req, []byte(`{"x":1}`), nil, nil)
		c.expect(`{"jsonrpc":"2.0","id":"a","result":{"x":1}}`)
		if _, ok := s.client.RequestID(m.Req); ok {
			t.Error("an answered request still has an id")
		}
		send("1", method, sessionID(99))
		c.refusedWith(1.0, -32602)
	}
	for _, method := range []string{"mcp/message", "mcp/connect", "_mcp/connect", "_acpod/x", "$/x", "proxy/initialize", "session/update", "session/request_permission", "fs/read_text_file", "terminal/create", "elicitation/create"} {
		send("2", method, s.id)
		c.refusedWith(2.0, -32601)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"sessionId":%q}}`, method, s.id))
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"_vendor/x","params":{"sessionId":7}}`)
	c.refusedWith(3.0, -32601)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_vendor/note","params":{"sessionId":%q}}`, sessionID(99)))
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_vendor/note","params":{"sessionId":%q}}`, s.id))
	if m := kerneltest.Await[session.Inform](t, s.probe); m.Method != "_vendor/note" || m.Client != s.client {
		t.Errorf("the session got %+v", m)
	} else {
		m.Held.Release()
	}
	c.ping()
	if n := s.probe.Pending(); n != 0 {
		t.Errorf("%d more messages came", n)
	}
	send("4", "_vendor/x", s.id)
	m := kerneltest.Await[session.Forward](t, s.probe)
	m.Held.Release()
	c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}`)
	if x := kerneltest.Await[session.Cancel](t, s.probe); x.Req != m.Req || x.Client != s.client {
		t.Errorf("the session got %+v", x)
	}
}

func TestALoginGoesToTheSessions(t *testing.T) {
	p := startPod(t, Config{})
	early := p.dial()
	for i, method := range []string{"authenticate", "logout", "session/set_mode", "session/set_config_option"} {
		early.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"sessionId":"x"}}`, i, method))
		early.refusedWith(float64(i), -32002)
	}
	early.send(`{"jsonrpc":"2.0","id":9,"method":"_x","params":{"sessionId":"x"}}`)
	early.refusedWith(9.0, -32601)
	c := p.hello()
	for _, method := range []string{"authenticate", "logout"} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"methodId":"m"}}`, method))
		m := kerneltest.Await[session.Ask](t, p.sessions)
		if m.Method != method || string(m.Params) != `{"methodId":"m"}` {
			t.Errorf("the sessions got %+v", m)
		}
		m.Held.Release()
		c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
		if x := kerneltest.Await[session.Cancel](t, p.sessions); x.Req != m.Req {
			t.Errorf("the sessions got %+v", x)
		}
		m.Client.Respond("", m.Req, nil, nil, jsonrpc.CancelledError())
		c.refusedWith(1.0, -32800)
	}
}

// What a client declares is kept as it came, once, and paid for.
func TestWhatAClientCanDoIsKept(t *testing.T) {
	p := startPod(t, Config{})
	c := p.dial()
	const can = `{"fs":{"readTextFile":true}, "x":[1.50,"\ud800"]}`
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":` + can + `}}`)
	c.answer()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true}}}`)
	c.answer()
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	m := kerneltest.Await[session.Open](t, p.sessions)
	m.Held.Release()
	if got := string(m.Client.Capabilities()); got != can || !acp.ParseClientCapabilities([]byte(got)).ReadTextFile {
		t.Errorf("it is kept as %s", got)
	}
}
