package connection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestASessionsStreamKeepsItsOrder(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	m := p.prompt(c, s, 5, "hi")
	if m.Client != s.client || !strings.Contains(string(m.Params), `"text":"hi"`) {
		t.Errorf("got %+v", m)
	}
	kerneltest.Do(t, s.ref, func(k *kernel.Ctx) {
		for i := range 50 {
			if err := s.client.Offer(s.id, fmt.Appendf(nil, `{"update":%d}`, i), nil, nil); err != nil {
				t.Error(err)
			}
			if i == 20 {
				if _, err := s.client.Call(k, s.id, "session/request_permission", []byte(`{"x":1}`)); err != nil {
					t.Error(err)
				}
			}
		}
		s.client.Respond(s.id, m.Req, []byte(`{"stopReason":"end_turn"}`), nil, nil)
	})
	for i := range 50 {
		c.expect(fmt.Sprintf(`{"update":%d}`, i))
		if i == 20 {
			c.expect(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"x":1}}`)
		}
	}
	c.expect(`{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}`)
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"outcome":"cancelled"}}`)
	a := kerneltest.Await[kernel.Answer](t, s.probe)
	if a.Err != nil || string(a.Msg.(tunnel.Reply).Result) != `{"outcome":"cancelled"}` {
		t.Errorf("got %+v", a)
	}
	a.Lease.Release()
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	m := p.prompt(c, s, 5, "hi")
	lease, err := s.ref.Account().Acquire(100)
	must(t, err)
	s.client.Respond(s.id, m.Req, nil, nil, &jsonrpc.Error{Code: -32000, Message: "mine"})
	s.client.Respond(s.id, m.Req, []byte(`{"second":true}`), lease, nil)
	c.expect(`{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"mine"}}`)
	c.ping()
	if lease.Size() != 0 {
		t.Error("the lease of the second answer is not freed")
	}
}

// TestALargeAnswerIsPaidByItsOwnLease and leaves to the byte, without its bytes being copied.
func TestALargeAnswerIsPaidByItsOwnLease(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	m := p.prompt(c, s, 5, "hi")
	large := []byte(`{"x":"` + strings.Repeat("y", 100_000) + `"}`)
	lease, err := s.ref.Account().Acquire(int64(len(large)))
	must(t, err)
	s.client.Respond(s.id, m.Req, large, lease, nil)
	c.expect(`{"jsonrpc":"2.0","id":5,"result":` + string(large) + `}`)
	kerneltest.Eventually(t, "the lease is freed", func() bool { return lease.Size() == 0 })
}

// TestAnAnswerThatFindsNoRoomBecomesARefusal: a request is never left without an answer.
func TestAnAnswerThatFindsNoRoomBecomesARefusal(t *testing.T) {
	p := startPod(t, Config{ConnectionBytes: 1 << 20})
	c := p.hello()
	s := p.open(c, 1)
	m := p.prompt(c, s, 5, "hi")
	large := make([]byte, 2<<20)
	lease, err := s.ref.Account().Acquire(int64(len(large)))
	must(t, err)
	s.client.Respond(s.id, m.Req, large, lease, nil)
	r := c.refusedWith(5.0, -32000)
	if r.Error.Data["scope"] != "connection_bytes" || r.Error.Data["limit"] != float64(1<<20) || r.Error.Data["size"] != float64(2<<20) {
		t.Errorf("data is %v", r.Error.Data)
	}
	if lease.Size() != 0 {
		t.Error("the lease is not freed")
	}
}

