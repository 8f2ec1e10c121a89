package connection

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestInitializeOffersTheContract(t *testing.T) {
	p := startPod(t, Config{Version: "1.2.3"})
	p.offers.info = &acp.AgentInfo{LoadSession: true, Prompt: acp.PromptCapabilities{Image: true}}
	c := p.dial()
	c.send(`{"jsonrpc":"2.0","id":"é\u0000","method":"initialize","params":{"protocolVersion":7,"clientInfo":{"name":"panel\n","version":"9"}}}`)
	raw := c.message()
	if !strings.HasPrefix(raw, `{"jsonrpc":"2.0","id":"é\u0000","result":`) {
		t.Errorf("the id did not come back as it was sent: %.80s", raw)
	}
	var got struct {
		Result map[string]any `json:"result"`
	}
	must(t, json.Unmarshal([]byte(raw), &got))
	var want map[string]any
	must(t, json.Unmarshal([]byte(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,
		"mcpCapabilities":{"http":false,"sse":false,"acp":true,"_meta":{"dev.openab/acp":true}},
		"sessionCapabilities":{"resume":{},"close":{},"list":{}},
		"promptCapabilities":{"image":true,"audio":false,"embeddedContext":false}},
		"agentInfo":{"name":"acpod","title":"acpod","version":"1.2.3"},"authMethods":[]}`), &want))
	if !reflect.DeepEqual(got.Result, want) {
		t.Errorf("got  %v\nwant %v", got.Result, want)
	}
	if n := p.conns(); len(n) != 1 || n[0].Attrs["client"] != `panel\n 9` || n[0].Attrs["initialized"] != true {
		t.Errorf("the tree shows %v", n)
	}
	c.send(helloRequest)
	if r := c.answer(); r.Result == nil {
		t.Error("a second initialize was not answered")
	}
}

func TestInitializeWaitsForTheAgentAndNoLonger(t *testing.T) {
	p := startPod(t, Config{OfferWait: 30 * time.Millisecond})
	p.offers.known = make(chan struct{})
	c := p.dial()
	c.send(helloRequest)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/list"}`) // does not wait for the answer before
	m := kerneltest.Await[session.List](t, p.sessions)
	m.Held.Release()
	if r := c.answer(); r.ID != 0.0 || r.Result["agentCapabilities"].(map[string]any)["promptCapabilities"].(map[string]any)["image"] != false {
		t.Errorf("the baseline is %v", r)
	}
	p = startPod(t, Config{OfferWait: time.Hour})
	p.offers.known = make(chan struct{})
	d := p.dial()
	d.send(helloRequest)
	d.send(`{"jsonrpc":"2.0","id":1,"method":"_x"}`)
	d.refusedWith(1.0, -32601) // the wait holds up nothing else
	p.offers.info = &acp.AgentInfo{Prompt: acp.PromptCapabilities{Image: true}}
	close(p.offers.known)
	if r := d.answer(); r.Result["agentCapabilities"].(map[string]any)["promptCapabilities"].(map[string]any)["image"] != true {
		t.Errorf("the agent's offer is not in %v", r)
	}
}

