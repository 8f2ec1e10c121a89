package provider

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// actor is one generation of a server: at most one connection at a time, and the calls that wait for it or are on it.
type actor struct {
	s      *Server
	number uint64 // of the connection that is there, or was there last
	conn   *conn  // nil: there is none
	ended  error  // why the last one ended, or could not be made; nil: nothing is wrong
	login  login

	breaker  breaker
	failures int    // attempts and connections in a row that came to nothing
	retry    func() // takes back the timer of the next attempt; nil = none is set
	idle     func() // likewise, of the next look at whether the server is idle
	restarts int
	modern   bool // it speaks the era without a handshake
	turned   bool // the other era was tried as well
	turning  bool // … and is tried next

	asking []asking         // who waits for a list
	tries  tries            // of a server in backoff
	inner  map[int64]*inner // the pod's own requests whose answers are open
	calls  calls
	gates  map[string]*gate // by tool
	asked  asked
	list   catalog
	logs   *rate.Limiter // of records about what a server says
}

// login is credentials that a server has refused.
type login struct {
	refused bool
	hash    [32]byte // of the entry with its variables replaced: another one is tried
	err     error
}

func newActor(s *Server) *actor {
	return &actor{s: s, modern: s.entry.Modern, tries: newTries(), inner: map[int64]*inner{}, calls: newCalls(), gates: map[string]*gate{}, logs: rate.NewLimiter(1, 10)}
}

// Messages of the actor to itself.
type (
	stepOver  struct{ number uint64 } // the link did not come up in time
	innerOver struct{ id int64 }
	callOver  struct{ k *call }
	retryDue  struct{}
	idleDue   struct{}
	pingDue   struct{ number uint64 }
	gateDue   struct{ tool string }
)

// Start connects nothing: that waits for a use.
func (a *actor) Start(c *kernel.Ctx) error {
	a.s.speaks(c.Self())
	a.s.busy.Store(0)
	c.Attr("transport", a.s.entry.Kind.String())
	a.publish(c)
	return nil
}

// Receive never waits.
func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case capability.Call:
		a.call(c, m)
	case received:
		a.received(c, m)
	case discover:
		a.discover(c, asking{question: c.Question(), want: m.want})
	case kernel.Cancelled:
		a.cancelled(c, m.Question)
	case callOver:
		a.timeout(c, m.k)
	case notAnswered:
		a.notAnswered(c, m)
	case innerOver:
		a.innerOver(c, m.id)
	case gateDue:
		a.gateDue(c, m.tool)
	case elicited:
		a.elicited(c, m)
	default:
		a.connection(c, m)
	}
	return nil
}

// connection handles what is about the connection alone.
func (a *actor) connection(c *kernel.Ctx, m kernel.Msg) {
	switch m := m.(type) {
	case kernel.Answer:
		a.seated(c, m)
	case linkUp:
		a.up(c, m)
	case usageDue:
		a.showUsage(c, m)
	case linkDown:
		if a.is(m.number) {
			a.broken(c, m.err)
		}
	case linkEnded:
		a.linkEnded(c, m)
	case stepOver:
		if a.is(m.number) && a.conn.phase < initializing {
			a.broken(c, fmt.Errorf("no connection within %v: %w", a.patience(), context.DeadlineExceeded))
		}
	case retryDue:
		a.retryDue(c)
	case idleDue:
		a.idleDue(c)
	case pingDue:
		a.pingDue(c, m.number)
	case refreshDue:
		a.refreshDue(c)
	case listenGap:
		a.missed(c, m.number)
	case listenDue:
		a.listenDue(c, m.number)
	case unseat:
		a.unseat(c)
	default:
		c.Refuse("message")
		c.Log().Warn("dropped a message that a provider does not know", "type", fmt.Sprintf("%T", m))
	}
}

// received is one message of the server.
func (a *actor) received(c *kernel.Ctx, m received) {
	if !a.is(m.number) {
		m.held.Release()
		c.Refuse("stale")
		return
	}
	a.conn.heard = c.Now()
	switch m.message.Kind {
	case jsonrpc.Response:
		a.response(c, m)
	case jsonrpc.Request:
		a.request(c, m)
		m.held.Release()
	default:
		a.notified(c, m)
		m.held.Release()
	}
}

// Stop tells everybody who waits; what was never sent says so.
func (a *actor) Stop(c *kernel.Ctx, _ error) {
	a.answerAsking()
	for _, k := range a.calls.all() {
		err := fmt.Errorf("%w: the pod has ended its provider", capability.ErrDetached)
		if k.phase != sent {
			err = &capability.NotSent{Cause: err}
		}
		k.question.Fail(err)
	}
	a.ended, a.conn = nil, nil
	a.list.unplug()
	a.publish(c)
}

// Free gives back what the state holds.
func (a *actor) Free(error) {
	for _, k := range a.calls.all() {
		k.bytes.Release()
		k.held.Release()
	}
	a.list.pay(nil)
	if a.list.next != nil {
		a.list.next.release()
	}
	a.s.busy.Store(0)
}

// patience is how long one request of the pod's own may take, and how long a link may take to come up.
func (a *actor) patience() time.Duration {
	if d := a.s.entry.RequestTimeout; d > 0 {
		return d
	}
	return time.Minute
}