func TestAnOfferMovesItsLeaseOrLeavesIt(t *testing.T) {
	p := startPod(t, Config{ConnectionBytes: 32 << 20, OutboundFrames: 4}) // of which updates may take two
	c := p.hello()
	s := p.open(c, 1)
	conn := s.client.(*client).account
	frame := []byte(`{"u":1}`)
	done := make(chan bool, 10)
	lease, err := s.ref.Account().Acquire(500)
	must(t, err)
	must(t, s.client.Offer(s.id, frame, lease, func(written bool) { done <- written }))
	c.expect(string(frame))
	if !<-done {
		t.Error("done was told that the frame was dropped")
	}
	kerneltest.Eventually(t, "the lease is freed", func() bool { return lease.Size() == 0 })

	large, err := s.ref.Account().Acquire(40 << 20)
	must(t, err)
	var full *kernel.Overloaded
	if err := s.client.Offer(s.id, frame, large, func(bool) { done <- true }); !errors.As(err, &full) || full.Scope != "connection_bytes" {
		t.Errorf("got %v", err)
	}
	if large.Account() == conn || large.Size() != 40<<20 {
		t.Error("a refused lease moved")
	}
	large.Release()

	block(t, s, c) // fills the socket, so that frames stay queued
	for range 2 {
		must(t, s.client.Offer(s.id, frame, nil, nil))
	}
	lease, err = s.ref.Account().Acquire(500)
	must(t, err)
	payer := lease.Account()
	if err := s.client.Offer(s.id, frame, lease, func(bool) { done <- true }); !errors.As(err, &full) || full.Scope != "outbound_frames" {
		t.Errorf("got %v", err)
	}
	if lease.Account() != payer || lease.Size() != 500 {
		t.Error("the lease did not come back")
	}
	lease.Release()
	_ = c.conn.Close()
	<-s.client.Gone()
	if err := s.client.Offer(s.id, frame, nil, nil); !errors.Is(err, tunnel.ErrGone) {
		t.Errorf("after the end: %v", err)
	}
	if len(done) != 0 {
		t.Error("done ran for a frame that was refused")
	}
}

// block makes the client's socket take nothing more: its frames pile up until somebody reads.
func block(t *testing.T, s *testSession, c *peer) {
	t.Helper()
	o := s.client.(*client).out
	filler := make([]byte, 512<<10)
	kerneltest.Eventually(t, "the socket is full", func() bool {
		frames, _ := o.queued()
		if frames > 0 {
			return true
		}
		_ = s.client.Offer("filler", filler, nil, nil)
		return false
	})
	kerneltest.Eventually(t, "the writer is stuck", func() bool {
		before := s.client.(*client).stats.bytesOut.Load()
		frames, _ := o.queued()
		return frames > 0 && before == s.client.(*client).stats.bytesOut.Load()
	})
}

func TestLostTakesOutWhatIsQueued(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	m := p.prompt(c, s, 5, "hi")
	block(t, s, c)
	fate := make(chan bool, 10)
	must(t, s.client.Offer(s.id, []byte(`{"update":1}`), nil, func(written bool) { fate <- written }))
	kerneltest.Do(t, s.ref, func(k *kernel.Ctx) {
		if _, err := s.client.Call(k, s.id, "session/request_permission", nil); err != nil {
			t.Error(err)
		}
	})
	s.client.Respond(s.id, m.Req, []byte(`{"stopReason":"end_turn"}`), nil, nil) // it must not be told without the update
	s.client.Lost(s.id, tunnel.ErrTakenOver)
	select {
	case written := <-fate:
		if written {
			t.Error("the update was written")
		}
	default:
		t.Error("Lost returned before done ran")
	}
	if a := kerneltest.Await[kernel.Answer](t, s.probe); !errors.Is(a.Err, tunnel.ErrGone) {
		t.Errorf("the permission request was answered %+v", a)
	}
	for { // the filler, and then the answer and nothing of the stream
		got := c.message()
		if strings.HasPrefix(got, "\x00") {
			continue
		}
		if !strings.Contains(got, `"reason":"superseded"`) {
			t.Errorf("got %.100s", got)
		}
		break
	}
	c.send(`{"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"` + s.id + `","prompt":[]}}`)
	if r := c.refusedWith(6.0, -32602); strings.Contains(r.Error.Message, "sess_") || !strings.Contains(r.Error.Message, "#") {
		t.Errorf("the message is %q", r.Error.Message)
	}
}

// A session that ends has said what it said: its last words and the answer after them are still written.
func TestASessionThatEndsKeepsItsLastWords(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	m := p.prompt(c, s, 5, "hi")
	block(t, s, c)
	must(t, s.client.Offer(s.id, []byte(`{"update":1}`), nil, nil))
	s.client.Respond(s.id, m.Req, []byte(`{"stopReason":"cancelled"}`), nil, nil)
	s.client.Lost(s.id, kernel.ErrDone)
	var got []string
	for len(got) < 2 {
		if text := c.message(); !strings.HasPrefix(text, "\x00") { // the filler
			got = append(got, text)
		}
	}
	if got[0] != `{"update":1}` || !strings.Contains(got[1], `"cancelled"`) {
		t.Errorf("got %q", got)
	}
}