func TestInitializeIsRefused(t *testing.T) {
	p := startPod(t, Config{})
	c := p.dial()
	for i, params := range []string{
		`{}`, `{"protocolVersion":"1"}`, `{"protocolVersion":1.0}`, `{"protocolVersion":0}`, `{"protocolVersion":true}`, `[]`,
		`{"protocolVersion":1,"_meta":{"acpod.dev/client":"short"}}`, `{"protocolVersion":1,"_meta":{"acpod.dev/client":7}}`,
	} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":%s}`, i, params))
		c.refusedWith(float64(i), -32602)
	}
	c.send(`{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	c.refusedWith("new", -32002)
}

func TestTheUpgradeAnswer(t *testing.T) {
	p := startPod(t, Config{Keys: []Key{NewKey("", "tok")}})
	for _, test := range []struct{ name, headers, echo string }{
		{"one line", "Sec-WebSocket-Protocol: openab.bearer.tok, acp.v1\r\n", "acp.v1"},
		{"two lines", "Sec-WebSocket-Protocol: openab.bearer.tok\r\nSec-WebSocket-Protocol: acp.v1\r\n", "acp.v1"},
		{"no acp.v1", "Sec-WebSocket-Protocol: openab.bearer.tok\r\n", ""},
		{"none offered", "Authorization: Bearer tok\r\n", ""},
		{"compression offered", "Authorization: Bearer tok\r\nSec-WebSocket-Extensions: permessage-deflate\r\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := p.knock(test.headers)
			if c.resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("got %s", c.resp.Status)
			}
			if got := strings.Join(c.resp.Header.Values("Sec-WebSocket-Protocol"), ","); got != test.echo {
				t.Errorf("echoed %q, want %q", got, test.echo)
			}
			if c.resp.Header.Get("Acp-Connection-Id") == "" || c.resp.Header.Get("Sec-WebSocket-Extensions") != "" {
				t.Errorf("headers are %v", c.resp.Header)
			}
			c.send(helloRequest)
			if r := c.answer(); r.Result == nil {
				t.Errorf("got %v", r)
			}
		})
	}
}

func TestRefusedUpgrades(t *testing.T) {
	keyed := startPod(t, Config{Keys: []Key{NewKey("", "tok")}})
	open := startPod(t, Config{})
	request := func(p *testPod, first, headers string) string {
		return first + " HTTP/1.1\r\nHost: " + p.addr() + "\r\n" + headers + "\r\n"
	}
	for _, test := range []struct {
		name    string
		pod     *testPod
		request string
		status  int
	}{
		{"wrong key", keyed, request(keyed, "GET /acp", goodUpgrade+"Authorization: Bearer no\r\n"), 401},
		{"no key", keyed, request(keyed, "GET /acp", goodUpgrade), 401},
		{"key in the query", keyed, request(keyed, "GET /acp?token=tok", goodUpgrade), 401},
		{"two keys", keyed, request(keyed, "GET /acp", goodUpgrade+"Authorization: Bearer tok\r\nAuthorization: Bearer tok\r\n"), 400},
		{"foreign Origin", open, request(open, "GET /acp", goodUpgrade+"Origin: http://evil.example\r\n"), 403},
		{"rebound Host", open, "GET /acp HTTP/1.1\r\nHost: evil.example\r\n" + goodUpgrade + "\r\n", 403},
		{"POST", open, request(open, "POST /acp", "Content-Length: 0\r\n"), 405},
		{"no upgrade", open, request(open, "GET /acp", ""), 426},
		{"HTTP/1.0", open, "GET /acp HTTP/1.0\r\nHost: " + open.addr() + "\r\n" + goodUpgrade + "\r\n", 400},
		{"HTTP/1.0 without a Host", open, "GET /acp HTTP/1.0\r\n" + goodUpgrade + "\r\n", 403},
		{"HTTP/1.1 without a Host", open, "GET /acp HTTP/1.1\r\n" + goodUpgrade + "\r\n", 400},
		{"two Hosts", open, "GET /acp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + goodUpgrade + "\r\n", 400},
		{"absolute form of another host", open, "GET http://evil.example/acp HTTP/1.1\r\nHost: " + open.addr() + "\r\n" + goodUpgrade + "\r\n", 403},
		{"two Origins", open, request(open, "GET /acp", goodUpgrade+"Origin: http://"+open.addr()+"\r\nOrigin: http://"+open.addr()+"\r\n"), 403},
		{"old version", open, request(open, "GET /acp", strings.Replace(goodUpgrade, "13", "8", 1)), 400},
		{"bad key", open, request(open, "GET /acp", strings.Replace(goodUpgrade, "dGhl", "!!!!", 1)), 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := test.pod.ask(test.request)
			if c.resp.StatusCode != test.status {
				t.Errorf("got %s, want %d", c.resp.Status, test.status)
			}
			if body := c.resp.Header.Get("Content-Type"); !strings.HasPrefix(body, "text/plain") {
				t.Errorf("content type %q", body)
			}
		})
	}
	if n := keyed.gateway.Stats(); n.Refused["wrong_key"] != 1 || n.Refused["no_key"] != 2 || n.Connections != 0 {
		t.Errorf("counted %v", n)
	}
	c := keyed.knock("Sec-WebSocket-Protocol: openab.bearer.no, acp.v1\r\n")
	if c.resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %s", c.resp.Status)
	}
	c.closed(4401)
	keyed.rest()
}

func TestAFrameSentAheadOfThe101IsNotLost(t *testing.T) {
	p := startPod(t, Config{})
	c := p.knock("", textFrame(helloRequest)...)
	if r := c.answer(); r.ID != 0.0 || r.Result == nil {
		t.Errorf("got %v", r)
	}
}

func TestLimitsOfConnections(t *testing.T) {
	for scope, cfg := range map[string]Config{"connections": {Connections: 2, HandshakePatience: time.Hour}, "connections_per_address": {ConnectionsPerAddress: 2, HandshakePatience: time.Hour}} {
		t.Run(scope, func(t *testing.T) {
			p := startPod(t, cfg)
			first := p.dial()
			p.dial()
			c := p.knock("")
			if c.resp.StatusCode != http.StatusServiceUnavailable || c.resp.Header.Get("Retry-After") == "" {
				t.Fatalf("got %s %v", c.resp.Status, c.resp.Header)
			}
			if p.gateway.Stats().Refused[scope] != 1 {
				t.Errorf("counted %v", p.gateway.Stats().Refused)
			}
			_ = first.conn.Close()
			kerneltest.Eventually(t, "a seat is free", func() bool { return p.gateway.Stats().Connections == 1 })
			p.dial()
		})
	}
}

// hijackPanics is the writer of a server that has a fault.
type hijackPanics struct{ http.ResponseWriter }

func (hijackPanics) Hijack() (net.Conn, *bufio.ReadWriter, error) { panic("a fault of ours") }

// TestAPanicLosesNoSeat has one connection in all, so that a seat which was not given back would keep everybody out.
func TestAPanicLosesNoSeat(t *testing.T) {
	p := startPod(t, Config{Connections: 1})
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/acp", nil)
	for name, value := range map[string]string{"Upgrade": "websocket", "Connection": "Upgrade", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		r.Header.Set(name, value)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the fault of the server was hidden")
			}
		}()
		p.gateway.ServeHTTP(hijackPanics{httptest.NewRecorder()}, r)
	}()
	p.dial()
}

// TestOrderOfChecks goes through the checks of a frame in their order, on one connection: what is not answered is followed by what is.
func TestOrderOfChecks(t *testing.T) {
	p := startPod(t, Config{RequestBytes: 1000})
	c := p.hello()
	pad := strings.Repeat("x", 1000)
	for _, test := range []struct {
		name, in string
		code     int // 0: no answer
		id       any
	}{
		{"not JSON", `{"jsonrpc":`, -32700, nil},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"session/list"}]`, -32600, nil},
		{"an empty batch", `[]`, -32600, nil},
		{"a repeated member", `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, -32600, nil},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"x"}`, -32600, nil},
		{"an id that is a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"x"}`, -32600, nil},
		{"the id null is a request", `{"jsonrpc":"2.0","id":null,"method":"_x"}`, -32601, nil},
		{"unknown method", `{"jsonrpc":"2.0","id":"a","method":"no/such"}`, -32601, "a"},
		{"unknown notification", `{"jsonrpc":"2.0","method":"no/such"}`, 0, nil},
		{"a large request", `{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":"` + pad + `"}`, -32000, 9.0},
		{"a large unknown request", `{"jsonrpc":"2.0","id":9,"method":"x","params":"` + pad + `"}`, -32000, 9.0},
		{"a large notification", `{"jsonrpc":"2.0","method":"x","params":"` + pad + `"}`, 0, nil},
		{"a large answer to nothing", `{"jsonrpc":"2.0","id":77,"result":"` + pad + `"}`, 0, nil},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":78,"result":1}`, 0, nil},
		{"an answer with a number that no id of ours has", `{"jsonrpc":"2.0","id":99999999999999999999,"result":1}`, 0, nil},
		{"an answer with the id of somebody else", `{"jsonrpc":"2.0","id":"abc","result":1}`, -32600, nil},
		{"neither method nor result", `{"jsonrpc":"2.0","id":5}`, -32600, nil},
		{"a notification without method", `{"jsonrpc":"2.0"}`, 0, nil},
		{"no version", `{"id":5,"method":"session/list"}`, -32600, nil},
		{"another version", `{"jsonrpc":"1.0","id":5,"method":"session/list"}`, -32600, 5.0},
		{"another version in a notification", `{"jsonrpc":"1.0","method":"session/cancel"}`, 0, nil},
		{"initialize as a notification", `{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}`, 0, nil},
		{"session/new as a notification", `{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, 0, nil},
		{"session/prompt as a notification", `{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"x","prompt":[]}}`, 0, nil},
		{"session/cancel as a request", `{"jsonrpc":"2.0","id":6,"method":"session/cancel","params":{"sessionId":"x"}}`, -32600, 6.0},
		{"cancel of an unknown session", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`, 0, nil},
		{"what a later version brings", `{"jsonrpc":"2.0","id":6,"method":"session/load","params":{}}`, -32601, 6.0},
		{"a request of a tunnelled server", `{"jsonrpc":"2.0","id":6,"method":"mcp/message","params":{"connectionId":"c","method":"roots/list"}}`, -32601, 6.0},
		{"mcp/connect is for us to send", `{"jsonrpc":"2.0","id":6,"method":"mcp/connect","params":{}}`, -32601, 6.0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.t = t
			c.send(test.in)
			if test.code != 0 {
				r := c.refusedWith(test.id, test.code)
				if test.code == -32000 {
					want := map[string]any{"scope": "request_bytes", "limit": 1000.0, "used": float64(len(test.in)), "size": float64(len(test.in))}
					if !reflect.DeepEqual(r.Error.Data, want) {
						t.Errorf("data is %v, want %v", r.Error.Data, want)
					}
				} else if strings.Contains(r.Error.Message, "sess_") {
					t.Errorf("the message has a session id: %s", r.Error.Message)
				}
			}
			c.ping()
		})
	}
	if n := p.sessions.Pending(); n != 0 {
		t.Errorf("%d of these reached the sessions", n)
	}
	if n := p.conns()[0].Refused; n["request_bytes"] != 3 || n["not_json"] != 1 || n["invalid_request"] == 0 || n["late_answer"] != 3 || n["ignored"] == 0 {
		t.Errorf("the tree counts %v", n)
	}
}

