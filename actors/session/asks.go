package session

import (
	"errors"
	"slices"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// maxAsks bounds the requests of an agent to its client that are open at a time.
const maxAsks = 64

// ask is a request of the agent that waits for a client: a permission, which survives the client's socket, or one that is only
// passed on, which does not.
type ask struct {
	id         jsonrpc.ID // the agent's
	method     string
	permission *acp.Permission // nil for another request
	params     []byte          // for the client
	held       *kernel.Lease   // of the agent's line, which permission points into
	copied     *kernel.Lease   // of params
	ticket     kernel.Ticket   // zero while no client was asked
	timeout    func()
}

// onCalled is a request of the agent.
func (x *session) onCalled(m agent.Called) {
	x.touch()
	if m.From != x.conv.ref { // it is gone, and waits for no answer
		x.c.Refuse("agent_request")
		m.Held.Release()
		return
	}
	if m.Method == acp.MethodPermission {
		x.onPermission(m)
	} else {
		x.onAsked(m)
	}
}

// onPermission asks for, or decides, what the agent may do.
func (x *session) onPermission(m agent.Called) {
	asked, bad := acp.ParsePermission(m.Params)
	if bad != nil {
		m.Held.Release()
		x.respond(agent.Respond{ID: m.ID, Err: bad})
		return
	}
	o, _ := jsonrpc.ParseObject(m.Params) // ParsePermission read it
	switch decision := decide(x.s.cfg.PermissionRules, x.s.cfg.Permissions, capabilityOf(m.Params)); {
	case x.foreign(m.From, o) || x.turn.phase == ending || len(x.asks) == maxAsks:
		x.c.Refuse("permission")
		x.outcome(m.ID, acp.CancelledOutcome())
	case decision == Allow:
		x.outcome(m.ID, outcomeOf(asked.Allowing()))
	case decision == Deny:
		x.outcome(m.ID, outcomeOf(asked.Rejecting()))
	default:
		copied, err := x.c.Account().Acquire(int64(len(o.Raw()) + len(x.id) + itemBytes))
		if err != nil {
			x.c.Refuse("session_bytes")
			x.outcome(m.ID, acp.CancelledOutcome())
			break
		}
		a := &ask{id: m.ID, method: m.Method, permission: &asked, params: o.Set("sessionId", jsonrpc.AppendString(nil, x.id)), held: m.Held, copied: copied}
		a.timeout = x.c.After(x.s.cfg.PermissionTimeout, askOverdue{a})
		x.asks = append(x.asks, a)
		x.relay(a)
		return
	}
	m.Held.Release()
}

// relay asks the client, in the place where the agent asked. Without a client it waits for one.
func (x *session) relay(a *ask) {
	if x.client == nil {
		return
	}
	if x.loadWaits() {
		x.askAhead()
		return
	}
	client := x.client
	x.out.push(&item{weight: pinned, act: func() error {
		if x.client != client || !x.waits(a) || !a.ticket.IsZero() {
			return nil
		}
		return x.call(a, x.id)
	}})
}

// askAhead asks the client of a load that waits for the very turn that asks: until that ends nothing of it is said, and it may not end before it has
// its answer. What its stream has no room for is asked as soon as it has; what is still not asked when the load is answered, then.
func (x *session) askAhead() {
	if x.client == nil || !x.loadWaits() {
		return
	}
	for _, a := range x.asks {
		var full *kernel.Overloaded
		if a.ticket.IsZero() && errors.As(x.call(a, x.id), &full) {
			x.out.blocked.Store(true)
			return
		}
	}
}

// call asks the client now, in that stream.
func (x *session) call(a *ask, stream string) error {
	ticket, err := x.client.Call(x.c, stream, a.method, a.params)
	if err == nil {
		a.ticket = ticket
	}
	return err
}

// waits tells whether the request still waits.
func (x *session) waits(a *ask) bool { return slices.Contains(x.asks, a) }

// askAgain relays what an earlier client left open.
func (x *session) askAgain() {
	for _, a := range x.asks {
		x.relay(a)
	}
}

// recall takes back what the client was asked. Permissions stay open for the next one; of what only this client could do, the
// agent is told at once that it is gone. told: the client is told so.
func (x *session) recall(told bool) {
	for _, a := range slices.Clone(x.asks) {
		if told && !a.ticket.IsZero() {
			x.c.Cancel(a.ticket)
		}
		a.ticket = kernel.Ticket{}
		if a.permission == nil {
			x.respond(agent.Respond{ID: a.id, Err: clientGone()})
			x.drop(a)
		}
	}
}

func clientGone() *jsonrpc.Error {
	return jsonrpc.InternalError(jsonrpc.ReasonInternal, "no client is attached to this session")
}

// onAskAnswer is the client's answer; it tells whether the answer belonged to a request of the agent.
func (x *session) onAskAnswer(m kernel.Answer) bool {
	i := slices.IndexFunc(x.asks, func(a *ask) bool { return a.ticket == m.Ticket })
	if i < 0 {
		return false
	}
	a := x.asks[i]
	a.ticket = kernel.Ticket{}
	if a.permission == nil {
		x.answerAsked(a, m)
		return true
	}
	defer m.Lease.Release()
	if m.Err != nil && x.client != nil && gone(x.client) {
		return true // its end is on the way to us: the next client is asked
	}
	result := acp.CancelledOutcome()
	if m.Err == nil {
		if raw, ok := replyOf(m.Msg); ok {
			result = answeredBy(*a.permission, raw)
		}
	}
	x.outcome(a.id, append([]byte(nil), result...))
	x.drop(a)
	return true
}

func (x *session) onAskOverdue(a *ask) {
	if !x.waits(a) {
		return
	}
	x.c.Cancel(a.ticket)
	if a.permission == nil {
		x.c.Refuse("request_timeout")
		x.respond(agent.Respond{ID: a.id, Err: jsonrpc.InternalError(jsonrpc.ReasonInternal, "the client did not answer within mcp.call_max")})
	} else {
		x.c.Refuse("permission_timeout")
		x.outcome(a.id, outcomeOf(a.permission.Rejecting()))
	}
	x.drop(a)
}

// withdrawAsk is the agent's $/cancel_request for its own request.
func (x *session) withdrawAsk(id jsonrpc.ID) {
	for _, a := range x.asks {
		if a.id.Key() == id.Key() {
			x.settleAsk(a)
			return
		}
	}
}

// settleAsks answers open requests as cancelled: to the agent at once, and the client is told that its answer is not wanted any
// more. The end of a turn settles the permissions; all: the agent leaves, and everything goes.
func (x *session) settleAsks(all bool) {
	for _, a := range slices.Clone(x.asks) {
		if all || a.permission != nil {
			x.settleAsk(a)
		}
	}
}

func (x *session) settleAsk(a *ask) {
	x.c.Cancel(a.ticket)
	if a.permission == nil {
		x.respond(agent.Respond{ID: a.id, Err: jsonrpc.CancelledError()})
	} else {
		x.outcome(a.id, acp.CancelledOutcome())
	}
	x.drop(a)
}

func (x *session) drop(a *ask) {
	a.timeout()
	a.free()
	x.asks = slices.DeleteFunc(x.asks, func(other *ask) bool { return other == a })
}

func (a *ask) free() {
	a.held.Release()
	a.copied.Release()
}

func (x *session) outcome(id jsonrpc.ID, result []byte) {
	x.respond(agent.Respond{ID: id, Result: result})
}

// respond answers a request of the agent.
func (x *session) respond(m agent.Respond) {
	if err := x.c.Tell(x.conv.ref, m); err != nil && !errors.Is(err, kernel.ErrStopped) {
		x.c.Refuse("agent_answer") // an agent that waits for it is ended by agent.turn_idle_timeout
	}
}
