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
	asked   question      // what opens it
	about   string        // the id that the question names
	tried   uint8         // questions that this process has refused for good
	entry   bool          // the question under way has the facade's entry
	quiet   bool          // what it says of what was said before is nobody's: it brings a conversation back and has had no prompt yet
	replay  Client        // who is shown all of it: a session/load is under way
	heard   time.Time     // of the replay
	ticket  kernel.Ticket // of that question, or of the claim for a place
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
	none      convPhase = iota
	claiming            // waits for its place among max_sessions
	preparing           // what it reads is being prepared
	starting            // the process runs, the handshake is under way
	newing              // the question that opens the conversation is under way
	alive
	stopping // the process is being ended
)

func (p convPhase) String() string {
	return [...]string{"none", "waiting for a place", "preparing", "starting", "opening", "alive", "stopping"}[p]
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
		x.prepareAgent()
	case slotNone:
		ticket, err := x.c.Request(x.c.Parent(), claimSlot{id: x.id})
		if err != nil {
			x.noPlace(err)
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
		x.noPlace(err)
		return
	}
	x.slot = slotHeld
	x.unpark(nil)
	if !x.wanted() { // the resume that it was for came to nothing
		x.conv = conversation{}
		x.freeSlot()
		return
	}
	x.prepareAgent()
}

func (x *session) noPlace(err error) {
	x.conv = conversation{}
	x.unpark(err)
	x.agentFailed(err)
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
	if err := x.reachable(m.Info); err != nil && x.token.text != "" {
		x.revoke()
		x.noTools(facadeFailed, err.Error())
	}
	x.askToOpen()
}

// recalling is what the next question is about.
func (x *session) recalling() recalling {
	r := recalling{id: x.inner, tried: x.conv.tried, replay: x.wantsReplay()}
	if x.open != nil && x.open.fork != "" && x.opening != nil {
		r.id, r.fork = x.open.fork, true
	}
	return r
}

// askToOpen asks the agent for its session, the one that it had where it can bring that back: with the facade's entry while there is a token.
func (x *session) askToOpen() {
	about := x.recalling()
	q := about.next(x.conv.info)
	servers := x.agentServers()
	x.conv.phase, x.conv.entry, x.conv.asked, x.conv.about = newing, servers != nil, q, about.id
	params := newForAgent(x.folders, servers, x.meta)
	if q != askNew {
		params, _ = acp.WithSessionID(params, about.id) // they are an object
	}
	x.conv.quiet, x.conv.replay = q == askResume || q == askLoad, nil
	if q == askLoad && about.replay {
		x.showReplay()
	} else if x.out.waived.open { // the agent refused to show it, or not all of it
		x.out.unshown()
	}
	ticket, err := x.c.Request(x.conv.ref, agent.Request{Method: q.method(), Params: params})
	if err != nil {
		x.stopAgent()
		x.agentFailed(err)
		return
	}
	x.conv.ticket, x.conv.heard = ticket, x.c.Now()
	x.conv.timeout = x.c.After(x.s.cfg.NewTimeout, newOverdue{})
}

func (x *session) onNewOverdue() {
	if x.conv.phase != newing {
		return
	}
	if left := x.conv.heard.Add(x.s.cfg.NewTimeout).Sub(x.c.Now()); left > 0 { // a long replay is no silence
		x.conv.timeout = x.c.After(left, newOverdue{})
		return
	}
	x.c.Cancel(x.conv.ticket)
	x.newFailed(&openError{x.conv.asked, errNewTimeout})
}