func TestBeforeInitialize(t *testing.T) {
	p := startPod(t, Config{})
	c := p.dial()
	for i, method := range []string{"session/new", "session/resume", "session/prompt", "session/list", "session/close"} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{}}`, i, method))
		c.refusedWith(float64(i), -32002)
	}
	c.send(`{"jsonrpc":"2.0","id":"x","method":"unknown"}`)
	c.refusedWith("x", -32601)
	if n := p.sessions.Pending(); n != 0 {
		t.Errorf("%d of these reached the sessions", n)
	}
}

func TestTheRefusalBudget(t *testing.T) {
	p := startPod(t, Config{RequestBytes: 200})
	large := strings.Repeat("x", 200)
	c := p.hello()
	for range 200 {
		c.ping() // -32601 does not count
	}
	for i := range refusalLimit - 1 {
		switch i % 4 {
		case 0:
			c.send(`{`)
		case 1:
			c.send(`[]`)
		case 2:
			c.send(`{"jsonrpc":"2.0","method":"x","params":"` + large + `"}`)
		case 3:
			c.send(`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + large + `"}`)
		}
		if i%4 != 2 {
			c.answer()
		}
	}
	c.ping()
	c.send(`{`)
	c.closed(1013)
	p.rest()
	if p.gateway.Stats().Exits[TooManyRefusals] != 1 {
		t.Errorf("exits: %v", p.gateway.Stats().Exits)
	}
}

