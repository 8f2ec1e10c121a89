package session

import (
	"errors"
	"slices"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// maxForwards bounds the requests of a client, beside its prompts, that one session has open at its agent.
const maxForwards = 64

// forward is a request that the agent answers and the session only passes on.
type forward struct {
	asker     *request // nil when nobody waits for the answer (any more)
	method    string
	mode      string // the mode that it sets
	params    []byte // until it is sent
	held      *kernel.Lease
	wire      *agent.Wire // nil = it was not sent
	ticket    kernel.Ticket
	behind    bool   // it came after the prompt that waits for the same agent
	late      func() // takes its deadline back
	cancelled bool   // the agent was told that it is not wanted any more
}

// onForward passes a request on, to an agent that is started for it when there is none.
func (x *session) onForward(m Forward) {
	refuse := func(session string, bad *jsonrpc.Error) {
		m.Held.Release()
		m.Client.Respond(session, m.Req, nil, nil, bad)
	}
	switch {
	case !x.isOwner(m.Client):
		refuse("", acp.UnknownSession(x.id))
		return
	case x.s.cfg.Driver == DriverNone:
		refuse(x.id, jsonrpc.UnknownMethod(m.Method))
		return
	case x.conv.phase != alive && x.s.draining.Load():
		refuse(x.id, jsonrpc.Draining(0))
		return
	case len(x.forwards) == maxForwards:
		x.c.Refuse("requests_in_flight")
		refuse(x.id, &jsonrpc.Error{Code: jsonrpc.Busy, Message: "too many requests of this session are open: wait for their answers", Data: jsonrpc.ReasonData{Reason: jsonrpc.ReasonBusy}})
		return
	}
	mode, bad := x.allowed(m.Method, m.Params)
	if bad != nil {
		x.c.Refuse("modes")
		refuse(x.id, bad)
		return
	}
	f := &forward{method: m.Method, mode: mode, params: m.Params, held: m.Held, behind: x.turn.phase == waiting}
	f.asker = x.owe(m.Method, m.Client, m.Req)
	if x.client == nil { // it was sent just before its client went
		f.asker.owed.Moot()
		f.asker = nil
	}
	x.forwards = append(x.forwards, f)
	x.armTTL()
	if x.conv.phase == alive {
		x.sendForward(f)
	} else {
		x.wantAgent()
	}
}

// onInform passes a notification on. Without an agent there is nobody whom it could concern.
func (x *session) onInform(m Inform) {
	_, bad := x.allowed(m.Method, m.Params)
	params, err := acp.WithSessionID(m.Params, x.conv.id)
	if !x.isOwner(m.Client) || x.conv.phase != alive || bad != nil || err != nil {
		x.c.Refuse("client_notification")
		m.Held.Release()
		return
	}
	if err := x.c.Tell(x.conv.ref, agent.Notify{Method: m.Method, Params: params, Held: m.Held}); err != nil {
		x.c.Refuse("client_notification")
	}
}

func (x *session) sendForward(f *forward) {
	params, err := acp.WithSessionID(f.params, x.conv.id)
	if err != nil {
		x.settleForward(f, nil, nil, jsonrpc.BadParams("%v", err))
		return
	}
	wire := new(agent.Wire)
	ticket, err := x.c.Request(x.conv.ref, agent.Request{Method: f.method, Params: params, Held: f.held, Wire: wire})
	f.held = nil // it went with the message
	switch {
	case errors.Is(err, kernel.ErrStopped): // it has just died, the news is on its way, as its last words are: the request waits for the next one
		if f.held, err = x.c.Account().Acquire(int64(len(f.params))); err == nil {
			return
		}
	case err == nil:
		f.params, f.wire, f.ticket = nil, wire, ticket
		f.late = x.c.After(x.s.cfg.TurnIdleTimeout, forwardOverdue{f})
		return
	}
	x.settleForward(f, nil, nil, wireError(err))
}

// forwardOverdue says that the agent has not answered within agent.turn_idle_timeout, or within agent.cancel_timeout of its
// cancel.
type forwardOverdue struct{ forward *forward }

func (x *session) onForwardOverdue(f *forward) {
	if !slices.Contains(x.forwards, f) {
		return
	}
	bad := jsonrpc.CancelledError()
	if !f.cancelled {
		x.takeBack(f)
		bad = jsonrpc.InternalError(jsonrpc.ReasonIdle, "the agent did not answer within agent.turn_idle_timeout: the request was cancelled")
	}
	x.c.Cancel(f.ticket)
	x.settleForward(f, nil, nil, bad)
}

// sendForwards sends what waited for an agent: before the prompt that waits with it, and after it.
func (x *session) sendForwards(behind bool) {
	for _, f := range slices.Clone(x.forwards) {
		if f.wire == nil && f.behind == behind && x.conv.phase == alive {
			x.sendForward(f)
		}
	}
}

// wanted tells whether something waits for an agent to be alive.
func (x *session) wanted() bool {
	return x.turn.phase == waiting || x.opening != nil || slices.ContainsFunc(x.forwards, func(f *forward) bool { return f.wire == nil })
}

// arrived gives a new agent what waited for it, in the order in which it came.
func (x *session) arrived() {
	x.sendForwards(false)
	if x.turn.phase == waiting && x.conv.phase == alive {
		x.sendPrompt()
	}
	x.sendForwards(true)
}

// failForwards answers what waits for an agent that cannot be had.
func (x *session) failForwards(bad *jsonrpc.Error) {
	for _, f := range slices.Clone(x.forwards) {
		if f.wire == nil {
			x.settleForward(f, nil, nil, bad)
		}
	}
}

// onForwardAnswer is the agent's answer; it tells whether the answer belonged to a request that was passed on.
func (x *session) onForwardAnswer(a kernel.Answer) bool {
	i := slices.IndexFunc(x.forwards, func(f *forward) bool { return f.wire != nil && f.ticket == a.Ticket })
	if i < 0 {
		return false
	}
	f := x.forwards[i]
	if a.Err != nil {
		x.settleForward(f, nil, nil, wireError(a.Err))
		return true
	}
	x.touch()
	r, _ := a.Msg.(agent.Reply)
	result := r.Result
	if o, err := jsonrpc.ParseObject(result); err == nil {
		if id, err := o.Text("sessionId"); err == nil && id != "" && id == x.conv.id {
			result = o.Set("sessionId", jsonrpc.AppendString(nil, x.id))
		}
		x.settings.note(x.c, o)
	}
	if f.mode != "" {
		x.settings.setMode(x.c, f.mode)
	}
	x.settleForward(f, result, a.Lease, nil)
	return true
}

// settleForward gives a request its one answer.
func (x *session) settleForward(f *forward, result []byte, lease *kernel.Lease, bad *jsonrpc.Error) {
	f.end()
	x.forwards = slices.DeleteFunc(x.forwards, func(other *forward) bool { return other == f })
	asker := f.asker
	f.asker = nil
	if asker == nil {
		lease.Release()
	} else {
		x.answer(asker, result, lease, bad)
	}
	x.armTTL()
}

func (f *forward) end() {
	f.held.Release()
	f.held, f.params = nil, nil
	if f.late != nil {
		f.late()
	}
}

// cancelForward is the client's $/cancel_request: what was not sent is answered at once, else the agent is told and answers,
// within agent.cancel_timeout.
func (x *session) cancelForward(req uint64) {
	i := slices.IndexFunc(x.forwards, func(f *forward) bool { return f.asker != nil && f.asker.req == req })
	switch {
	case i < 0:
	case x.forwards[i].wire == nil:
		x.settleForward(x.forwards[i], nil, nil, jsonrpc.CancelledError())
	case !x.forwards[i].cancelled:
		f := x.forwards[i]
		x.takeBack(f)
		f.late()
		f.late = x.c.After(x.s.cfg.CancelTimeout, forwardOverdue{f})
	}
}

// takeBack tells the agent that a request is not wanted any more.
func (x *session) takeBack(f *forward) {
	f.cancelled = true
	_ = x.c.Tell(x.conv.ref, agent.Withdraw{Wire: f.wire}) // one that cannot take it is overdue in a moment
}

// leaveForwards is the end of the client that asked. What was sent goes on at the agent; when the session is another client's
// now, what was not sent never is, and the former one is told.
func (x *session) leaveForwards(taken bool) {
	for _, f := range slices.Clone(x.forwards) {
		asker := f.asker
		f.asker = nil
		if taken && f.wire == nil {
			x.settleForward(f, nil, nil, nil)
		}
		switch {
		case asker == nil:
		case taken:
			asker.give(x.id, nil, nil, jsonrpc.SupersededError())
		default:
			asker.owed.Moot()
		}
	}
}

// endForwards answers all that is open, because the session ends.
func (x *session) endForwards() {
	for len(x.forwards) > 0 {
		f := x.forwards[0]
		x.c.Cancel(f.ticket)
		x.settleForward(f, nil, nil, jsonrpc.CancelledError())
	}
}
