package session

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"strconv"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// begin opens the session for the request that made it: its tunnels and its agent at once, neither waiting for the other.
func (x *session) begin() {
	open := x.open
	x.out.held, x.out.client = true, open.client
	x.own(open.client)
	declared, err := x.afford(open.params)
	open.held.Release()
	*open.params = Params{} // it is reachable as long as the session: the frame that it points into must not be
	if err != nil {
		x.failOpening(wireError(err))
		return
	}
	x.declare(open.client, declared, false)
	if x.s.cfg.Driver == DriverNone {
		if x.s.cfg.FacadeURL != "" {
			x.facade = facadeReport{state: facadeReady}
		}
		x.opened(nil)
		return
	}
	x.wantAgent()
}

// opened answers the request that the session was opened for. result is the agent's answer of session/new.
func (x *session) opened(result []byte) {
	r := x.opening
	x.opening = nil
	x.life.opened.Store(true)
	x.idleFor = x.c.Now()
	if x.client == nil { // it left meanwhile: lose has ended a session that was new
		r.owed.Moot()
		x.out.held = false
		x.armTTL()
		return
	}
	body, err := x.openResult(result)
	if err != nil {
		x.failOpening(jsonrpc.InternalError(jsonrpc.ReasonInternal, "the agent's answer to session/new is no object"))
		return
	}
	x.granted()
	x.out.first(&item{weight: pinned, answer: true, act: func() error {
		r.give(x.id, body, nil, nil)
		return nil
	}})
	x.out.held = false
	x.out.flush()
}

// failOpening answers the opening request with an error and ends the session: for good when it was new.
func (x *session) failOpening(bad *jsonrpc.Error) {
	r := x.opening
	x.opening = nil
	r.give("", nil, nil, bad)
	how := endClosed
	if x.open.resume {
		how = endSuspended
	}
	x.end(how, bad)
}

// openResult is the agent's result with our id and our _meta; of a resume, only ours.
func (x *session) openResult(result []byte) ([]byte, error) {
	meta := []jsonrpc.Edit{{Name: acp.MetaServers, Value: x.serversObject()}}
	if token := x.clientToken(); token != nil {
		meta = append(meta, jsonrpc.Edit{Name: acp.MetaFacade, Value: token})
	}
	if x.open != nil && x.open.resume {
		meta = append(meta, jsonrpc.Edit{Name: acp.MetaSession, Value: x.account()})
		return acp.WithMetaAnd(nil, meta, x.settings.edits()...)
	}
	return acp.WithMetaAnd(result, meta, jsonrpc.Edit{Name: "sessionId", Value: jsonrpc.AppendString(nil, x.id)})
}

// resumeResult answers a resume of a living session.
func (x *session) resumeResult() []byte {
	meta := []jsonrpc.Edit{{Name: acp.MetaSession, Value: x.account()}, {Name: acp.MetaServers, Value: x.serversObject()}}
	if token := x.clientToken(); token != nil {
		meta = append(meta, jsonrpc.Edit{Name: acp.MetaFacade, Value: token})
	}
	body, _ := acp.WithMetaAnd(nil, meta, x.settings.edits()...) // an empty object takes members
	return body
}

// account is `_meta["acpod.dev/session"]`: what a client that comes back has to know. Told once: what was missed begins anew.
func (x *session) account() jsontext.Value {
	state, alive := "idle", "alive"
	if x.turn.phase != idle {
		state = "running"
	}
	if x.fresh {
		alive = "fresh"
	}
	b := append([]byte(`{"state":"`), state...)
	b = append(append(b, `","agent":"`...), alive...)
	b = strconv.AppendInt(append(b, `","missed_updates":`...), x.out.missed, 10)
	b = strconv.AppendInt(append(b, `,"missed_bytes":`...), x.out.missedBytes, 10)
	b = append(b, `,"last_turn":`...)
	if x.lastTurn == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, x.lastTurn...)
	}
	x.out.missed, x.out.missedBytes, x.fresh = 0, 0, false
	return append(b, '}')
}

