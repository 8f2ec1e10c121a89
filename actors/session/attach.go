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
		if open.resume { // there is nobody who could remember
			x.memory = memoryFresh
		}
		x.opened(nil)
		return
	}
	x.wantAgent()
}

// opened is the end of what the session was opened with, or opened again: its record is written, then its client is answered. result is the
// agent's answer.
func (x *session) opened(result []byte) {
	x.idleFor = x.c.Now()
	if x.client == nil && x.open.resume { // it left meanwhile: lose has ended a session that was new
		x.missOpening()
	}
	if x.opening != nil {
		if bad := x.offered(result); bad != nil {
			x.failOpening(bad)
			return
		}
	}
	x.keep()
}

// missOpening is an opening whose client has left: the session is there for the next one.
func (x *session) missOpening() {
	x.opening.owed.Moot()
	x.opening = nil
	x.given()
	x.out.held = false
	x.life.opened.Store(true)
	x.armTTL()
}

// answerOpening answers the request that the session was opened for.
func (x *session) answerOpening() {
	r := x.opening
	if r == nil {
		return
	}
	if x.client == nil {
		x.missOpening()
		return
	}
	memory := x.memory
	body, err := x.openResult()
	if err != nil {
		x.failOpening(jsonrpc.InternalError(jsonrpc.ReasonInternal, "the agent's answer to "+x.conv.asked.method()+" is no object"))
		return
	}
	x.opening = nil
	x.given()
	x.life.opened.Store(true)
	x.granted()
	it := &item{weight: pinned, answer: true, act: func() error {
		switch {
		case x.client == nil: // lost while the replay before it was on its way
			x.memory = max(x.memory, memory)
		case !x.loading(): // else another one has begun
			x.out.shown()
		}
		r.give(x.id, body, nil, nil)
		return nil
	}}
	if x.open.load { // behind all that was replayed
		x.out.held = false
		x.out.push(it)
	} else {
		x.out.first(it)
		x.out.held = false
	}
	x.out.flush()
	x.askAgain()
	x.credits(x.turn.phase == ending)
	x.armTTL()
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

// openResult is the agent's result with our id and our _meta; where no agent was asked, what it offered before.
func (x *session) openResult() ([]byte, error) {
	meta := []jsonrpc.Edit{{Name: acp.MetaServers, Value: x.serversObject()}}
	if token := x.clientToken(); token != nil {
		meta = append(meta, jsonrpc.Edit{Name: acp.MetaFacade, Value: token})
	}
	id := jsonrpc.Edit{Name: "sessionId"}
	if x.open.resume {
		meta = append(meta, jsonrpc.Edit{Name: acp.MetaSession, Value: x.account()})
	} else {
		id.Value = jsonrpc.AppendString(nil, x.id)
	}
	edits := []jsonrpc.Edit{id}
	if x.offer.result == nil { // no agent was asked: it stands as it stood
		edits = append(edits, x.settings.edits()...)
	}
	return acp.WithMetaAnd(x.offer.result, meta, edits...)
}

// account is `_meta["acpod.dev/session"]`: what a client that comes back has to know. Told once: what was missed begins anew.
func (x *session) account() jsontext.Value {
	state := "idle"
	if x.turn.phase != idle {
		state = "running"
	}
	b := append([]byte(`{"state":"`), state...)
	b = append(append(b, `","agent":"`...), x.memory.String()...)
	b = strconv.AppendInt(append(b, `","missed_updates":`...), x.out.missed, 10)
	b = strconv.AppendInt(append(b, `,"missed_bytes":`...), x.out.missedBytes, 10)
	b = append(b, `,"last_turn":`...)
	if x.lastTurn == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, x.lastTurn...)
	}
	x.out.missed, x.out.missedBytes, x.memory = 0, 0, memoryAlive
	return append(b, '}')
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
	x.leaveAgain(true)
	x.cutReplay()
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
	x.leaveAgain(false)
	x.cutReplay()
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