func TestRequestsOfASessionThatEndsAreAnswered(t *testing.T) {
	for _, cause := range []error{kernel.ErrStopped, errors.New("crashed")} {
		p := startPod(t, Config{})
		c := p.hello()
		s := p.open(c, 1)
		p.prompt(c, s, 5, "hi")
		s.ref.Stop(cause)
		r := c.refusedWith(5.0, -32603)
		if r.Error.Data["reason"] != "internal" {
			t.Errorf("data is %v", r.Error.Data)
		}
		kerneltest.Eventually(t, "the session has ended", func() bool { return s.ref.Cause() != nil })
		c.send(`{"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"` + s.id + `","prompt":[]}}`)
		c.refusedWith(6.0, -32602)
	}
}

func TestACancelInTheNextFrameFindsItsPrompt(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	var burst []byte
	for i := range 50 {
		burst = append(burst, textFrame(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"%s","prompt":[]}}`, i, s.id))...)
		burst = append(burst, textFrame(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"`+s.id+`"}}`)...)
		if i == 30 {
			break
		}
	}
	burst = append(burst, textFrame(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`)...)
	burst = append(burst, textFrame(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"7"}}`)...)
	c.raw(burst)
	var seventh uint64
	for i := range 31 {
		m := s.probe.Next(t).Msg.(session.Prompt)
		m.Held.Release()
		if i == 7 {
			seventh = m.Req
		}
		if x := s.probe.Next(t).Msg.(session.Cancel); x.Req != 0 || x.Client != s.client {
			t.Fatalf("got %+v", x)
		}
	}
	if x := s.probe.Next(t).Msg.(session.Cancel); x.Req != seventh {
		t.Errorf("got %+v, want request %d", x, seventh)
	}
	c.ping()
	if n := s.probe.Pending(); n != 0 {
		t.Errorf("%d more messages came", n)
	}
}

func TestLimitsOfAConnection(t *testing.T) {
	p := startPod(t, Config{PromptsPerConnection: 2, SessionsPerConnection: 2, ServersPerSession: 1})
	c := p.hello()
	s := p.open(c, 1)
	p.prompt(c, s, 1, "a")
	m := p.prompt(c, s, 2, "b")
	// the cap on prompts comes before everything else that could be wrong with one
	c.send(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}`)
	r := c.refusedWith(3.0, -32000)
	if r.Error.Data["scope"] != "prompts_per_connection" || r.Error.Data["limit"] != 2.0 || r.Error.Data["used"] != 2.0 {
		t.Errorf("data is %v", r.Error.Data)
	}
	s.client.Respond(s.id, m.Req, []byte(`{}`), nil, nil)
	c.answer()
	c.send(`{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"prompt":[]}}`)
	c.refusedWith(4.0, -32602)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"` + sessionID(99) + `"}}`)
	c.refusedWith(5.0, -32602)

	two := `[{"type":"acp","name":"a","id":"1"},{"type":"acp","name":"b","id":"2"}]`
	c.send(`{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"/","mcpServers":` + two + `}}`)
	if r := c.refusedWith(6.0, -32000); r.Error.Data["scope"] != "servers_per_session" {
		t.Errorf("data is %v", r.Error.Data)
	}
	// one that is being opened counts as well
	c.send(`{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	open := kerneltest.Await[session.Open](t, p.sessions)
	open.Held.Release()
	c.send(`{"jsonrpc":"2.0","id":8,"method":"session/new","params":{"cwd":"/","mcpServers":` + two + `}}`)
	if r := c.refusedWith(8.0, -32000); r.Error.Data["scope"] != "sessions_per_connection" {
		t.Errorf("data is %v", r.Error.Data)
	}
	c.send(`{"jsonrpc":"2.0","id":9,"method":"session/new","params":{"mcpServers":[]}}`)
	c.refusedWith(9.0, -32602) // the schema comes before the cap
	c.send(`{"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"cwd":"/","sessionId":"` + sessionID(5) + `"}}`)
	if r := c.refusedWith(10.0, -32000); r.Error.Data["scope"] != "sessions_per_connection" {
		t.Errorf("data is %v", r.Error.Data)
	}
	c.send(`{"jsonrpc":"2.0","id":11,"method":"session/resume","params":{"cwd":"/","sessionId":"` + strings.ToUpper(sessionID(5)) + `"}}`)
	c.refusedWith(11.0, -32602) // the form comes before the cap
	c.send(`{"jsonrpc":"2.0","id":12,"method":"session/resume","params":{"cwd":"/","sessionId":"` + s.id + `"}}`)
	resume := kerneltest.Await[session.Resume](t, p.sessions) // it is owned already: no cap
	resume.Held.Release()
	if resume.Params.SessionID != s.id {
		t.Errorf("got %+v", resume.Params)
	}
}

func TestServersOfInitializeStandInForNone(t *testing.T) {
	p := startPod(t, Config{})
	c := p.dial()
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"mcpServers":[{"type":"acp","name":"a","id":"1"}],"_meta":{"acpod.dev/client":"0123456789abcdef"}}}`)
	c.answer()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}`)
	m := kerneltest.Await[session.Open](t, p.sessions)
	m.Held.Release()
	if len(m.Params.Declared) != 1 || m.Params.Declared[0].Name != "a" {
		t.Errorf("got %+v", m.Params.Declared)
	}
	if m.Client.Secret() == [32]byte{} || m.Client.Key() != Loopback || !m.Client.Loopback() || m.Client.Rank() == 0 {
		t.Errorf("the client is %x %q %v %d", m.Client.Secret(), m.Client.Key(), m.Client.Loopback(), m.Client.Rank())
	}
	d := p.hello()
	d.send(`{"jsonrpc":"2.0","id":1,"method":"session/list"}`)
	l := kerneltest.Await[session.List](t, p.sessions)
	l.Held.Release()
	if l.Client.Secret() != [32]byte{} || l.Client.Rank() <= m.Client.Rank() || l.Client == m.Client {
		t.Error("two connections are not told apart")
	}
	l.Client.Respond("", l.Req, []byte(`{"sessions":[]}`), nil, nil)
	d.expect(`{"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}`)
}