// onNew is the agent's answer to what opens its session.
func (x *session) onNew(a kernel.Answer) {
	x.conv.timeout()
	x.conv.ticket = kernel.Ticket{}
	if a.Err != nil {
		x.newFailed(a.Err)
		return
	}
	defer a.Lease.Release()
	result, _ := a.Msg.(agent.Reply)
	id, q := x.inner, x.conv.asked
	if q == askNew || q == askFork {
		var err error
		if id, err = agentSessionID(result.Result); err == nil && q == askFork && id == x.conv.about {
			err = errSameSession
		}
		if err != nil {
			err = &openError{q, err}
			x.stopAgent()
			x.agentFailed(err)
			return
		}
	}
	again := x.life.opened.Load()
	x.remember(result.Result)
	if (again || x.open != nil && x.open.resume) && x.conv.id == "" { // else it is the session's first agent, or the one that it had
		x.memory = x.memory.after(q)
	}
	if q == askNew && x.open != nil {
		x.open.shown = true // there is nothing to show
	}
	x.conv.phase, x.conv.id, x.inner = alive, id, id
	x.replayed()
	x.out.known(id)
	if x.token.text != "" {
		x.facade = facadeReport{state: facadeReady, reason: x.delivering.note}
	}
	switch {
	case x.loadWaits(): // for the end of the turn
	case x.wantsReplay() && !x.open.shown: // it came while the conversation was brought back for another
		x.loadNow()
		return
	case x.opening != nil:
		x.opened(result.Result)
	case again:
		x.serversChanged()
		x.tellMemory()
	}
	x.arrived()
}

// methodAgent tells a client that the conversation went on with another agent, which remembers it or does not.
const methodAgent = "_acpod/agent" // {sessionId, agent}

func (x *session) tellMemory() {
	if x.client != nil && x.memory != memoryAlive {
		x.notify(methodAgent, []byte(`,"agent":"`+x.memory.String()+`"}`)) // and again by the next resume: this may not arrive
	}
}

// newFailed asks something else where there is something else: an agent that has forgotten a conversation is asked for a new one, and one
// that refuses its session, or hangs, with the facade's entry in it is tried once without, as some do over an MCP server.
func (x *session) newFailed(err error) {
	if x.conv.id != "" { // the one that runs was asked to show it all again
		x.stopAgent()
		x.agentFailed(err)
		return
	}
	if q := x.conv.asked; (q == askResume || q == askLoad) && forGood(err) {
		x.c.Log().Warn("the agent does not bring the conversation back", "session", acp.SessionTag(x.id), "method", q.method(), "err", err.Error())
		x.conv.tried |= 1 << q
		if theirs, _ := errors.AsType[*jsonrpc.Error](err); theirs.Code != jsonrpc.MethodNotFound { // what it does not know by one way, it does not by another
			x.conv.tried |= 1<<askResume | 1<<askLoad
		}
		x.out.unknown()
		x.askToOpen()
		return
	}
	var theirs *jsonrpc.Error
	retry := x.conv.entry && (asError(err, &theirs) || errors.Is(err, errNewTimeout))
	if !retry {
		x.stopAgent()
		x.agentFailed(err)
		return
	}
	x.conv.tried = 0
	x.out.unknown()
	x.revoke()
	x.facade = facadeReport{state: facadeFailed, reason: "the agent opened no session with the facade's entry: " + kernel.Escape(err.Error(), 200)}
	x.c.Log().Warn("agent refused the facade's entry", "session", acp.SessionTag(x.id), "err", err.Error())
	x.askToOpen()
}

// agentFailed tells whoever waits for an agent that there is none.
func (x *session) agentFailed(err error) {
	x.c.Log().Warn("no agent", "session", acp.SessionTag(x.id), "err", err.Error())
	x.failForwards(wireError(err))
	if x.opening != nil {
		x.failOpening(wireError(err))
		return
	}
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

// forgetAgent puts away what only the process had. Its session's id is kept: the next one is asked to bring it back.
func (x *session) forgetAgent() {
	x.out.unknown()
	x.settleAsks(true)
}

// onExited is the end of a child.
func (x *session) onExited(m kernel.Exited) {
	switch {
	case m.Ref == x.desk:
		x.deskExited(m)
		return
	case m.Ref == x.delivering.proxy:
		x.proxyExited(m)
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

// maxInner bounds an agent's id of its session, which is kept in the session's record.
const maxInner = 4 << 10

// agentSessionID reads the id that the agent gave its session.
func agentSessionID(result jsontext.Value) (string, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", errNoSession
	}
	id, err := o.Text("sessionId")
	if err != nil || id == "" || len(id) > maxInner || o.Unique("sessionId") != nil {
		return "", errNoSession
	}
	return id, nil
}
