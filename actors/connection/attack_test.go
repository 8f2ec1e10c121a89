package connection

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// TestFiveHundredHeadersLeaveTheAccountUnderItsLimit: each socket claims 8 MiB with 14 bytes. Those that are initialized may do
// so, and still leave room for others.
func TestFiveHundredHeadersLeaveTheAccountUnderItsLimit(t *testing.T) {
	const limit = 64 << 20
	for _, test := range []struct {
		name    string
		sockets int
		hello   bool
	}{
		{"before initialize", 500, false},
		{"after it", 100, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := startPodIn(t, Config{BytesWait: time.Minute, FlushTimeout: 5 * time.Second}, kernel.Options{Limit: limit})
			account := p.kernel.Account()
			var peers []*peer
			for range test.sockets {
				enter := p.dial
				if test.hello {
					enter = p.hello
				}
				c := enter()
				peers = append(peers, c)
				c.raw(headerOnly(8 << 20))
				if used := account.Used(); used > limit {
					t.Fatalf("%d bytes are charged", used)
				}
			}
			if test.hello { // until as many frames are paid for as there is room for
				kerneltest.Eventually(t, "half of the account is full of headers", func() bool { return account.Used() >= limit/2 })
			}
			last := p.hello()
			s := p.open(last, 1)
			p.prompt(last, s, 1, strings.Repeat("x", 10_000))
			last.ping()
			if used := account.Used(); used > limit {
				t.Fatalf("%d bytes are charged", used)
			}
			for _, c := range peers {
				if !test.hello {
					c.closed(1009)
				}
				_ = c.conn.Close()
			}
			_ = last.conn.Close()
			p.rest()
		})
	}
}

// TestASocketThatWaitsForBytesTooLongIsClosed, and whoever waits for an answer over it hears why.
func TestASocketThatWaitsForBytesTooLongIsClosed(t *testing.T) {
	p := startPod(t, Config{ConnectionBytes: 1 << 20, BytesWait: 50 * time.Millisecond})
	c := p.hello()
	s := p.open(c, 1)
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	c.message()
	account := s.client.(*client).account
	hold, err := account.Acquire(account.Limit() - account.Used())
	must(t, err)
	c.send(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 100_000) + `"}`)
	c.closed(1013)
	var full *kernel.Overloaded
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.As(a.Err, &full) || full.Scope != "connection_bytes" {
		t.Errorf("got %+v", a)
	}
	hold.Release()
	p.rest()
	if p.gateway.Stats().Exits[Overloaded] != 1 {
		t.Errorf("exits: %v", p.gateway.Stats().Exits)
	}
}

