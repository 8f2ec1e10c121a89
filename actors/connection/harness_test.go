package connection

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// testPod is a gateway with a probe in place of the sessions' supervisor, behind a real HTTP server on loopback.
type testPod struct {
	t        *testing.T
	kernel   *kernel.Kernel
	root     kernel.Ref
	sessions *kerneltest.Probe
	gateway  *Gateway
	ref      kernel.Ref
	server   *httptest.Server
	offers   *fakeOffers
}

// fakeOffers is what an agent offers, when the test says so.
type fakeOffers struct {
	info  *acp.AgentInfo
	known chan struct{} // closed: final
	hold  chan struct{} // not nil: Now blocks until it is closed, and with it the connection's turn
	held  chan struct{} // closed when Now blocks
}

func (o *fakeOffers) Now() (*acp.AgentInfo, bool) {
	if o.hold != nil {
		close(o.held)
		<-o.hold
		o.hold = nil
	}
	select {
	case <-o.known:
		return o.info, true
	default:
		return nil, false
	}
}

func (o *fakeOffers) Wait(ctx context.Context) *acp.AgentInfo {
	select {
	case <-o.known:
	case <-ctx.Done():
	}
	return o.info
}

func startPod(t *testing.T, cfg Config) *testPod { return startPodIn(t, cfg, kernel.Options{}) }

func startPodIn(t *testing.T, cfg Config, o kernel.Options) *testPod {
	t.Helper()
	p := &testPod{t: t, kernel: kerneltest.Start(t, o), sessions: kerneltest.NewProbe(), offers: &fakeOffers{known: make(chan struct{})}}
	close(p.offers.known)
	p.root, _ = kerneltest.Root(t, p.kernel)
	sessions := kerneltest.Spawn(t, p.root, p.sessions.Spec("sessions"))
	p.gateway = New(cfg, sessions.Current, p.offers)
	p.ref = kerneltest.Spawn(t, p.root, p.gateway.Spec())
	kerneltest.Eventually(t, "the gateway runs", func() bool { return p.gateway.ref.Load() != nil })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	socket, err := door.NewSocket(listener)
	must(t, err)
	p.server = httptest.NewUnstartedServer(p.gateway)
	must(t, p.server.Listener.Close())
	p.server.Listener = socket.View(0, nil) // as in the pod: the gateway's sockets come wrapped
	p.server.Start()
	t.Cleanup(func() { p.server.Close(); must(t, socket.Close()) })
	return p
}

func (p *testPod) addr() string { return p.server.Listener.Addr().String() }

// conns are the nodes of the connections in the tree.
func (p *testPod) conns() []kernel.Node {
	for _, n := range p.kernel.Tree().Children {
		if n.Name == "gateway" {
			return n.Children
		}
	}
	return nil
}

// rest waits until no connection is left and the gateway owes nothing.
func (p *testPod) rest() {
	p.t.Helper()
	kerneltest.Eventually(p.t, "the gateway is at rest", func() bool {
		for _, n := range p.kernel.Tree().Children {
			if n.Name == "gateway" && (len(n.Children) > 0 || len(n.Owes) > 0) {
				return false
			}
		}
		return p.gateway.Stats().Connections == 0
	})
}

// peer is a client on a socket, without anything of a library or of the server's code.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	resp *http.Response
}

const goodUpgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// knock sends an upgrade with more headers, and what is to follow in the same segment.
func (p *testPod) knock(headers string, early ...byte) *peer {
	p.t.Helper()
	return p.ask("GET /acp HTTP/1.1\r\nHost: "+p.addr()+"\r\n"+goodUpgrade+headers+"\r\n", early...)
}

// ask sends any request.
func (p *testPod) ask(request string, early ...byte) *peer {
	p.t.Helper()
	return p.askOf(p.addr(), request, early...)
}

func (p *testPod) askOf(addr, request string, early ...byte) *peer {
	p.t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	must(p.t, conn.SetDeadline(time.Now().Add(kerneltest.Deadline)))
	_, err = conn.Write(append([]byte(request), early...))
	must(p.t, err)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	must(p.t, err)
	return &peer{t: p.t, conn: conn, in: in, resp: resp}
}

// dial is a client that got in.
func (p *testPod) dial() *peer {
	p.t.Helper()
	c := p.knock("")
	if c.resp.StatusCode != http.StatusSwitchingProtocols {
		p.t.Fatalf("upgrade: %s", c.resp.Status)
	}
	return c
}

