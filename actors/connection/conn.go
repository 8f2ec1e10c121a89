package connection

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// conn is the behaviour of one connection: it reads frames in their order and decides who gets them. The table of questions is
// its own; what others must reach lives in its client.
type conn struct {
	seat     *seat
	cfg      *Config
	offers   Offers
	sessions func() kernel.Ref
	stats    *counters

	client    *client
	writer    *writer
	questions map[uint64]uint64   // kernel question → ask
	watched   map[kernel.Ref]bool // sessions and their supervisor
	waiting   []uint64            // initialize requests that wait for what the agent offers
	pinged    time.Time           // an unanswered ping
	due       time.Time           // when the next heartbeat is to come
	kept      time.Time           // the last keep-alive
	pings     atomic.Int64
	told      sync.Once // why it ended
	drained   bool      // the client was told that the pod is stopping
	began     time.Time
	readDone  chan struct{}
	writeDone chan struct{}
	failed    bool // the socket cannot be written any more; set by the writer before writeDone
}

// Timers and small messages of the actor to itself.
type (
	heartbeat         struct{}
	initializeOverdue struct{}
	refresh           struct{}
	windowOver        window // Config.SlowGrace has passed since it was opened
	// draining tells a connection, and its client, that the pod is stopping.
	draining struct{ deadline time.Duration }
)

// Start implements kernel.Starter.
func (a *conn) Start(c *kernel.Ctx) error {
	s := a.seat
	a.began = time.Now()
	a.client = newClient(c.Self(), s, a.cfg, a.stats)
	a.questions, a.watched = map[uint64]uint64{}, map[kernel.Ref]bool{}
	a.readDone, a.writeDone = make(chan struct{}), make(chan struct{})
	log, parent := c.Log(), c.Parent()
	c.Own("socket", func(_ context.Context, cause error) { // what an end without its last words leaves open
		a.client.depart()
		a.client.book.close()
		a.client.out.finish(false)
		s.leave()
		a.tell(log, exitOf(parent, cause))
	})
	trace := newTracer(a.cfg.Trace, c.Log())
	a.writer = &writer{wire: s.wire, socket: innermost(s.socket), out: a.client.out, cfg: a.cfg, stats: a.stats, trace: trace}
	s.reader.client, s.reader.trace = a.client, trace
	self := c.Self()
	c.Go("reader", func(ctx context.Context) kernel.Msg {
		defer close(a.readDone)
		return s.reader.run(ctx, s.gws)
	})
	c.Go("writer", func(context.Context) kernel.Msg {
		defer close(a.writeDone)
		if exit := a.writer.run(); exit != nil {
			a.failed = true
			a.client.depart()
			a.client.out.finish(false)
			self.Stop(exit)
		}
		return nil
	})
	c.After(a.cfg.InitializeTimeout, initializeOverdue{})
	c.After(a.cfg.Keepalive, heartbeat{})
	c.Attr("id", s.id)
	c.Attr("peer", s.peer)
	c.Attr("key", s.identity)
	a.show(c)
	return nil
}

// Receive implements kernel.Behavior.
func (a *conn) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case *inFrame:
		a.dispatch(c, m)
	case carried:
		a.carry(c, m.id)
	case settled:
		if ask := a.client.book.peekAsk(m.id); ask != nil && ask.question == nil && !ask.abandoned {
			a.abandon(ask)
		}
	case kernel.Cancelled:
		a.cancelled(m.Question)
	case lostAnswer:
		a.fail(m.ask, m.err)
	case kernel.Down:
		a.down(m)
	case offerKnown:
		a.answerWaiting()
	case heartbeat:
		return a.tick(c)
	case initializeOverdue:
		if a.client.hello.Load() == nil {
			return &Exit{Reason: InitializeTimeout}
		}
	case refresh:
		a.client.dirty.Store(false)
		a.show(c)
	case window:
		c.Attr("over", m.full.Scope)
		c.After(a.cfg.SlowGrace, windowOver(m))
	case windowOver:
		if a.client.out.stands(window(m)) {
			return &Exit{Reason: SlowReader, Err: m.full}
		}
		c.Attr("over", nil)
	case draining:
		if !a.drained { // one that gets in as the drain begins hears of it from both who know
			a.drained = true
			a.client.send(drainingFrame(m.deadline))
		}
	case readingOver:
		return m.exit
	}
	return nil
}

