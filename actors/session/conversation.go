package session

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// conversation is one agent process and its session, from the wish for it to its end.
type conversation struct {
	phase   convPhase
	ref     kernel.Ref
	info    *acp.AgentInfo
	credits *agent.Credits
	noise   func() int64  // lines of the process that said nothing to us; nil before it is ready
	id      string        // the agent's own session id
	entry   bool          // the session/new under way has the facade's entry
	ticket  kernel.Ticket // of session/new, or of the claim for a place
	timeout func()        // takes agent.new_timeout back
	turned  time.Time     // end of its last turn
}

// parted is the agent whose end came last. Its end may overtake what it said before, and its successor may call its session as it did, so
// it is the generation that tells their words apart. id is "" for one that was never open, or was stopped: nothing of it is passed on.
type parted struct {
	ref kernel.Ref
	id  string
}

// silenced tells whether nothing that an agent says is passed on any more.
func (x *session) silenced(from kernel.Ref) bool {
	switch from {
	case x.conv.ref:
		return x.conv.phase == stopping
	case x.parted.ref:
		return x.parted.id == ""
	}
	return true
}

// foreign tells whether what an agent says is of no session here: by one that is silenced, or about another session than it has here.
func (x *session) foreign(from kernel.Ref, params jsonrpc.Object) bool {
	id, err := params.Text("sessionId")
	switch {
	case err != nil || x.silenced(from):
		return true
	case from == x.parted.ref:
		return id != x.parted.id
	}
	return x.conv.phase == alive && id != x.conv.id
}

type convPhase uint8

const (
	none     convPhase = iota
	claiming           // waits for its place among max_sessions
	starting           // the process runs, the handshake is under way
	newing             // session/new is under way
	alive
	stopping // the process is being ended
)

func (p convPhase) String() string {
	return [...]string{"none", "waiting for a place", "starting", "session/new", "alive", "stopping"}[p]
}

func (v *conversation) noisy() int64 {
	if v.noise == nil {
		return 0
	}
	return v.noise()
}

// wantAgent starts an agent unless there is one, or one on its way.
func (x *session) wantAgent() {
	if x.conv.phase != none {
		return // one that is stopping is followed by another when its exit comes, if it is still wanted then
	}
	x.conv.phase = claiming
	switch x.slot {
	case slotHeld:
		x.spawnAgent()
	case slotNone:
		ticket, err := x.c.Request(x.c.Parent(), claimSlot{id: x.id})
		if err != nil {
			x.conv = conversation{}
			x.agentFailed(err)
			return
		}
		x.conv.ticket = ticket
	}
}

// onSlot brings the place, or why there is none.
func (x *session) onSlot(err error) {
	if x.conv.phase != claiming {
		if err == nil { // not wanted any more
			x.slot = slotHeld
			x.freeSlot()
		}
		return
	}
	x.conv.ticket = kernel.Ticket{}
	if err != nil {
		x.conv = conversation{}
		x.agentFailed(err)
		return
	}
	x.slot = slotHeld
	x.spawnAgent()
}

func (x *session) freeSlot() {
	if x.slot == slotHeld {
		x.slot = slotNone
		_ = x.c.Parent().Signal(slotFreed{id: x.id})
	}
}

// onReady follows the handshake: session/new.
func (x *session) onReady(m agent.Ready) {
	if x.conv.phase != starting || m.From != x.conv.ref {
		return
	}
	x.conv.info, x.conv.credits, x.conv.noise = m.Info, m.Credits, m.Noise
	x.credits(x.client == nil)
	x.s.learned.learn(m.Info)
	if x.token.text != "" && !m.Info.MCP.HTTP {
		x.revoke()
		x.facade = noHTTP
	}
	x.sendNew()
}

// sendNew asks the agent for its session: with the facade's entry while there is a token.
func (x *session) sendNew() {
	x.conv.phase, x.conv.entry = newing, x.token.text != ""
	params := x.s.cfg.newForAgent(x.conv.info, x.folders, x.token.text, x.meta)
	ticket, err := x.c.Request(x.conv.ref, agent.Request{Method: acp.MethodSessionNew, Params: params})
	if err != nil {
		x.stopAgent()
		x.agentFailed(err)
		return
	}
	x.conv.ticket = ticket
	x.conv.timeout = x.c.After(x.s.cfg.NewTimeout, newOverdue{})
}

func (x *session) onNewOverdue() {
	if x.conv.phase == newing {
		x.c.Cancel(x.conv.ticket)
		x.newFailed(errNewTimeout)
	}
}

