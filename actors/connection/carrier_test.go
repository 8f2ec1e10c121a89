package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// request has the session's actor send one, as a tunnel would.
func (s *testSession) request(t *testing.T, out tunnel.Out) kernel.Ticket {
	t.Helper()
	var ticket kernel.Ticket
	var err error
	kerneltest.Do(t, s.ref, func(c *kernel.Ctx) { ticket, err = s.client.Request(c, out) })
	must(t, err)
	return ticket
}

func (s *testSession) cancel(t *testing.T, ticket kernel.Ticket) {
	t.Helper()
	kerneltest.Do(t, s.ref, func(c *kernel.Ctx) { c.Cancel(ticket) })
}

func cancelA(outer jsonrpc.ID) []acp.Notification { return acp.GenA.CancelFrames(outer) }

func TestRequestsToTheClientAreAnswered(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	for i, answer := range []string{
		`{"jsonrpc":"2.0","id":%d,"result":{"a": 1.0}}`,
		`{"jsonrpc":"2.0","id":"%d","result":{"a": 1.0}}`,
		`{"id":%d,"jsonrpc":"2.0", "extra":0, "result": {"a": 1.0} }`,
	} {
		ticket := s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message", Params: []byte(`{"n":"\u003c"}`)})
		c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"mcp/message","params":{"n":"\u003c"}}`, i+1))
		used := s.client.(*client).account.Used()
		c.send(fmt.Sprintf(answer, i+1))
		a := kerneltest.Await[kernel.Answer](t, s.probe)
		if a.Ticket != ticket || a.Err != nil || string(a.Msg.(tunnel.Reply).Result) != `{"a": 1.0}` {
			t.Fatalf("got %+v", a)
		}
		if a.Lease.Account() != s.ref.Account() || a.Lease.Size() < int64(len(answer)-4) {
			t.Errorf("the lease is of %d bytes", a.Lease.Size())
		}
		a.Lease.Release()
		kerneltest.Eventually(t, "the connection pays no more", func() bool { return s.client.(*client).account.Used() <= used })
	}
}

func TestErrorsOfTheClientPassAsTheyCame(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	const object = `{"data":{"x":1},"code":-32050, "message":"no"}`
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/connect"})
	c.expect(`{"jsonrpc":"2.0","id":1,"method":"mcp/connect"}`)
	c.send(`{"jsonrpc":"2.0","id":1,"error":` + object + `}`)
	var e *jsonrpc.Error
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.As(a.Err, &e) || e.Code != -32050 || string(e.Raw()) != object {
		t.Errorf("got %+v", a)
	}
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/connect"})
	c.message()
	c.send(`{"jsonrpc":"2.0","id":2,"error":{"code":7,"message":"` + strings.Repeat("m", 1<<20) + `"}}`)
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.As(a.Err, &e) || e.Code != 7 || e.Size() > kernel.AnswerBytes {
		t.Errorf("got %d bytes of error", e.Size())
	}
}

func TestAnswersNobodyWaitsForAreCounted(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	ticket := s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message", Cancel: cancelA})
	c.message()
	s.cancel(t, ticket)
	c.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	c.expect(`{"jsonrpc":"2.0","method":"mcp/cancel","params":{"requestId":1}}`)
	for _, late := range []string{`1`, `1`, `"1"`, `0`, `-1`, `999`, `null`} {
		c.send(`{"jsonrpc":"2.0","id":` + late + `,"result":{}}`)
	}
	c.ping()
	if n := p.gateway.Stats().LateAnswers; n != 7 {
		t.Errorf("%d were counted", n)
	}
	if n := s.probe.Pending(); n != 0 {
		t.Errorf("%d answers came", n)
	}
}

func TestACancelTakesAQueuedRequestOut(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	block(t, s, c)
	ticket := s.request(t, tunnel.Out{Stream: "t", Method: "mcp/never", Cancel: cancelA})
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/after"})
	s.cancel(t, ticket)
	kerneltest.Eventually(t, "the request is out of the ledger", func() bool {
		return s.client.(*client).book.peekAsk(1) == nil
	})
	for {
		got := c.message()
		if strings.HasPrefix(got, "\x00") {
			continue
		}
		if got != `{"jsonrpc":"2.0","id":2,"method":"mcp/after"}` {
			t.Fatalf("got %.100s", got)
		}
		break
	}
	c.ping()
}

// TestACancelThatOvertakesItsQuestionIsNotLost: the kernel takes a question that is cancelled in the queue out of it without a
// word, while its frame is on its way already.
func TestACancelThatOvertakesItsQuestionIsNotLost(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	p.offers.hold, p.offers.held = make(chan struct{}), make(chan struct{})
	release := p.offers.hold
	c.send(helloRequest)
	<-p.offers.held // the connection's turn is blocked
	var ticket kernel.Ticket
	kerneltest.Do(t, s.ref, func(k *kernel.Ctx) {
		var err error
		if ticket, err = s.client.Request(k, tunnel.Out{Stream: "t", Method: "mcp/message", Cancel: cancelA}); err != nil {
			t.Error(err)
		}
	})
	c.expect(`{"jsonrpc":"2.0","id":1,"method":"mcp/message"}`)
	s.cancel(t, ticket)
	close(release)
	seen := map[string]bool{}
	for range 3 {
		seen[c.message()] = true
	}
	if !seen[`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`] {
		t.Errorf("the client was not told: %v", seen)
	}
	if s.client.(*client).book.peekAsk(1) != nil {
		t.Error("the request is still in the ledger")
	}
}

func TestAConnectThatArrivesTooLateIsDisconnected(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	arrived := func(result []byte) *tunnel.Farewell {
		id, err := acp.GenA.ParseConnected(result)
		if err != nil {
			return nil
		}
		method, params, request, _ := acp.GenA.Disconnect(id)
		return &tunnel.Farewell{ConnectionID: id, Method: method, Params: params, Request: request}
	}
	connect := tunnel.Out{Stream: "t", Method: "mcp/connect", Arrived: arrived}
	for i, end := range []func(kernel.Ticket){
		func(ticket kernel.Ticket) { s.cancel(t, ticket) },
		func(kernel.Ticket) {}, // it is wanted, but its tunnel has not bound it: that is the tunnel's to do in Arrived
	} {
		id := 2*i + 1
		ticket := s.request(t, connect)
		c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"mcp/connect"}`, id))
		end(ticket)
		c.ping()
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"connectionId":"late-%d"}}`, id, i))
		c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"mcp/disconnect","params":{"connectionId":"late-%d"}}`, id+1, i))
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id+1))
		c.ping()
	}
	must(t, s.client.Bind("bound", s.ref))
	s.request(t, connect)
	c.message()
	c.send(`{"jsonrpc":"2.0","id":5,"result":{"connectionId":"bound"}}`)
	c.ping()      // and no disconnect
	for range 2 { // of the two that were wanted
		a := kerneltest.Await[kernel.Answer](t, s.probe)
		a.Lease.Release()
	}
	s.request(t, connect)
	c.message()
	c.send(`{"jsonrpc":"2.0","id":6,"error":{"code":1,"message":"no"}}`)
	c.ping()
	if _, _, asks := s.client.(*client).book.counts(); asks != 0 {
		t.Errorf("%d requests are left in the ledger", asks)
	}
}