// onAttach is a resume of this living session. A refused one changes nothing.
func (x *session) onAttach(m attach) {
	defer m.held.Release()
	taken := false
	defer func() { x.c.Question().Answer(attached(taken), nil) }()
	asked := claim{rank: m.client.Rank(), turn: x.busy()}
	if x.client != nil && !gone(x.client) {
		asked.held, asked.same, asked.other = true, x.client == m.client, x.client.Rank()
	}
	switch judge(asked) {
	case busy:
		m.client.Respond("", m.req, nil, nil, jsonrpc.BusyError())
		return
	case superseded:
		m.client.Respond("", m.req, nil, nil, jsonrpc.SupersededError())
		return
	}
	declared, err := x.afford(m.params)
	if err != nil {
		m.client.Respond("", m.req, nil, nil, wireError(err))
		return
	}
	same := asked.same
	taken = true
	x.out.resolve(true)
	if !same {
		x.takeOver()
		x.own(m.client)
		x.publish() // before the answer: who has read that finds the session in its list
	}
	x.folders, x.meta = m.folders, keepMeta(x.c, m.params.Meta, x.s.cfg.ForwardMeta)
	x.declare(m.client, declared, same)
	if !x.owned.Owed() { // this generation was abandoned, and the supervisor answers
		return
	}
	r := x.owe("session/resume", m.client, m.req)
	x.c.Question().Answer(attached(true), nil) // from here on the answer is ours, not the supervisor's
	if former := x.opening; former != nil {    // it is still being opened, for somebody who has lost it: this request takes its place
		former.owed.Moot()
		x.opening, x.open = r, &opener{client: m.client, resume: true}
		x.out.client = m.client
		return
	}
	x.granted()
	body := x.resumeResult()
	if same {
		x.answer(r, body, nil, nil)
		return
	}
	x.out.first(&item{weight: pinned, answer: true, act: func() error {
		r.give(x.id, body, nil, nil)
		return nil
	}})
	x.out.attach(m.client)
	x.askAgain()
	x.credits(x.turn.phase == ending)
	x.armTTL()
}

// own makes that client the owner; the connection is told when the client is.
func (x *session) own(client Client) {
	x.client, x.formerly = client, client
	x.meet(client)
	x.c.Watch(client.Ref())
	id := x.id
	x.owned = x.c.Own("ownership", func(_ context.Context, cause error) { client.Lost(id, cause) })
}

// granted lets the client's requests reach the session. A generation that was abandoned owns nothing any more.
func (x *session) granted() {
	if x.owned.Owed() {
		x.client.Granted(x.id, x.c.Self())
	}
}

// disown tells the client that the session is not its any more.
func (x *session) disown(why error) {
	if x.owned.Discharge() { // else the release has told it, and the id may be another generation's of that client
		x.client.Lost(x.id, why)
	}
	x.client = nil
}

// takeOver ends what a former owner that is still attached has of this session.
func (x *session) takeOver() {
	former := x.client
	if former == nil {
		return
	}
	x.disown(tunnel.ErrTakenOver)
	x.endTaken(former)
	x.recall(true)
	x.out.detach(false)
	if r := x.prompt.asker; r != nil {
		x.prompt.asker = nil
		r.give(x.id, nil, nil, jsonrpc.SupersededError())
	}
	x.leaveQueue(true)
	x.leaveForwards(true)
	if r := x.opening; r != nil {
		r.give("", nil, nil, jsonrpc.SupersededError())
	}
}

// lose is the client's end. The turn goes on; what it says is kept.
func (x *session) lose(client Client) {
	if x.client == nil || x.client != client {
		return
	}
	x.owned.Moot()
	x.client = nil
	x.since = x.c.Now()
	x.recall(false) // the tunnels see by themselves that the socket is gone
	x.out.detach(true)
	if r := x.prompt.asker; r != nil {
		x.prompt.asker = nil
		r.owed.Moot()
	}
	x.leaveQueue(false)
	x.leaveForwards(false)
	x.credits(true)
	if x.opening != nil && !x.open.resume {
		x.opening.owed.Moot()
		x.opening = nil
		x.end(endClosed, errors.New("its client left before it was open"))
		return
	}
	x.armTTL()
}

// gone tells whether nothing can be sent to the client any more.
func gone(client Client) bool {
	select {
	case <-client.Gone():
		return true
	default:
		return false
	}
}