// show brings the tree up to date.
func (a *conn) show(c *kernel.Ctx) {
	sessions, requests, asks := a.client.book.counts()
	frames, bytes := a.client.out.queued()
	c.Attr("initialized", a.client.hello.Load() != nil)
	c.Attr("sessions", sessions)
	c.Attr("requests", requests)
	c.Attr("asks", asks)
	c.Attr("bytes_in", a.seat.wire.received.Load())
	c.Attr("bytes_out", a.writer.sent.Load())
	c.Attr("outbound_frames", frames)
	c.Attr("outbound_bytes", bytes)
}

// watch makes sure that the end of an actor which owes answers is noticed.
func (a *conn) watch(c *kernel.Ctx, ref kernel.Ref) {
	if !a.watched[ref] {
		a.watched[ref] = true
		c.Watch(ref)
	}
}

// down answers what an actor that ended has left unanswered. At the end of the pod its own word, which is the same, may come later than this.
func (a *conn) down(m kernel.Down) {
	delete(a.watched, m.Ref)
	why := jsonrpc.InternalError(jsonrpc.ReasonInternal, "what was to answer this request ended: look at what came of it before you send it again")
	if errors.Is(m.Cause, kernel.ErrShutdown) {
		why = jsonrpc.Draining(0)
	}
	for _, req := range a.client.book.orphans(m.Ref) {
		if r := a.client.book.settle(req); r != nil {
			a.client.conclude(r.session, r, nil, nil, why)
		}
	}
}

// Stop implements kernel.Stopper: the last words of a connection, in an order that matters. First nobody waits any more, then
// nothing new is taken, then the sessions learn of it, and the socket is closed last.
func (a *conn) Stop(c *kernel.Ctx, cause error) {
	if a.client == nil {
		return // Start never ran to here, the gateway gives the seat back
	}
	exit := exitOf(c.Parent(), cause)
	a.tell(c.Log(), exit)
	a.client.depart()
	sessions, asks := a.client.book.close()
	for _, ask := range asks {
		a.fail(ask, gone(exit))
	}
	a.client.out.finish(exit.Reason == Shutdown)
	detach(a.client, sessions)
	a.goodbye(exit)
}

// gone is what those hear who wait for an answer over the socket.
func gone(exit *Exit) error {
	var full *kernel.Overloaded
	if exit.Reason == Overloaded && errors.As(exit.Err, &full) {
		return full
	}
	return exit
}

func detach(cl *client, sessions []kernel.Ref) {
	for _, ref := range sessions {
		m := session.Detach{Client: cl}
		if err := ref.Tell(m); err != nil && !errors.Is(err, kernel.ErrStopped) {
			_ = ref.Signal(m) // a session watches the connection as well
		}
	}
}