func TestNoInitializeInTime(t *testing.T) {
	p := startPod(t, Config{InitializeTimeout: 50 * time.Millisecond, Keepalive: 40 * time.Millisecond, PongTimeout: time.Hour})
	c := p.dial()
	c.ping()
	c.closed(1008)
	d := p.hello()
	for range 3 { // past the timeout
		if got := d.message(); !strings.Contains(got, acp.MethodKeepalive) {
			t.Fatalf("got %s", got)
		}
	}
	d.ping()
}

func TestHostileFramesEndOnlyTheirConnection(t *testing.T) {
	p := startPod(t, Config{})
	witness := p.hello()
	for _, test := range []struct {
		name   string
		hello  bool
		in     []byte
		code   int
		reason Reason
	}{
		{"a negative length", true, headerOnly(1 << 63), 1002, ProtocolError},
		{"a length of -1", true, headerOnly(^uint64(0)), 1002, ProtocolError},
		{"9 MiB", true, headerOnly(9 << 20), 1009, FrameTooLarge},
		{"9 MiB with its bytes", true, textFrame(strings.Repeat("x", 9<<20)), 1009, FrameTooLarge},
		{"64 KiB and one before initialize", false, textFrame(strings.Repeat("x", 64<<10+1)), 1009, FrameTooLarge},
		{"unmasked", true, []byte{0x81, 1, 'a'}, 1002, ProtocolError},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := p.gateway.Stats().Exits[test.reason]
			c := p.dial()
			if test.hello {
				c = p.hello()
			}
			c.t = t
			c.raw(test.in) // and nothing of it is reset: what comes after the close frame is still read
			c.closed(test.code)
			kerneltest.Eventually(t, "the reason is counted", func() bool { return p.gateway.Stats().Exits[test.reason] > before })
			witness.ping()
		})
	}
}