func TestAnAskersEndCancels(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message", Cancel: cancelRequest})
	c.message()
	s.ref.Stop(nil)
	c.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
}

func TestEstablishesAreBounded(t *testing.T) {
	p := startPod(t, Config{EstablishesPerConnection: 2})
	c := p.hello()
	s := p.open(c, 1)
	try := func(method string) (err error) {
		kerneltest.Do(t, s.ref, func(k *kernel.Ctx) { _, err = s.client.Request(k, tunnel.Out{Stream: "t", Method: method}) })
		return err
	}
	must(t, try("mcp/connect"))
	must(t, try("_mcp/connect"))
	var full *kernel.Overloaded
	if err := try("mcp/connect"); !errors.As(err, &full) || full.Scope != "establishes_per_connection" || full.Used != 2 {
		t.Fatalf("got %v", err)
	}
	must(t, try("mcp/message"))
	c.message()
	c.send(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`)
	kerneltest.Await[kernel.Answer](t, s.probe)
	must(t, try("mcp/connect"))
}

func TestInboundNotificationsReachTheirTunnelOnly(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s, other := p.open(c, 1), p.open(c, 2)
	must(t, s.client.Bind("c1", s.ref))
	must(t, s.client.Bind("c2", other.ref))
	for id, want := range map[string]error{"": tunnel.ErrBadID, strings.Repeat("x", 1025): tunnel.ErrBadID, "c1": tunnel.ErrInUse} {
		if err := s.client.Bind(id, s.ref); !errors.Is(err, want) {
			t.Errorf("Bind(%.10q): %v, want %v", id, err, want)
		}
	}
	send := func(address string) {
		c.send(`{"jsonrpc":"2.0","method":"mcp/message","params":{` + address + `,"method":"notifications/progress","params":{"p":1}}}`)
	}
	send(`"connectionId":"c1"`)
	m := kerneltest.Await[tunnel.Inbound](t, s.probe)
	if m.Message.Target != "c1" || m.Message.Method != "notifications/progress" || string(m.Message.Params) != `{"p":1}` || m.Bytes.Account() != s.ref.Account() {
		t.Errorf("got %+v", m)
	}
	m.Bytes.Release()
	send(`"connectionId":"nobody"`)
	send(`"connectionId":7`)
	c.send(`{"jsonrpc":"2.0","id":9,"method":"mcp/message","params":{"connectionId":"c1","method":"sampling/createMessage"}}`)
	c.refusedWith(9.0, -32601)
	if s.client.Unbind("c1", other.ref) {
		t.Error("what another actor has bound was unbound")
	}
	if !s.client.Unbind("c1", s.ref) || !s.client.Unbind("never", s.ref) {
		t.Error("an own id, and one of nobody, are free afterwards")
	}
	send(`"connectionId":"c1"`)
	c.ping()
	must(t, s.client.Bind("c1", other.ref))

	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message", RequestID: "r1"})
	c.message()
	send(`"serverId":"srv","requestId":"r1"`)
	m = kerneltest.Await[tunnel.Inbound](t, s.probe)
	if !m.Message.Stateless || m.Message.RequestID != "r1" {
		t.Errorf("got %+v", m)
	}
	m.Bytes.Release()
	c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	a := kerneltest.Await[kernel.Answer](t, s.probe)
	a.Lease.Release()
	send(`"serverId":"srv","requestId":"r1"`)
	c.ping()
	if s.probe.Pending()+other.probe.Pending() != 0 {
		t.Error("something reached a tunnel that it was not for")
	}
	n := p.conns()[0].Refused
	if n["inbound_unbound"] != 3 || n["inbound_malformed"] != 1 || n["inbound_request"] != 1 {
		t.Errorf("counted %v", n)
	}
}

func TestAChangedListIsToldToATunnelWhoseSessionIsFull(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.openIn(c, 1, kernel.Spec{Scope: "session_bytes", Limit: 100_000})
	must(t, s.client.Bind("c1", s.ref))
	account := s.ref.Account()
	lease, err := account.Acquire(account.Limit() - account.Used())
	must(t, err)
	defer lease.Release()
	c.send(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c1","method":"notifications/progress","params":{"p":1}}}`)
	c.send(`{"jsonrpc":"2.0","method":"mcp/message","params":{"connectionId":"c1","method":"notifications/tools/list_changed"}}`)
	if m := kerneltest.Await[tunnel.Inbound](t, s.probe); m.Message.Method != "notifications/tools/list_changed" || m.Bytes != nil {
		t.Errorf("got %+v", m)
	}
	if n := p.conns()[0].Refused["session_bytes"]; n != 1 {
		t.Errorf("%d notifications are counted as dropped", n)
	}
}

