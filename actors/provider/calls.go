package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// call takes a call: through its tool's gate, to the connection.
func (a *actor) call(c *kernel.Ctx, m capability.Call) {
	q := c.Question()
	if q == nil {
		m.Bytes.Release()
		c.Refuse("message")
		return
	}
	now := c.Now()
	a.use(c)
	k := &call{Call: m, question: q, bytes: m.Bytes, limit: m.Limit}
	if most := now.Add(a.s.cfg.CallMax); k.limit.IsZero() || k.limit.After(most) {
		k.limit = most
	}
	if !a.s.Allows(m.Tool) {
		a.turnAway(c, k, "tool_filter", fmt.Errorf("%w: tool_filter leaves this tool out", capability.ErrDetached))
		return
	}
	if a.calls.n() >= maxCalls {
		a.turnAway(c, k, "provider_calls", overloaded(maxCalls, a.calls.n()))
		return
	}
	var err error
	if k.held, err = c.Account().Acquire(callBytes); err != nil {
		a.turnAway(c, k, Scope, err)
		return
	}
	deadline := k.limit
	if !m.Deadline.IsZero() && m.Deadline.Before(deadline) {
		deadline = m.Deadline
	}
	if !deadline.After(now) {
		a.turnAway(c, k, "timeout", capability.ErrTimeout)
		return
	}
	if k.gate = a.gates[m.Tool]; k.gate == nil {
		k.gate = newGate(a.s.entry, now)
		a.gates[m.Tool] = k.gate
	}
	admitted := k.gate.admit(now)
	if admitted == refused {
		k.gate = nil
		a.turnAway(c, k, "provider_calls", overloaded(maxQueue, maxQueue))
		return
	}
	a.calls.byQuestion[q] = k
	a.count(c)
	k.deadline = deadline
	if admitted == waits {
		a.timed(c, k)
		k.gate.queue = append(k.gate.queue, k)
		a.wakeGate(c, k.gate, m.Tool)
		return
	}
	a.admitted(c, k)
}

// count shows the supervisor whether the server's place may be taken: not while it has calls, or is connecting. Who becomes idle says so
// where somebody may have to go.
func (a *actor) count(c *kernel.Ctx) {
	n := a.calls.n()
	if a.conn != nil && a.conn.phase < ready {
		n++
	}
	a.s.busy.Store(int32(n))
	if n == 0 && a.conn != nil && a.s.seats != nil && a.s.seats.crowded.Load() {
		a.told(c, c.Parent().Signal(seatIdle{a.s}))
	}
}

// overloaded is the refusal of a full queue.
func overloaded(limit, used int) *kernel.Overloaded {
	return &kernel.Overloaded{Scope: "provider_calls", Limit: int64(limit), Used: int64(used), Size: 1, RetryAfter: time.Second}
}

// turnAway refuses a call that stands in no table yet.
func (a *actor) turnAway(c *kernel.Ctx, k *call, scope string, cause error) {
	k.bytes.Release()
	k.held.Release()
	c.Refuse(scope)
	k.question.Fail(&capability.NotSent{Cause: cause})
}

// admitted leads a call to the connection, or lets it wait for one.
func (a *actor) admitted(c *kernel.Ctx, k *call) {
	k.phase = waiting
	if !a.breaker.closed() {
		ok, after := a.breaker.admits(c.Now())
		if ok && a.conn != nil && len(a.calls.byID) > 0 { // those on the old connection end first
			ok, after = false, time.Second
		}
		if !ok {
			a.refuse(c, k, "breaker", &capability.BreakerError{Server: a.s.entry.Name, RetryAfter: after})
			return
		}
		a.breaker.probe()
		if a.conn != nil && a.conn.phase == ready {
			a.quit(c, errProbe)
		}
	}
	if a.serves() {
		a.transmit(c, k)
		return
	}
	if a.login.refused && a.conn != nil {
		if !a.renewedLogin() {
			a.refuse(c, k, "needs_login", a.refusal(a.login.err))
			return
		}
		if a.conn.phase != ending {
			a.end(c, errStale)
		}
	}
	a.timed(c, k)
	a.calls.waiting = append(a.calls.waiting, k)
	a.wake(c)
}

// timed gives a call that waits the deadline of its caller. Most never wait.
func (a *actor) timed(c *kernel.Ctx, k *call) {
	if k.stop == nil {
		k.stop = c.After(k.deadline.Sub(c.Now()), callOver{k})
	}
}

// renewedLogin tells whether the entry resolves to something else than what the server refused.
func (a *actor) renewedLogin() bool {
	r, err := a.s.entry.Resolve(a.s.cfg.Env)
	return err == nil && r.Hash != a.login.hash
}

// flush sends what has waited for the connection.
func (a *actor) flush(c *kernel.Ctx) {
	waiting := a.calls.waiting
	a.calls.waiting = nil
	for i, k := range waiting {
		if !a.serves() {
			a.calls.waiting = append(a.calls.waiting, waiting[i:]...)
			return
		}
		a.transmit(c, k)
	}
}