func TestAClientsCloseIsEchoed(t *testing.T) {
	p := startPod(t, Config{})
	for _, test := range []struct {
		name    string
		payload []byte
		code    int
	}{
		{"nothing", nil, 0},
		{"a code", []byte{0x03, 0xe8}, 1000},
		{"going away", []byte{0x03, 0xe9}, 1001},
		{"a code and a reason", []byte{0x0b, 0xb8, 'b', 'y', 'e'}, 3000},
		{"a reason of markup and no UTF-8", []byte("\x0f\xa1<b>\x1b[31m\n\xff"), 4001},
		{"the longest", append([]byte{0x0f, 0xa1}, strings.Repeat("x", 123)...), 4001},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := p.gateway.Stats().Exits[ClientClosed]
			c := p.hello()
			c.t = t
			c.raw(frameOf(0x88, test.payload, nil))
			if test.code == 0 { // without a code, not with the code zero
				if f := c.frame(); f.first != 0x88 || len(f.payload) != 0 {
					t.Errorf("got %x %x", f.first, f.payload)
				}
			} else {
				c.closed(test.code)
			}
			kerneltest.Eventually(t, "the end is counted", func() bool { return p.gateway.Stats().Exits[ClientClosed] == before+1 })
		})
	}
	p.rest()
	d := p.hello()
	_ = d.conn.Close()
	p.rest()
	if n := p.gateway.Stats().Exits; n[StreamEnded]+n[ReadError] != 1 {
		t.Errorf("exits: %v", n)
	}
}

