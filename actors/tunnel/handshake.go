package tunnel

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// step is the one request, beside calls, that waits for its answer: what it is
// for, and how it goes on. then gets the whole answer of the client, or an error
// when there was none in time; the lease of the answer is released after it.
type step struct {
	ticket kernel.Ticket
	stop   func()
	then   func(c *kernel.Ctx, m *kernel.Answer, err error) error
}

// wait makes a request the step that runs.
func (a *actor) wait(c *kernel.Ctx, ticket kernel.Ticket, then func(c *kernel.Ctx, m *kernel.Answer, err error) error) {
	a.step = step{ticket: ticket, then: then}
	a.step.stop = c.After(a.t.limits.Connect, stepOver{ticket})
}

// answered leads an answer to the step or the call that waits for it.
func (a *actor) answered(c *kernel.Ctx, m kernel.Answer) error {
	if m.Ticket != a.step.ticket || m.Ticket.IsZero() {
		a.result(c, m)
		return nil
	}
	s := a.step
	a.step = step{}
	s.stop()
	defer m.Lease.Release()
	return s.then(c, &m, m.Err)
}

// connect opens the MCP connection. From before the request leaves, closing it is
// owed: the client may have opened it although its answer never arrives.
func (a *actor) connect(c *kernel.Ctx) error {
	c.Attr("generation", a.codec.Name())
	method, params, ok := a.codec.Connect(a.t.params.Declared)
	if !ok {
		a.target = a.t.params.Declared.ID
		return a.list(c)
	}
	a.opening = &opening{codec: a.codec, stream: a.t.stream, stats: a.t.params.Stats}
	a.owed = c.Own("mcp/disconnect", a.t.release(c, a.opening))
	ticket, err := a.t.params.Carrier.Request(c, Out{Stream: a.t.stream, Method: method, Params: params,
		Cancel: a.codec.CancelFrames, Arrived: a.opening.arrived})
	if err != nil {
		a.owed.Moot()
		return a.fail(c, "mcp/connect was not sent: "+shown(err))
	}
	a.wait(c, ticket, a.connected)
	return nil
}

// release closes what the opening opened, once, when the generation ends, on a
// goroutine of the kernel. A socket that is gone owes nothing.
func (t *Tunnel) release(c *kernel.Ctx, o *opening) func(context.Context, error) {
	self, log, carrier, limit := c.Self(), c.Log(), t.params.Carrier, t.limits.Disconnect
	return func(ctx context.Context, _ error) {
		f, open := o.close()
		if f == nil {
			if open {
				o.stats.closed(nil)
			}
			return
		}
		if f.ConnectionID != "" && !carrier.Unbind(f.ConnectionID, self) {
			o.stats.unbound(ErrInUse) // it ended between the answer and Bind, and the answer named another's connection
			return
		}
		select {
		case <-carrier.Gone():
			o.stats.closed(ErrGone)
			return
		default:
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := carrier.Disconnect(ctx, *f)
		o.stats.closed(err)
		if err != nil && !errors.Is(err, ErrGone) {
			log.Warn("mcp/disconnect had no good answer; the client may keep that connection", "error", shown(err))
		}
	}
}

// connected goes on with the answer of mcp/connect.
func (a *actor) connected(c *kernel.Ctx, m *kernel.Answer, err error) error {
	var fault *jsonrpc.Error
	if errors.As(err, &fault) {
		a.owed.Moot() // an error opened nothing
		if next, ok := acp.Fallback(a.codec, fault); ok {
			a.codec = next
			return a.connect(c)
		}
	}
	if err != nil {
		return a.fail(c, "mcp/connect: "+shown(err))
	}
	reply, _ := m.Msg.(Reply)
	id, err := a.codec.ParseConnected(reply.Result)
	if err != nil {
		a.owed.Moot()
		return a.fail(c, "mcp/connect: "+shown(err))
	}
	if err := a.t.params.Carrier.Bind(id, c.Self()); err != nil {
		// The id is another tunnel's, so closing it would close that one's connection.
		if a.owed.Moot() { // else the release has closed and counted it
			a.t.params.Stats.unbound(err)
		}
		return a.fail(c, "mcp/connect: "+shown(err))
	}
	if !a.owed.Owed() { // this generation was abandoned: its release has closed the connection, and nobody would unbind it
		a.t.params.Carrier.Unbind(id, c.Self())
		return kernel.ErrDone
	}
	a.target = id
	return a.initialize(c)
}

// initialize is the MCP handshake of the generations that connect.
func (a *actor) initialize(c *kernel.Ctx) error {
	ticket, err := a.ask(c, a.next(), mcp.MethodInitialize, mcp.InitializeParams(a.t.params.Version))
	if err != nil {
		return a.fail(c, "initialize was not sent: "+shown(err))
	}
	a.wait(c, ticket, func(c *kernel.Ctx, m *kernel.Answer, err error) error {
		if err != nil {
			return a.fail(c, "initialize: "+shown(err))
		}
		result, err := a.inner(*m)
		if err != nil {
			return a.fail(c, "initialize: "+shown(err))
		}
		server, err := mcp.ParseInitialized(result)
		if err != nil {
			return a.fail(c, "initialize: "+shown(err))
		}
		c.Attr("mcp", server.Version)
		method, params := a.codec.Message(a.target, "", mcp.MethodInitialized, nil)
		if err := a.t.params.Carrier.Notify(a.t.stream, method, params); err != nil {
			return a.fail(c, "notifications/initialized was not sent: "+shown(err))
		}
		return a.list(c)
	})
	return nil
}

// shown is an error for people: one line, printable, bounded.
func shown(err error) string { return kernel.Escape(err.Error(), 300) }

// ready publishes a fetched list, and what is missing of it.
func (a *actor) ready(c *kernel.Ctx, missing string, list *capability.List) {
	a.publish(c, capability.Ready, Status{State: Ready, Reason: missing}, list)
}

// extended is the deadline of a call after a sign of life, never past its limit.
func extended(now time.Time, patience time.Duration, limit time.Time) time.Time {
	next := now.Add(patience)
	if next.After(limit) {
		return limit
	}
	return next
}