// goodbye lets the writer finish, sends the close frame and closes the socket. It is bounded by two flush timeouts. A client
// that is closed because it does not read gets longer: no close frame can go before the fragment under way.
func (a *conn) goodbye(exit *Exit) {
	defer a.seat.leave()
	patience := a.cfg.FlushTimeout
	if exit.Reason == SlowReader {
		patience = a.cfg.SlowGrace
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, over := range []chan struct{}{a.writeDone, a.readDone} {
		select {
		case <-over:
		case <-timer.C:
			return
		}
	}
	if a.failed {
		return
	}
	if frame := lastFrame(exit); frame != nil {
		goodbye(a.seat.wire.Conn, frame, a.linger(exit))
	}
}

// linger is how long the peer's own close is waited for. One that was displaced has said nothing so far, and others wait for
// the slot through which it leaves.
func (a *conn) linger(exit *Exit) time.Duration {
	if exit.Reason == HandshakeDisplaced {
		return min(closingLinger, a.cfg.FlushTimeout)
	}
	return a.cfg.FlushTimeout
}

// lastFrame is the close frame of an end: our reason, or the peer's own code; nil where the peer cannot get one.
func lastFrame(exit *Exit) []byte {
	code := exit.Reason.Code()
	switch {
	case exit.Reason == HandshakeDisplaced:
		return closeFrame(code, string(InitializeTimeout))
	case code != 0:
		return closeFrame(code, exit.words())
	case exit.Reason == ClientClosed && exit.PeerCode == 0:
		return []byte{opClose | finalBit, 0}
	case exit.Reason == ClientClosed:
		return closeFrame(exit.PeerCode, "")
	}
	return nil
}

// tell counts and logs the end, once.
func (a *conn) tell(log *slog.Logger, exit *Exit) {
	a.told.Do(func() {
		a.stats.exit(exit.Reason)
		a.log(log, exit)
	})
}

func (a *conn) log(log *slog.Logger, exit *Exit) {
	level := slog.LevelInfo
	if exit.Reason == Crashed {
		level = slog.LevelError
	}
	prompts := a.client.book.inFlight()
	log.Log(context.Background(), level, "connection ended",
		"reason", string(exit.Reason), "code", exit.PeerCode, "lived", time.Since(a.began).Truncate(time.Millisecond),
		"heard", sinceText(a.seat.wire.heard.Load()), "pings", a.pings.Load(), "prompts", prompts,
		"bytes_in", a.seat.wire.received.Load(), "bytes_out", a.writer.sent.Load(), "refused", a.client.refused.total(),
		"cause", kernel.Escape(causeText(exit), 200))
}

func causeText(exit *Exit) string {
	if exit.Err == nil {
		return ""
	}
	return exit.Err.Error()
}

// exitOf finds the reason in the cause with which the kernel ended the actor.
func exitOf(parent kernel.Ref, cause error) *Exit {
	var exit *Exit
	switch {
	case errors.As(cause, &exit):
		return exit
	case errors.Is(cause, kernel.ErrShutdown), errors.Is(cause, kernel.ErrStopped), parent.Cause() != nil:
		return &Exit{Reason: Shutdown, Err: cause}
	}
	return &Exit{Reason: Crashed, Err: cause}
}

// carry notes the question of an ask.
func (a *conn) carry(c *kernel.Ctx, id uint64) {
	q := c.Question()
	ask := a.client.book.peekAsk(id)
	if ask == nil {
		q.Fail(tunnel.ErrGone)
		return
	}
	ask.question = q
	a.questions[q.ID()] = id
}

// cancelled is the kernel's word that an asker waits no more.
func (a *conn) cancelled(q *kernel.Question) {
	id, known := a.questions[q.ID()]
	if !known {
		return
	}
	delete(a.questions, q.ID())
	if ask := a.client.book.peekAsk(id); ask != nil {
		a.abandon(ask)
	}
}

// abandon ends the interest in an answer. A request that is still queued was never sent; otherwise the client is told.
func (a *conn) abandon(ask *ask) {
	cl := a.client
	if cl.out.takeOut(ask.stream, ask.id) {
		cl.book.takeAsk(ask.id)
		return
	}
	if ask.cancel != nil {
		for _, n := range ask.cancel(jsonrpc.IntID(int64(ask.id))) {
			cl.send(jsonrpc.AppendNotification(nil, n.Method, n.Params))
		}
	}
	if ask.arrived == nil {
		cl.book.takeAsk(ask.id)
		return
	}
	cl.book.retire(ask)
}

// fail ends an ask with an error. The ask is out of the ledger.
func (a *conn) fail(ask *ask, err error) {
	if ask.question != nil {
		delete(a.questions, ask.question.ID())
		ask.question.Fail(err)
	}
	if ask.reply != nil {
		ask.reply <- err
	}
}

// answered hands the client's answer to whoever asked. It reports whether the lease went along.
func (a *conn) answered(c *kernel.Ctx, f jsonrpc.Frame, lease *kernel.Lease) (moved bool) {
	n, ok := f.ID.Int()
	var ask *ask
	if ok && n > 0 {
		ask = a.client.book.takeAsk(uint64(n))
	}
	if ask == nil {
		a.stats.lateAnswers.Add(1)
		c.Refuse("late_answer")
		return false
	}
	if ask.arrived != nil && f.Result != nil {
		a.client.dismiss(ask.arrived(f.Result))
	}
	if ask.abandoned {
		a.stats.lateAnswers.Add(1)
		return false
	}
	if f.Result == nil {
		err, whole := errorOf(f.Error)
		if !whole {
			c.Refuse("long_error")
		}
		a.fail(ask, err)
		return false
	}
	if ask.reply != nil {
		ask.reply <- nil
	}
	q := ask.question
	if q == nil {
		return false
	}
	delete(a.questions, q.ID())
	if err := lease.Move(ask.account); err != nil {
		a.client.drop(err)
		q.Fail(err)
		return false
	}
	q.Answer(tunnel.Reply{Result: f.Result}, lease)
	return true
}