// TestAFullMailboxRefusesAtOnce: the account has room for the frame and none for its place in the queue.
func TestAFullMailboxRefusesAtOnce(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	c.message()
	account := s.client.(*client).account
	fill := func(frame string) *kernel.Lease {
		t.Helper()
		kerneltest.Eventually(t, "the connection is quiet", func() bool {
			frames, _ := s.client.(*client).out.queued()
			return frames == 0 && p.conns()[0].Queue.N == 0 && p.conns()[0].Doing == nil
		})
		lease, err := account.Acquire(account.Limit() - account.Used() - int64(len(frame)) - 50)
		must(t, err)
		c.send(frame)
		return lease
	}
	lease := fill(`{"jsonrpc":"2.0","id":"full","method":"session/list"}`)
	r := c.refusedWith("full", -32000)
	if r.Error.Data["scope"] != "connection_bytes" || r.Error.Data["limit"] != float64(48<<20) {
		t.Errorf("data is %v", r.Error.Data)
	}
	lease.Release()

	lease = fill(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + s.id + `"}}`)
	kerneltest.Eventually(t, "the notification is counted", func() bool { return p.conns()[0].Refused["connection_bytes"] == 2 })
	lease.Release()

	lease = fill(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	var full *kernel.Overloaded
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.As(a.Err, &full) || full.Scope != "connection_bytes" {
		t.Errorf("the waiter got %+v", a)
	}
	lease.Release()
	c.ping()
	if n := p.sessions.Pending() + s.probe.Pending(); n != 0 {
		t.Errorf("%d messages got through", n)
	}
}

// TestAPeerThatAsksAndNeverReadsIsClosed: its answers are bounded.
func TestAPeerThatAsksAndNeverReadsIsClosed(t *testing.T) {
	p := startPod(t, Config{WriteTimeout: time.Minute, FlushTimeout: 100 * time.Millisecond, SlowGrace: 100 * time.Millisecond})
	c := p.hello()
	s := p.open(c, 1)
	block(t, s, c)
	ask := textFrame(`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 900) + `","method":"_x"}`)
	for stop := time.Now().Add(kerneltest.Deadline); ; {
		select {
		case <-s.client.Gone():
			p.rest()
			if n := p.gateway.Stats().Exits[SlowReader]; n != 1 {
				t.Errorf("exits: %v", p.gateway.Stats().Exits)
			}
			return
		default:
		}
		if time.Now().After(stop) {
			t.Fatal("it may go on for ever")
		}
		_, _ = c.conn.Write(ask)
	}
}

func TestACrashOfAConnectionIsItsOwn(t *testing.T) {
	p := startPod(t, Config{})
	witness := p.hello()
	c := p.hello()
	s := p.open(c, 1)
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	c.message()
	must(t, s.client.Ref().Tell(lostAnswer{})) // of no request: a fault of ours
	c.closed(1011)
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.Is(a.Err, tunnel.ErrGone) {
		t.Errorf("got %+v", a)
	}
	if m := kerneltest.Await[session.Detach](t, s.probe); m.Client != s.client {
		t.Errorf("got %+v", m)
	}
	kerneltest.Eventually(t, "the crash is counted", func() bool { return p.gateway.Stats().Exits[Crashed] == 1 })
	witness.ping()
}

func TestACrashOfTheGatewayLeavesNoSocket(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	p.ref.Stop(errors.New("crash"))
	c.closed(1012)
	kerneltest.Eventually(t, "no seat is taken", func() bool { return p.gateway.Stats().Connections == 0 })
}

// received collects what a gws client gets.
type received struct {
	gws.BuiltinEventHandler
	messages chan string
	closed   chan error
}

func (r *received) OnMessage(_ *gws.Conn, m *gws.Message) {
	r.messages <- string(m.Bytes())
	_ = m.Close()
}
func (r *received) OnClose(_ *gws.Conn, err error) { r.closed <- err }

// TestALibrarysClient speaks to us with frames that are not our own, large ones both ways.
func TestALibrarysClient(t *testing.T) {
	p := startPod(t, Config{Keys: []Key{NewKey("", "tok")}})
	r := &received{messages: make(chan string, 10), closed: make(chan error, 1)}
	next := func() string {
		select {
		case m := <-r.messages:
			return m
		case <-time.After(kerneltest.Deadline):
			t.Fatal("no message")
			return ""
		}
	}
	conn, resp, err := gws.NewClient(r, &gws.ClientOption{
		Addr:          "ws://" + p.addr() + "/acp",
		RequestHeader: http.Header{headerProtocol: {"openab.bearer.tok, acp.v1"}},
	})
	must(t, err)
	defer conn.NetConn().Close()
	if conn.SubProtocol() != "acp.v1" || resp.Header.Get("Acp-Connection-Id") == "" {
		t.Errorf("got %q, %v", conn.SubProtocol(), resp.Header)
	}
	go conn.ReadLoop()
	must(t, conn.WriteString(helloRequest))
	next()
	must(t, conn.WriteString(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`))
	m := kerneltest.Await[session.Open](t, p.sessions)
	m.Held.Release()
	if m.Client.Key() != Shared {
		t.Errorf("the key is %q", m.Client.Key())
	}
	probe := kerneltest.NewProbe()
	s := &testSession{id: sessionID(1), probe: probe, ref: kerneltest.Spawn(t, p.root, probe.Spec("s")), client: m.Client}
	m.Client.Granted(s.id, s.ref)
	large := strings.Repeat("l", 7<<20)
	m.Client.Respond(s.id, m.Req, []byte(`"`+large+`"`), nil, nil)
	if got := next(); got != `{"jsonrpc":"2.0","id":1,"result":"`+large+`"}` {
		t.Errorf("got %d bytes: %.60s", len(got), got)
	}
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	next()
	must(t, conn.WriteString(`{"jsonrpc":"2.0","id":1,"result":"`+large+`"}`))
	a := kerneltest.Await[kernel.Answer](t, probe)
	if a.Err != nil || string(a.Msg.(tunnel.Reply).Result) != `"`+large+`"` {
		t.Errorf("the answer has an error %v", a.Err)
	}
	a.Lease.Release()
	must(t, conn.WriteClose(1000, []byte("bye")))
	p.rest()
	if p.gateway.Stats().Exits[ClientClosed] != 1 {
		t.Errorf("exits: %v", p.gateway.Stats().Exits)
	}
	select {
	case <-r.closed:
	case <-time.After(kerneltest.Deadline):
		t.Fatal("the client did not see the end")
	}
}

// TestNothingOfAPeerIsInTheTree: names are escaped and cut, ids of sessions and payloads are not there at all.
func TestNothingOfAPeerIsInTheTree(t *testing.T) {
	p := startPod(t, Config{})
	c := p.dial()
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"<b>\u001b[31m` + strings.Repeat("n", 200) + `"},"_meta":{"acpod.dev/client":"the-clients-secret"}}}`)
	c.answer()
	p.open(c, 1)
	c.ping()
	kerneltest.Eventually(t, "the tree shows the session", func() bool { return p.conns()[0].Attrs["sessions"] == 1 })
	shown := fmt.Sprint(p.conns())
	for _, secret := range []string{"sess_", "the-clients-secret", "\x1b", strings.Repeat("n", 65)} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is in the tree", secret)
		}
	}
	if !strings.Contains(shown, "<b>") {
		t.Error("the client's name is not in the tree")
	}
	host, _, err := net.SplitHostPort(fmt.Sprint(p.conns()[0].Attrs["peer"]))
	if err != nil || host != "127.0.0.1" {
		t.Errorf("the peer is %v", p.conns()[0].Attrs["peer"])
	}
}