func TestACloseFrameThatIsNoneIsAProtocolError(t *testing.T) {
	p := startPod(t, Config{})
	for i, payload := range [][]byte{{0x03}, {0xff}, {0}, {0, 0}, {0x03, 0xe7}, {0x03, 0xec}, {0x03, 0xed}, {0x03, 0xee}, {0x03, 0xf7}, {0x0b, 0xb7}, {0x13, 0x88}, {0xff, 0xff}} {
		c := p.hello()
		c.raw(frameOf(0x88, payload, nil))
		c.closed(1002)
		kerneltest.Eventually(t, "the end is counted", func() bool { return p.gateway.Stats().Exits[ProtocolError] == int64(i)+1 })
	}
	c := p.hello()
	c.raw(append([]byte{0x88, 0x80 | 126, 0, 126, 1, 2, 3, 4}, make([]byte, 126)...)) // longer than a control frame may be
	c.closed(1002)
	d := p.hello()
	d.raw([]byte{0x88, 0x80 | 126, 0, 2, 0, 0, 0, 0, 0x03, 0xe8}) // short, with a length that is spelled for a long one
	d.closed(1002)
	p.rest()
}

func TestTextThatIsNoUTF8IsMendedAndTheRestPassesToTheByte(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	const carried = `{"sessionId":"` + "sess_00000000-0000-4000-8000-000000000001" + `", "x":1, "x":2,  "lone":"\ud800", "esc":"\u003c", "big":12345678901234567890123, "prompt":[]}`
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":` + carried + `}`)
	m := kerneltest.Await[session.Prompt](t, s.probe)
	if string(m.Params) != carried {
		t.Errorf("got %s", m.Params)
	}
	m.Held.Release()
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"` + s.id + `","t":"a` + "\xff\xfe" + `é"}}`)
	m = kerneltest.Await[session.Prompt](t, s.probe)
	if !strings.Contains(string(m.Params), "\"t\":\"a\uFFFD\uFFFDé\"") {
		t.Errorf("got %q", m.Params)
	}
	m.Held.Release()
	if n := p.gateway.Stats().NotUTF8; n != 2 {
		t.Errorf("%d bytes were counted, want 2", n)
	}
}

func TestBinaryFramesAreIgnored(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	for range 100 {
		c.raw(frameOf(0x82, []byte(`{"jsonrpc":"2.0","id":1,"method":"session/list"}`), nil))
	}
	c.ping()
	if n := p.gateway.Stats().Binary; n != 100 {
		t.Errorf("%d were counted", n)
	}
}

func TestAPingIsEchoed(t *testing.T) {
	p := startPod(t, Config{})
	c := p.dial()
	c.raw(frameOf(0x89, []byte("payload"), nil))
	if f := c.frame(); f.first != finalBit|opPong || string(f.payload) != "payload" {
		t.Errorf("got %x %q", f.first, f.payload)
	}
}

func TestAnIdleConnectionIsKeptAlive(t *testing.T) {
	p := startPod(t, Config{Keepalive: 30 * time.Millisecond, PongTimeout: time.Hour})
	c := p.hello()
	pings := 0
	for kept := 0; kept < 2 || pings == 0; {
		f := c.frame()
		switch {
		case f.first == finalBit|opPing:
			pings++
		case string(f.payload) == `{"jsonrpc":"2.0","method":"_acpod/keepalive"}`:
			kept++
		default:
			t.Fatalf("got %x %s", f.first, f.payload)
		}
	}
	if pings != 1 {
		t.Errorf("%d pings although the first is not answered", pings)
	}
}

func TestAPeerThatIsGoneWithoutAWordIsFound(t *testing.T) {
	p := startPod(t, Config{Keepalive: 20 * time.Millisecond, PongTimeout: 50 * time.Millisecond})
	c := p.hello()
	c.closed(1008)
	p.rest()
	if p.gateway.Stats().Exits[PongTimeout] != 1 {
		t.Errorf("exits: %v", p.gateway.Stats().Exits)
	}
}

func TestAPeerThatAnswersPingsLives(t *testing.T) {
	p := startPod(t, Config{Keepalive: 20 * time.Millisecond, PongTimeout: 10 * time.Second})
	c := p.hello()
	for pongs := 0; pongs < 5; {
		if f := c.frame(); f.first == finalBit|opPing {
			c.raw(frameOf(0x8a, nil, nil))
			pongs++
		}
	}
}

func TestDrainTellsClientsAndRefusesUpgrades(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	p.gateway.Drain(25 * time.Second)
	c.expect(`{"jsonrpc":"2.0","method":"_acpod/draining","params":{"deadline_ms":25000}}`)
	if d := p.knock(""); d.resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %s", d.resp.Status)
	}
	c.ping()
}

// TestAClientThatGetsInAsTheDrainBeginsIsToldToo: between the look at the drain and the actor there is an upgrade.
func TestAClientThatGetsInAsTheDrainBeginsIsToldToo(t *testing.T) {
	p := startPod(t, Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := p.gateway
		s, err := g.sit(*g.ref.Load(), r, false)
		if err != nil || !g.upgrade(w, r, s, false) {
			t.Error("not let in")
			return
		}
		g.Drain(25 * time.Second)
		if err := g.accept(*g.ref.Load(), s); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c := p.askOf(server.Listener.Addr().String(), "GET /acp HTTP/1.1\r\nHost: localhost\r\n"+goodUpgrade+"\r\n")
	c.expect(`{"jsonrpc":"2.0","method":"_acpod/draining","params":{"deadline_ms":25000}}`)
}

func TestAShutdownWritesWhatIsQueuedAndCloses1012(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	large := `{"jsonrpc":"2.0","method":"session/update","params":"` + strings.Repeat("x", 3<<20) + `"}`
	must(t, s.client.Offer(s.id, []byte(large), nil, nil))
	must(t, s.client.Offer(s.id, []byte(`{"last":true}`), nil, nil))
	p.ref.Stop(kernel.ErrShutdown)
	c.expect(large)
	c.expect(`{"last":true}`)
	c.closed(1012)
}

// TestABlockedPeerEndsAtTheWriteDeadline: whoever stops reading is closed, and what was queued for it is freed.
func TestABlockedPeerEndsAtTheWriteDeadline(t *testing.T) {
	p := startPod(t, Config{WriteTimeout: 100 * time.Millisecond, OutboundBytes: 64 << 20, ConnectionBytes: 128 << 20})
	c := p.hello()
	s := p.open(c, 1)
	fate := make(chan bool, 100)
	for range 20 { // more than two socket buffers hold
		must(t, s.client.Offer(s.id, make([]byte, 1<<20), nil, func(written bool) { fate <- written }))
	}
	select {
	case <-s.client.Gone():
	case <-time.After(kerneltest.Deadline):
		t.Fatal("the connection is still there")
	}
	dropped := 0
	for range 20 {
		if !<-fate {
			dropped++
		}
	}
	if dropped == 0 {
		t.Error("everything was written to a peer that reads nothing")
	}
	p.rest()
	if p.gateway.Stats().Exits[WriteTimeout] != 1 {
		t.Errorf("exits: %v", p.gateway.Stats().Exits)
	}
}

func TestUpgradesAreRefusedWithoutAGateway(t *testing.T) {
	p := startPod(t, Config{})
	p.ref.Stop(kernel.ErrShutdown)
	kerneltest.Eventually(t, "the gateway is stopping", func() bool { return p.ref.Cause() != nil })
	if p.gateway.Drain(0); p.knock("").resp.StatusCode != http.StatusServiceUnavailable {
		t.Error("an upgrade got in")
	}
}