func TestDisconnectWaitsForItsAnswer(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	farewell := tunnel.Farewell{Stream: "t", ConnectionID: "c1", Method: "mcp/disconnect", Params: []byte(`{"connectionId":"c1"}`), Request: true}
	over := make(chan error, 1)
	go func() { over <- s.client.Disconnect(context.Background(), farewell) }()
	c.expect(`{"jsonrpc":"2.0","id":1,"method":"mcp/disconnect","params":{"connectionId":"c1"}}`)
	c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	must(t, <-over)

	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { over <- s.client.Disconnect(ctx, farewell) }()
	c.message()
	why := errors.New("enough")
	cancel(why)
	if err := <-over; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	c.ping()

	farewell.Request = false
	must(t, s.client.Disconnect(context.Background(), farewell))
	c.expect(`{"jsonrpc":"2.0","method":"mcp/disconnect","params":{"connectionId":"c1"}}`)

	farewell.Request = true
	go func() { over <- s.client.Disconnect(context.Background(), farewell) }()
	c.message()
	_ = c.conn.Close()
	if err := <-over; !errors.Is(err, tunnel.ErrGone) {
		t.Errorf("got %v", err)
	}
	if err := s.client.Disconnect(context.Background(), farewell); !errors.Is(err, tunnel.ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestALostSocketFailsAllThatWaitAtOnce(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	for range 20 {
		s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	}
	begun := time.Now()
	_ = c.conn.Close()
	for range 20 {
		if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.Is(a.Err, tunnel.ErrGone) {
			t.Fatalf("got %+v", a)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	var err error
	kerneltest.Do(t, s.ref, func(k *kernel.Ctx) { _, err = s.client.Request(k, tunnel.Out{Stream: "t", Method: "mcp/message"}) })
	if !errors.Is(err, tunnel.ErrGone) {
		t.Errorf("a request after the end: %v", err)
	}
	if err := s.client.Notify("t", "n", nil); !errors.Is(err, tunnel.ErrGone) {
		t.Errorf("a notification after the end: %v", err)
	}
	if err := s.client.Bind("c", s.ref); !errors.Is(err, tunnel.ErrGone) {
		t.Errorf("a bind after the end: %v", err)
	}
	p.rest()
}

// TestAnAnswerTheAskerCannotPayForIsARefusal: a refusal reaches the waiter, never silence.
func TestAnAnswerTheAskerCannotPayForIsARefusal(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.openIn(c, 1, kernel.Spec{Scope: "session_bytes", Limit: 100_000})
	s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message"})
	c.message()
	c.send(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 200_000) + `"}`)
	var full *kernel.Overloaded
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.As(a.Err, &full) || full.Scope != "session_bytes" {
		t.Errorf("got %+v", a)
	}
	c.ping()
}
