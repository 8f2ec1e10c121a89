package session

import (
	"errors"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// onClose is session/close.
func (x *session) onClose(m Close) {
	if !x.isOwner(m.Client) {
		m.Client.Respond("", m.Req, nil, nil, acp.UnknownSession(x.id))
		return
	}
	x.revoke()
	x.cutTurn()
	x.life.ending.Store(uint32(endClosed)) // before the answer: who has read it finds the session no more
	why := errors.New("the client closed it")
	x.out.flush()
	x.dismiss(why) // … and finds its place among those of the connection free
	x.farewell(x.owe(acp.MethodSessionClose, m.Client, m.Req), why)
}

// dismiss tells the client that has the session that it has it no more. It is nil afterwards.
func (x *session) dismiss(why error) {
	if x.client == nil {
		return
	}
	x.disown(why)
	x.out.detach(false) // what never left counts as missed
}

// onSuspend is the supervisor's wish for this session's place.
func (x *session) onSuspend() {
	q := x.c.Question()
	if x.occupied() {
		q.Fail(errBusy)
		return
	}
	q.Answer(suspend{}, nil)
	x.end(endSuspended, errors.New("its place was needed: agent.max_sessions is reached"))
}

// end stops the session by its own will: its tokens first, then what waits for an answer, then all below it.
func (x *session) end(how end, why error) {
	if x.over {
		return
	}
	x.over = true
	x.life.ending.Store(uint32(how))
	x.revoke()
	x.leaveParked()
	x.cutTurn()
	x.out.flush()
	for _, one := range x.servers {
		x.endTunnel(one, kernel.ErrStopped)
	}
	x.part()
	if client := x.client; client != nil {
		x.dismiss(why)
		if how == endSuspended && x.life.opened.Load() {
			x.tell(client, methodSuspended, why)
		}
	}
	x.c.Log().Info("session ends", "session", acp.SessionTag(x.id), "why", why.Error())
}

// cutTurn ends the turn that runs as a cancel does, and answers what the agent asked.
func (x *session) cutTurn() {
	if x.turn.phase == running {
		x.sendCancel()
	}
	x.advance(evEnd, reply{})
	x.cancelQueued(0)
	x.endForwards()
	x.settleAsks(true)
}

// part lets the agent read what it was told last, before its stdin is closed.
func (x *session) part() {
	if x.conv.timeout != nil {
		x.conv.timeout()
	}
	switch x.conv.phase {
	case starting, newing, alive:
		x.parting = x.c.Tell(x.conv.ref, leave{}) == nil
		x.credits(true)
	case stopping:
		x.parting = true
	}
}

// methodSuspended tells a client, which loses the session by it, that a resume brings it back.
const methodSuspended = "_acpod/suspended" // {sessionId, reason}

func (x *session) tell(client Client, method string, why error) {
	params := jsonrpc.AppendString(x.idMember(), why.Error())
	_ = client.Notify(x.id, method, append(params, '}')) // when it does not fit, the client learns it from the answer to its next request
}

func (x *session) idMember() []byte {
	return append(jsonrpc.AppendString([]byte(`{"sessionId":`), x.id), `,"reason":`...)
}

// afterwards is what a session still does once it has ended and only its agent has not.
func (x *session) afterwards(m kernel.Msg) {
	switch m := m.(type) {
	case kernel.Exited:
		if m.Ref == x.conv.ref {
			x.parting = false
		}
	case Prompt:
		m.Held.Release()
		m.Client.Respond("", m.Req, nil, nil, acp.UnknownSession(x.id))
	case Close:
		m.Client.Respond("", m.Req, nil, nil, acp.UnknownSession(x.id))
	case Forward:
		m.Held.Release()
		m.Client.Respond("", m.Req, nil, nil, acp.UnknownSession(x.id))
	case agent.Update:
		m.Held.Release()
		m.Credit.Done()
	case agent.Noted:
		m.Held.Release()
		m.Credit.Done()
	case kernel.Answer:
		m.Lease.Release()
		if x.leaving != nil && m.Ticket == x.dropping {
			x.dropped(m)
		}
	case storeOverdue:
		if x.leaving != nil && m.ticket == x.dropping {
			x.c.Cancel(m.ticket)
			x.dropped(kernel.Answer{Err: errStoreHangs})
		}
	case kernel.Leased:
		m.Lease().Release()
	}
	if q := x.c.Question(); q != nil {
		q.Fail(kernel.ErrStopped)
	}
}