// onNew is the agent's answer to session/new.
func (x *session) onNew(a kernel.Answer) {
	x.conv.timeout()
	x.conv.ticket = kernel.Ticket{}
	if a.Err != nil {
		x.newFailed(a.Err)
		return
	}
	defer a.Lease.Release()
	result, _ := a.Msg.(agent.Reply)
	id, err := agentSessionID(result.Result)
	if err != nil {
		x.stopAgent()
		x.agentFailed(err)
		return
	}
	again := x.life.opened.Load()
	x.remember(result.Result)
	x.conv.phase, x.conv.id = alive, id
	x.out.known(id)
	if x.conv.entry {
		x.facade = facadeReport{state: facadeReady}
	}
	if x.opening != nil {
		x.opened(result.Result)
	} else if again {
		x.serversChanged()
		x.tellFresh()
	}
	x.arrived()
}

// methodAgent tells a client that the conversation went on with an agent that does not remember it.
const methodAgent = "_acpod/agent" // {sessionId, agent}

func (x *session) tellFresh() {
	if x.client != nil {
		x.notify(methodAgent, []byte(`,"agent":"fresh"}`)) // and again by the next resume: this may not arrive
	}
}

// newFailed tries once more without the facade's entry: some agents refuse a session, or hang, over an MCP server.
func (x *session) newFailed(err error) {
	var theirs *jsonrpc.Error
	retry := x.conv.entry && (asError(err, &theirs) || errors.Is(err, errNewTimeout))
	if !retry {
		x.stopAgent()
		x.agentFailed(err)
		return
	}
	x.revoke()
	x.facade = facadeReport{state: facadeFailed, reason: "the agent opened no session with the facade's entry: " + kernel.Escape(err.Error(), 200)}
	x.c.Log().Warn("agent refused the facade's entry", "session", acp.SessionTag(x.id), "err", err.Error())
	x.sendNew()
}

// agentFailed tells whoever waits for an agent that there is none.
func (x *session) agentFailed(err error) {
	x.c.Log().Warn("no agent", "session", acp.SessionTag(x.id), "err", err.Error())
	if x.opening != nil {
		x.failOpening(wireError(err))
		return
	}
	x.failForwards(wireError(err))
	x.advance(evNoAgent, reply{err: wireError(err)})
}

// stopAgent ends the process, its token first. The next prompt starts another.
func (x *session) stopAgent() {
	x.revoke()
	if x.conv.timeout != nil {
		x.conv.timeout()
	}
	if x.conv.ref.IsZero() || x.conv.phase == stopping {
		return
	}
	x.forgetAgent()
	x.conv = conversation{phase: stopping, ref: x.conv.ref, info: x.conv.info}
	x.c.Stop(x.conv.ref, errStopAgent)
}

var errStopAgent = fmt.Errorf("the session needs it no more: %w", kernel.ErrDone)

// forgetAgent notes that a conversation is lost.
func (x *session) forgetAgent() {
	if x.conv.id != "" {
		x.fresh = true
	}
	x.out.unknown()
	x.settleAsks(true)
}

// onExited is the end of a child.
func (x *session) onExited(m kernel.Exited) {
	switch {
	case m.Ref == x.desk:
		x.deskExited(m)
		return
	case m.Ref != x.conv.ref:
		x.tunnelExited(m)
		return
	}
	was := x.conv
	x.revoke()
	if was.timeout != nil {
		was.timeout()
	}
	x.forgetAgent()
	x.parted = parted{was.ref, was.id}
	x.conv = conversation{info: was.info}
	switch was.phase {
	case starting, newing:
		if was.phase == newing {
			x.c.Cancel(was.ticket)
		}
		x.freeSlot()
		x.agentFailed(m.Cause)
		return
	}
	if x.wanted() {
		x.wantAgent() // in the place that it still has
		return
	}
	x.freeSlot()
}

// credits opens what bounds the agent's reader, so that its last words are reached, or shuts it again, so that it waits for
// a client that reads slowly.
func (x *session) credits(open bool) {
	x.out.open = open
	switch c := x.conv.credits; {
	case c == nil:
	case open:
		c.Open()
	default:
		c.Shut()
	}
}

// agentSessionID reads the id that the agent gave its session.
func agentSessionID(result jsontext.Value) (string, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", errNoSession
	}
	id, err := o.Text("sessionId")
	if err != nil || id == "" || o.Unique("sessionId") != nil {
		return "", errNoSession
	}
	return id, nil
}