// linkGrace is what a link has beyond the time that the actor keeps itself, so that the actor is the one to say that it is over.
const linkGrace = 5 * time.Second

// behindArguments closes the params of a tools/call and the message that they are in.
var behindArguments = []byte("}}")

// transmit sends a call. Its arguments are no copy.
func (a *actor) transmit(c *kernel.Ctx, k *call) {
	k.id, k.phase, k.alive, k.session = a.s.sequence.Add(1), sent, false, a.conn.session
	id := requestID(k.id)
	head := jsonrpc.AppendRequestHead(nil, id, mcp.MethodToolsCall)
	head = append(head, mcp.ArgumentsHead(mcp.CallParams(k.Tool, nil, jsonrpc.IntID(k.id)))...)
	m := link.Message{ID: id, Method: mcp.MethodToolsCall, Name: k.Tool, Head: head, Body: k.Arguments, Tail: behindArguments, Deadline: k.limit.Add(linkGrace)}
	m.Headers = a.mirrored(k)
	if a.s.entry.Kind == mcpjson.Stdio { // a child cannot lose a session, so it is never sent again
		m.Held, k.bytes = k.bytes, nil
	}
	if err := a.conn.link.Send(m); err != nil {
		k.phase = waiting
		a.refuse(c, k, "send", a.unsent(err))
		return
	}
	a.calls.byID[k.id] = k
	k.untimed()
	k.stop = c.After(min(a.patience(), k.limit.Sub(c.Now())), callOver{k})
	c.Attr("calls", a.s.sent.Add(1))
}

// unsent is why a link did not take a call.
func (a *actor) unsent(err error) error {
	var full *kernel.Overloaded
	if errors.As(err, &full) {
		return full
	}
	return a.refusal(a.redacted(err))
}

// refuse ends a call that was not sent.
func (a *actor) refuse(c *kernel.Ctx, k *call, scope string, cause error) {
	if scope != "" {
		c.Refuse(scope)
	}
	a.finish(c, k)
	k.question.Fail(&capability.NotSent{Cause: cause})
}

// finish takes a call out of everything; who does it answers it.
func (a *actor) finish(c *kernel.Ctx, k *call) {
	if a.calls.byQuestion[k.question] != k {
		return
	}
	a.calls.remove(k)
	k.untimed()
	k.bytes.Release()
	k.held.Release()
	a.asked.over(a, c, k)
	g := k.gate
	g.leave(k, k.phase == queued)
	a.use(c)
	a.count(c)
	a.wakeGate(c, g, k.Tool)
	if n := a.conn; n != nil && n.draining && n.phase == ready && len(a.calls.byID) == 0 {
		a.end(c, a.login.err)
	}
}

// wakeGate lets go on whoever may of a tool's queue. They go in a turn of their own, so that what ends one call is through before
// the next begins.
func (a *actor) wakeGate(c *kernel.Ctx, g *gate, tool string) {
	switch {
	case g.spare(c.Now()):
		delete(a.gates, tool)
	case len(g.queue) > 0 && g.timer == nil && g.running < g.most:
		g.timer = c.After(g.wait(c.Now()), gateDue{tool})
	}
}

func (a *actor) gateDue(c *kernel.Ctx, tool string) {
	g := a.gates[tool]
	if g == nil {
		return
	}
	g.timer = nil
	for {
		k := g.next(c.Now())
		if k == nil {
			break
		}
		a.admitted(c, k)
	}
	if a.gates[tool] == g {
		a.wakeGate(c, g, tool)
	}
}

// cancelled ends a call, or the wait for a list, that nobody waits for any more.
func (a *actor) cancelled(c *kernel.Ctx, q *kernel.Question) {
	k := a.calls.byQuestion[q]
	if k == nil {
		a.asking = slices.DeleteFunc(a.asking, func(x asking) bool { return x.question == q })
		return
	}
	a.tellStop(c, k, "the caller cancelled the call")
	a.finish(c, k)
}

// tellStop tells the server to stop a call that it has.
func (a *actor) tellStop(c *kernel.Ctx, k *call, reason string) {
	if k.phase == sent {
		a.cancel(c, k.id, reason)
		a.calls.suspect(suspect{k.id, k.Owner, c.Now()})
	}
}

// timeout ends a call whose time is over: that call, and nothing else.
func (a *actor) timeout(c *kernel.Ctx, k *call) {
	if a.calls.byQuestion[k.question] != k {
		return
	}
	c.Refuse("timeout")
	if k.phase != sent {
		a.refuse(c, k, "", capability.ErrTimeout)
		return
	}
	a.tellStop(c, k, "it has taken too long")
	a.finish(c, k)
	k.question.Fail(fmt.Errorf("%w: %w", capability.ErrTimeout, context.DeadlineExceeded))
	if k.alive && !c.Now().Before(k.limit) {
		return // it was at work until it had to end
	}
	a.breaker.fault(c.Now())
	a.opened(c, capability.ErrTimeout)
}

// opened shows that the breaker is open.
func (a *actor) opened(c *kernel.Ctx, err error) {
	if !a.breaker.closed() {
		a.ended = err
		a.publish(c)
	}
}
