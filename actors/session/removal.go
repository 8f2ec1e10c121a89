package session

import (
	"errors"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// remove is the session/delete of a living session, by a client that it belongs to. It is asked: the answer says that the session has it.
type remove struct {
	client Client
	req    uint64
}

// removeOverdue is agent.cancel_timeout after the agent was asked to delete its part.
type removeOverdue struct{}

// removal is a session/delete on its way: the agent is asked first.
type removal struct {
	request *request
	ticket  kernel.Ticket
	timeout func()
}

// onRemove ends the session for good. Whoever has it loses it, and its turn ends as by a close. Without an agent that could be asked the session
// sleeps, and the supervisor deletes it then.
func (x *session) onRemove(m remove) {
	if x.removal.request != nil { // somebody was first: what follows its end decides
		x.c.Question().Fail(kernel.ErrStopped)
		return
	}
	x.revoke()
	x.cutTurn()
	x.out.flush()
	if r := x.opening; r != nil {
		x.opening = nil
		r.give("", nil, nil, acp.UnknownSession(x.id))
	}
	x.dismiss(errors.New("its client deleted it"))
	x.formerly = nil
	x.leaveAgain(true)
	x.cutReplay()
	q := x.c.Question()
	if x.conv.phase != alive {
		q.Fail(kernel.ErrStopped)
		x.end(endSuspended, errors.New("its client deletes it"))
		return
	}
	r := x.owe(acp.MethodSessionDelete, m.client, m.req)
	q.Answer(attached(true), nil)
	x.removal = removal{request: r}
	ticket, err := x.c.Request(x.conv.ref, agent.Request{Method: acp.MethodSessionDelete, Params: sessionIDOf(x.conv.id)})
	if err != nil {
		x.finishRemoval(err)
		return
	}
	x.removal.ticket, x.removal.timeout = ticket, x.c.After(x.s.cfg.CancelTimeout, removeOverdue{})
}

func (x *session) onRemoveOverdue() {
	if x.removal.ticket.IsZero() {
		return
	}
	x.c.Cancel(x.removal.ticket)
	x.finishRemoval(jsonrpc.InternalError(jsonrpc.ReasonAgentTimeout, "the agent did not answer session/delete within agent.cancel_timeout"))
}

// finishRemoval follows the agent's word. When that has no such session there is nothing left to delete; when it fails the session sleeps, and may
// be deleted again.
func (x *session) finishRemoval(err error) {
	r := x.removal
	x.removal = removal{}
	if r.timeout != nil {
		r.timeout()
	}
	if err != nil && !forGood(err) {
		r.request.give("", nil, nil, wireError(err))
		x.end(endSuspended, errors.New("its client deletes it, and the agent does not"))
		return
	}
	x.farewell(r.request, errors.New("its client deleted it"))
}

// farewell ends the session for good and answers the request that wanted it so, when its record is gone.
func (x *session) farewell(r *request, why error) {
	x.life.ending.Store(uint32(endClosed))
	ticket, err := x.c.Request(x.c.Parent(), dropRecord{id: x.id})
	if err != nil {
		r.give(x.id, nil, nil, wireError(err))
	} else {
		x.leaving, x.dropping = r, ticket
		x.c.After(keepWait, storeOverdue{ticket})
	}
	x.end(endClosed, why)
}

// dropped is the supervisor's word that the record is gone, or why not.
func (x *session) dropped(a kernel.Answer) {
	r := x.leaving
	x.leaving, x.dropping = nil, kernel.Ticket{}
	if a.Err != nil {
		r.give(x.id, nil, nil, recordStays())
		return
	}
	r.give(x.id, []byte("{}"), nil, nil)
}

// agentDeleted is the agent's word on a session that does not live.
type agentDeleted struct {
	entry *entry
	bad   *jsonrpc.Error
}

// deleteAsleep has the agent delete its part of a session that does not live, in a process that has no session.
func (v *supervisor) deleteAsleep(e *entry) {
	inner, self := e.rec.inner, v.c.Self()
	if inner == "" {
		v.onAgentDeleted(agentDeleted{entry: e})
		return
	}
	err := v.send(errand{
		method: acp.MethodSessionDelete, params: sessionIDOf(inner), offered: func(info *acp.AgentInfo) bool { return info.Session.Delete },
		done: func(_ []byte, lease *kernel.Lease, bad *jsonrpc.Error) {
			lease.Release()
			_ = self.Signal(agentDeleted{entry: e, bad: bad}) // a supervisor that has ended answers by its release
		},
	})
	if err != nil {
		v.fail(e, wireError(err))
	}
}

func (v *supervisor) onAgentDeleted(m agentDeleted) {
	e := m.entry
	if m.bad != nil && !forGood(m.bad) {
		v.fail(e, m.bad)
		return
	}
	rec := e.rec
	rec.under = nil
	rec.kept.parted = append(rec.kept.parted, func(err error) {
		var bad *jsonrpc.Error
		result := []byte("{}")
		if err != nil {
			result, bad = nil, recordStays()
		}
		if e.owed.Discharge() {
			e.client.Respond("", e.req, result, nil, bad)
		}
	})
	v.part(rec, deleted)
}

func sessionIDOf(inner string) []byte {
	return jsonrpc.Object{}.Apply(nil, jsonrpc.Edit{Name: "sessionId", Value: jsonrpc.AppendString(nil, inner)})
}

func recordStays() *jsonrpc.Error {
	return jsonrpc.InternalError(jsonrpc.ReasonInternal, "the session has ended, and its record could not be removed: the pod's log says why")
}