const helloRequest = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`

// hello is a client that is initialized.
func (p *testPod) hello() *peer {
	p.t.Helper()
	c := p.dial()
	c.send(helloRequest)
	if got := c.message(); !strings.Contains(got, `"protocolVersion":1`) {
		p.t.Fatalf("initialize: %s", got)
	}
	return c
}

func (c *peer) raw(b []byte) {
	c.t.Helper()
	_, err := c.conn.Write(b)
	must(c.t, err)
}

func (c *peer) send(message string) {
	c.t.Helper()
	c.raw(textFrame(message))
}

// frame is the next frame, whatever it is.
func (c *peer) frame() served {
	c.t.Helper()
	must(c.t, c.conn.SetReadDeadline(time.Now().Add(kerneltest.Deadline)))
	f, err := readServed(c.in)
	if err != nil {
		c.t.Fatalf("no frame: %v", err)
	}
	return f
}

// message is the next text message; pings are passed over.
func (c *peer) message() string {
	c.t.Helper()
	var whole bytes.Buffer
	for {
		f := c.frame()
		switch f.first & 0x0f {
		case opPing, opPong:
			continue
		case opClose:
			c.t.Fatalf("closed with %d %q", code(f), f.payload)
		}
		whole.Write(f.payload)
		if f.first&finalBit != 0 {
			return whole.String()
		}
	}
}

// expect wants exactly that message.
func (c *peer) expect(want string) {
	c.t.Helper()
	if got := c.message(); got != want {
		c.t.Fatalf("got  %.300s\nwant %.300s", got, want)
	}
}

// answer is the next message, decoded; what blocked the socket is passed over.
func (c *peer) answer() response {
	c.t.Helper()
	raw := c.message()
	for strings.HasPrefix(raw, "\x00") {
		raw = c.message()
	}
	var r response
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		c.t.Fatalf("%v: %.300s", err, raw)
	}
	return r
}

type response struct {
	ID     any            `json:"id"`
	Result map[string]any `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

// refusedWith wants an error with that code and id.
func (c *peer) refusedWith(id any, want int) response {
	c.t.Helper()
	r := c.answer()
	if r.Error == nil || r.Error.Code != want || r.ID != id {
		c.t.Fatalf("got %+v (error %+v), want error %d for id %v", r, r.Error, want, id)
	}
	return r
}

func code(f served) int {
	if len(f.payload) < 2 {
		return 0
	}
	return int(binary.BigEndian.Uint16(f.payload))
}

// closed wants the close frame with that code, passing over what comes before it, and then the end of the socket.
func (c *peer) closed(want int) {
	c.t.Helper()
	for {
		f := c.frame()
		if f.first&0x0f != opClose {
			continue
		}
		if code(f) != want {
			c.t.Fatalf("closed with %d %q, want %d", code(f), f.payload, want)
		}
		break
	}
	if _, err := io.Copy(io.Discard, c.in); err != nil {
		c.t.Fatalf("after the close: %v", err)
	}
	_ = c.conn.Close()
}

// ping makes sure that everything sent before was dispatched: nobody knows the method, so the connection answers itself.
func (c *peer) ping() {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":"ping","method":"_test/ping"}`)
	c.refusedWith("ping", -32601)
}

// testSession is a session that a test plays: its actor is a probe.
type testSession struct {
	id     string
	probe  *kerneltest.Probe
	ref    kernel.Ref
	client session.Client
}

func sessionID(n int) string { return fmt.Sprintf("sess_00000000-0000-4000-8000-%012d", n) }

// open has the client open session n, and answers it.
func (p *testPod) open(c *peer, n int) *testSession { return p.openIn(c, n, kernel.Spec{}) }

// openIn is open with the account of the given spec.
func (p *testPod) openIn(c *peer, n int, like kernel.Spec) *testSession {
	p.t.Helper()
	s := &testSession{id: sessionID(n), probe: kerneltest.NewProbe()}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"new-%d","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, n))
	m := kerneltest.Await[session.Open](p.t, p.sessions)
	spec := s.probe.Spec(fmt.Sprintf("sess-%d", n))
	spec.Scope, spec.Limit = like.Scope, like.Limit
	s.ref, s.client = kerneltest.Spawn(p.t, p.root, spec), m.Client
	m.Held.Release()
	m.Client.Granted(s.id, s.ref)
	m.Client.Respond(s.id, m.Req, []byte(`{"sessionId":"`+s.id+`"}`), nil, nil)
	c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":"new-%d","result":{"sessionId":"%s"}}`, n, s.id))
	return s
}

// prompt has the client send a prompt with that text, and returns what the session gets.
func (p *testPod) prompt(c *peer, s *testSession, id int, text string) session.Prompt {
	p.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"%s","prompt":[{"type":"text","text":"%s"}]}}`, id, s.id, text))
	m := kerneltest.Await[session.Prompt](p.t, s.probe)
	m.Held.Release()
	return m
}
