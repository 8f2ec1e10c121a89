package connection

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestTheSixtyFourthRefusalInTenSecondsEnds(t *testing.T) {
	start := time.Now()
	for _, test := range []struct {
		name  string
		gap   time.Duration
		n     int
		spent int // the refusal that ends it, 0 = none
	}{
		{"at once", 0, 64, 64},
		{"63 are not enough", 0, 63, 0},
		{"evenly, just within", 158 * time.Millisecond, 64, 64},
		{"evenly, just not", 159 * time.Millisecond, 1000, 0},
		{"one a second", time.Second, 1000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r refusals
			spent := 0
			for i := 1; i <= test.n && spent == 0; i++ {
				if r.spend(start.Add(time.Duration(i) * test.gap)) {
					spent = i
				}
			}
			if spent != test.spent {
				t.Errorf("ended at %d, want %d", spent, test.spent)
			}
		})
	}
}

func TestOldRefusalsAreForgotten(t *testing.T) {
	var r refusals
	now := time.Now()
	for range 63 {
		r.spend(now)
	}
	if now = now.Add(refusalWindow); r.spend(now) {
		t.Error("63 refusals of ten seconds ago and one of now ended it")
	}
	for i := range 62 {
		if r.spend(now) {
			t.Fatalf("ended after %d of now", i+2)
		}
	}
	if !r.spend(now) {
		t.Error("64 refusals of now did not end it")
	}
	if r.total() != 127 {
		t.Errorf("counted %d, want 127", r.total())
	}
}

// TestEachRefusalIsCountedOnceUnderItsName: what an operator reads in the tree adds up to what the client was refused.
func TestEachRefusalIsCountedOnceUnderItsName(t *testing.T) {
	p := startPod(t, Config{RequestBytes: 1000, PromptsPerConnection: 6, ServersPerSession: 1})
	c := p.hello()
	s := p.openIn(c, 1, kernel.Spec{Scope: "session_bytes", Limit: 100_000})
	large := strings.Repeat("x", 1000)
	for _, frame := range []string{
		`{`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `{"jsonrpc":"2.0","id":1,"method":"session/prompt"}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + large + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"acp","name":"a","id":"1"},{"type":"acp","name":"b","id":"2"}]}}`,
	} {
		c.send(frame)
		c.answer()
	}
	c.send(`{"jsonrpc":"2.0","method":"x","params":"` + large + `"}`)
	for i, e := range []*jsonrpc.Error{
		jsonrpc.BusyError(), jsonrpc.SupersededError(), jsonrpc.BadParams("no"), jsonrpc.Draining(0),
		jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: jsonrpc.ScopeMaxSessions, Limit: 1, Used: 1}),
		jsonrpc.ParseError([]byte(`{"code":-32000,"message":"the agent's own"}`)), // passes, and is no refusal of ours
		jsonrpc.CancelledError(), jsonrpc.InternalError(jsonrpc.ReasonIdle, "late"),
	} {
		m := p.prompt(c, s, 10+i, "hi")
		s.client.Respond(s.id, m.Req, nil, nil, e)
		c.refusedWith(float64(10+i), e.Code)
	}
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	c.message()
	kerneltest.Eventually(t, "the session is quiet", func() bool {
		for _, n := range p.kernel.Tree().Children {
			if n.Name == "sess-1" {
				return n.Queue.N == 0 && n.Doing == nil
			}
		}
		return false
	})
	account := s.ref.Account() // is full: a prompt is answered, a notification of a tunnel is dropped
	hold, err := account.Acquire(account.Limit() - account.Used())
	must(t, err)
	must(t, s.client.Bind("c1", s.ref))
	c.send(`{"jsonrpc":"2.0","id":30,"method":"session/prompt","params":{"sessionId":"` + s.id + `","prompt":[]}}`)
	c.refusedWith(30.0, jsonrpc.Overload)
	c.send(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c1","method":"notifications/x"}}`)
	c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`) // and so is the answer that a tunnel waits for, which hears of it
	var full *kernel.Overloaded
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.As(a.Err, &full) || full.Scope != "session_bytes" {
		t.Errorf("the waiter got %+v", a)
	}
	hold.Release()
	c.ping()
	want := map[string]int64{
		"not_json": 1, "invalid_request": 1, "unknown_method": 2, "invalid_params": 2, "request_bytes": 2, "servers_per_session": 1,
		"busy": 1, "superseded": 1, "draining": 1, "max_sessions": 1, "session_bytes": 3,
	}
	kerneltest.Eventually(t, "all is counted", func() bool { return p.conns()[0].Refused["unknown_method"] == want["unknown_method"] })
	if got := p.conns()[0].Refused; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// of these, -32700, -32600, -32000 and what was dropped count against the budget
	if got := s.client.(*client).refused.total(); got != 1+1+2+1+1+1+3 {
		t.Errorf("%d were taken from the budget", got)
	}
}

// TestALargeFrameRightBehindInitialize: what a client may send depends on what it sent before, not on how far we are.
func TestALargeFrameRightBehindInitialize(t *testing.T) {
	p := startPod(t, Config{})
	p.offers.hold, p.offers.held = make(chan struct{}), make(chan struct{}) // the actor's turn takes its time
	c := p.dial()
	large := `{"jsonrpc":"2.0","id":1,"method":"_x","params":"` + strings.Repeat("x", 200<<10) + `"}`
	c.raw(append(textFrame(helloRequest), textFrame(large)...))
	<-p.offers.held
	kerneltest.Eventually(t, "the large frame waits for its turn", func() bool { n := p.conns(); return len(n) == 1 && n[0].Queue.N == 1 })
	close(p.offers.hold)
	c.answer()
	c.refusedWith(1.0, -32601)

	for _, early := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":0}}`, `{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}`,
		`{"jsonrpc":"2.0","id":0,"method":"session/list","params":{"protocolVersion":1}}`, `{"jsonrpc":"1.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
	} {
		d := p.dial()
		d.raw(append(textFrame(early), textFrame(large)...))
		d.closed(1009)
	}
}

// TestASilenceOfOurOwnIsNotThePeers: while its socket is not read nobody can tell whether it answers.
func TestASilenceOfOurOwnIsNotThePeers(t *testing.T) {
	p := startPod(t, Config{ConnectionBytes: 1 << 20, BytesWait: time.Minute, Keepalive: 20 * time.Millisecond, PongTimeout: 200 * time.Millisecond})
	c := p.dial()
	c.send(helloRequest)
	c.send(`{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	m := kerneltest.Await[session.Open](t, p.sessions)
	m.Held.Release()
	account := m.Client.(*client).account
	hold, err := account.Acquire(account.Limit() - account.Used() - 10_000)
	must(t, err)
	c.send(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 100_000) + `"}`)
	for kept := 0; kept < 30; { // three times as long as a ping may go unanswered
		if strings.Contains(c.message(), acp.MethodKeepalive) {
			kept++
		}
	}
	hold.Release()
}