func TestAFullSessionRefusesAPromptAndStillTakesACancel(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.openIn(c, 1, kernel.Spec{Scope: "session_bytes", Limit: 4000})
	hold, err := s.ref.Account().Acquire(4000)
	must(t, err)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"` + s.id + `","prompt":[]}}`)
	r := c.refusedWith(1.0, -32000)
	if r.Error.Data["scope"] != "session_bytes" || r.Error.Data["limit"] != 4000.0 || r.Error.Data["used"] != 4000.0 {
		t.Errorf("data is %v", r.Error.Data)
	}
	c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + s.id + `"}}`)
	if m := kerneltest.Await[session.Cancel](t, s.probe); m.Client != s.client {
		t.Errorf("got %+v", m)
	}
	hold.Release()
}

func TestSessionsLearnOfTheEnd(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	must(t, c.conn.Close())
	if m := kerneltest.Await[session.Detach](t, s.probe); m.Client != s.client {
		t.Errorf("got %+v", m)
	}
	select {
	case <-s.client.Gone():
	default:
		t.Error("Detach came before Gone")
	}
	p.rest()
	s.client.Granted(s.id, s.ref) // harmless
	s.client.Lost(s.id, nil)
	s.client.Respond(s.id, 1, nil, nil, nil)
}

func TestCloseReachesTheSession(t *testing.T) {
	p := startPod(t, Config{})
	c := p.hello()
	s := p.open(c, 1)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/close","params":{"sessionId":"` + s.id + `"}}`)
	m := kerneltest.Await[session.Close](t, s.probe)
	s.client.Lost(s.id, errors.New("closed"))
	s.client.Respond(s.id, m.Req, []byte(`{}`), nil, nil)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":"` + s.id + `"}}`)
	c.refusedWith(2.0, -32602)
}

