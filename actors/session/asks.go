package session

import (
	"errors"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// maxAsks bounds the permission requests of an agent that are open at a time.
const maxAsks = 64

// ask is a permission request that waits for a client.
type ask struct {
	id      jsonrpc.ID // the agent's
	asked   acp.Permission
	params  []byte        // for the client
	held    *kernel.Lease // of the agent's line, which asked points into
	copied  *kernel.Lease // of params
	ticket  kernel.Ticket // zero while no client was asked
	timeout func()
}

// onCalled is a request of the agent. Permission is all that it may ask for: we claimed no files and no terminals.
func (x *session) onCalled(m agent.Called) {
	x.touch()
	if m.From != x.conv.ref { // it is gone, and waits for no answer
		x.c.Refuse("agent_request")
		m.Held.Release()
		return
	}
	if m.Method != acp.MethodPermission {
		x.c.Refuse("agent_request")
		m.Held.Release()
		x.respond(agent.Respond{ID: m.ID, Err: jsonrpc.UnknownMethod(m.Method)})
		return
	}
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
		a := &ask{id: m.ID, asked: asked, params: o.Set("sessionId", jsonrpc.AppendString(nil, x.id)), held: m.Held, copied: copied}
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
	client := x.client
	x.out.push(&item{weight: pinned, act: func() error {
		if x.client != client || !x.waits(a) || !a.ticket.IsZero() {
			return nil
		}
		ticket, err := client.Call(x.c, x.id, acp.MethodPermission, a.params)
		if err == nil {
			a.ticket = ticket
		}
		return err
	}})
}

// waits tells whether the request still waits.
func (x *session) waits(a *ask) bool {
	for _, other := range x.asks {
		if other == a {
			return true
		}
	}
	return false
}

// askAgain relays what an earlier client left open.
func (x *session) askAgain() {
	for _, a := range x.asks {
		x.relay(a)
	}
}

// recall takes back what the client was asked; the requests stay open. told: it is told so.
func (x *session) recall(told bool) {
	for _, a := range x.asks {
		if told && !a.ticket.IsZero() {
			x.c.Cancel(a.ticket)
		}
		a.ticket = kernel.Ticket{}
	}
}

// onAskAnswer is the client's answer; it tells whether the answer belonged to a permission request.
func (x *session) onAskAnswer(m kernel.Answer) bool {
	for _, a := range x.asks {
		if a.ticket != m.Ticket {
			continue
		}
		a.ticket = kernel.Ticket{}
		if m.Err != nil && x.client != nil && gone(x.client) {
			return true // its end is on the way to us: the next client is asked
		}
		result := acp.CancelledOutcome()
		if m.Err == nil {
			if raw, ok := replyOf(m.Msg); ok {
				result = answeredBy(a.asked, raw)
			}
		}
		x.outcome(a.id, append([]byte(nil), result...))
		x.drop(a)
		return true
	}
	return false
}

func (x *session) onAskOverdue(a *ask) {
	if !x.waits(a) {
		return
	}
	x.c.Refuse("permission_timeout")
	x.c.Cancel(a.ticket)
	x.outcome(a.id, outcomeOf(a.asked.Rejecting()))
	x.drop(a)
}

// withdrawAsk is the agent's $/cancel_request for its own request.
func (x *session) withdrawAsk(id jsonrpc.ID) {
	for _, a := range x.asks {
		if a.id.Key() == id.Key() {
			x.c.Cancel(a.ticket)
			x.outcome(a.id, acp.CancelledOutcome())
			x.drop(a)
			return
		}
	}
}

// settleAsks answers every open permission request with cancelled: to the agent at once, and the client is told that its
// answer is not wanted any more.
func (x *session) settleAsks() {
	for len(x.asks) > 0 {
		a := x.asks[0]
		x.c.Cancel(a.ticket)
		x.outcome(a.id, acp.CancelledOutcome())
		x.drop(a)
	}
}

func (x *session) drop(a *ask) {
	a.timeout()
	a.free()
	for i, other := range x.asks {
		if other == a {
			x.asks = append(x.asks[:i:i], x.asks[i+1:]...)
			return
		}
	}
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