// TestAQueuedFrameIsPaidWholeOrNotTaken: what it costs beside its bytes is on the account with them, and neither is when either does not fit.
func TestAQueuedFrameIsPaidWholeOrNotTaken(t *testing.T) {
	frame := []byte(`{"update":1}`)
	size := int64(len(frame))
	cfg := Config{}.withDefaults()
	notification := int64(len(jsonrpc.AppendNotification(nil, "m", nil)))
	for name, row := range map[string]struct {
		room, want int64 // want = what is charged when it is taken
		push       func(cl *client, lease *kernel.Lease) error
	}{
		"an offer with a lease":    {size + outFrameBytes, size + outFrameBytes, func(cl *client, l *kernel.Lease) error { return cl.Offer("a", frame, l, nil) }},
		"an offer without a lease": {size + outFrameBytes, size + outFrameBytes, func(cl *client, _ *kernel.Lease) error { return cl.Offer("a", frame, nil, nil) }},
		"a notification":           {notification + outFrameBytes, notification + outFrameBytes, func(cl *client, _ *kernel.Lease) error { return cl.Notify("a", "m", nil) }},
		"a call with a body": {0, 0, func(cl *client, l *kernel.Lease) error {
			f, err := cl.frame(&ask{stream: "a", id: 1}, &tunnel.Out{Method: "m", Params: []byte(`{"a":`), Body: frame, Bytes: l, Tail: []byte("}")})
			if err != nil {
				return err
			}
			if got, want := cl.account.Used(), f.size()+outFrameBytes; got != want {
				t.Errorf("a call with a body: %d bytes are charged, want %d", got, want)
			}
			return cl.out.push(f)
		}},
	} {
		for _, short := range []bool{false, true} {
			limit := row.room
			if limit == 0 {
				limit = outFrameBytes + 200
			}
			if short {
				if limit--; row.room == 0 {
					limit = outFrameBytes + 10
				}
			}
			pod := kernel.NewAccount("pod_bytes", 1<<20)
			mine := pod.Child("session_bytes", 0)
			cl := &client{account: pod.Child("connection_bytes", limit), cfg: &cfg, out: newOutbox(&cfg), gone: make(chan struct{}), book: newLedger()}
			lease, err := mine.Acquire(size)
			must(t, err)
			err = row.push(cl, lease)
			var full *kernel.Overloaded
			if short != (errors.As(err, &full) && full.Scope == "connection_bytes") || !short && err != nil {
				t.Errorf("%s, short of room %v: %v", name, short, err)
			}
			if used := cl.account.Used(); row.want != 0 && !short && used != row.want || short && used != 0 {
				t.Errorf("%s, short of room %v: %d bytes are charged, want %d", name, short, used, row.want)
			}
			if short && mine.Used() != size {
				t.Errorf("%s: what was not taken is not its owner's any more", name)
			}
			cl.out.finish(false)
			lease.Release()
			if used := pod.Used(); used != 0 {
				t.Errorf("%s, short of room %v: %d bytes are charged at rest", name, short, used)
			}
		}
	}
}

// TestAnAnswerThatBecomesSupersededGivesItsBytesBack: its text is replaced, and paid for by what the prompt has reserved.
func TestAnAnswerThatBecomesSupersededGivesItsBytesBack(t *testing.T) {
	cfg := Config{}.withDefaults()
	pod := kernel.NewAccount("pod_bytes", 1<<20)
	cl := &client{account: pod.Child("connection_bytes", 0), cfg: &cfg, out: newOutbox(&cfg), gone: make(chan struct{}), book: newLedger()}
	for name, result := range map[string][]byte{"a short one": []byte(`{}`), "a long one": []byte(`"` + strings.Repeat("x", 100_000) + `"`)} {
		must(t, cl.Offer("a", []byte(`{"update":1}`), nil, nil))
		reserve, err := cl.account.Acquire(answerReserve)
		must(t, err)
		lease, err := pod.Acquire(int64(len(result)))
		must(t, err)
		id := jsonrpc.StringID(strings.Repeat("i", 900))
		cl.conclude("a", &openRequest{id: id, class: prompt, lease: reserve}, result, lease, nil)
		cl.out.evict("a")
		j, ok := cl.out.next()
		if !ok || !strings.Contains(string(j.frame.parts[0]), `"error"`) {
			t.Fatalf("%s: it is still written", name)
		}
		if got, want := pod.Used(), j.frame.size()+outFrameBytes; got != want {
			t.Errorf("%s: %d bytes are charged, want %d", name, got, want)
		}
		j.frame.end(true)
		if used := pod.Used(); used != 0 {
			t.Errorf("%s: %d bytes are charged at rest", name, used)
		}
	}
}
