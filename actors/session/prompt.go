package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// prompt is what belongs to the turn that runs.
type prompt struct {
	params []byte // until the agent shows that it has it
	held   *kernel.Lease
	asker  *request // nil when nobody's request stands for the turn (any more)
	wire   *agent.Wire
	early  bool // it was sent right behind the end of another turn
	again  bool // it goes to a second agent
	ticket kernel.Ticket
	owed   *kernel.Obligation // the pod's count of turns
	heard  time.Time          // of the agent
	noise  int64              // of the agent, at the last look
	noisy  func() int64       // of the agent that has the prompt, also when it is gone
	quiet  func()             // takes the timer of agent.turn_idle_timeout back
	late   func()             // takes the timer of agent.cancel_timeout back
}

// reply is what the agent made of a prompt.
type reply struct {
	result []byte
	lease  *kernel.Lease
	err    *jsonrpc.Error
}

// onPrompt is session/prompt. Its place is taken in this very turn, so that a cancel in the next message finds it.
func (x *session) onPrompt(m Prompt) {
	refuse := func(bad *jsonrpc.Error) {
		m.Held.Release()
		m.Client.Respond(x.id, m.Req, nil, nil, bad)
	}
	if !x.isOwner(m.Client) {
		m.Held.Release()
		m.Client.Respond("", m.Req, nil, nil, acp.UnknownSession(x.id))
		return
	}
	waits := x.turn.phase != idle || len(x.queue) > 0
	switch {
	case x.s.draining.Load(): // before busy: waiting for the turn's end would be in vain
		refuse(jsonrpc.Draining(0))
		return
	case x.opening != nil || waits && len(x.queue) >= x.s.cfg.Queue:
		refuse(jsonrpc.BusyError())
		return
	case x.s.cfg.Driver == DriverNone:
		refuse(jsonrpc.InternalError(jsonrpc.ReasonNoAgent, "this pod runs no agent: agent.driver is none"))
		return
	}
	if bad := acp.CheckPrompt(m.Params, x.takes()); bad != nil {
		refuse(bad)
		return
	}
	if waits {
		x.enqueue(m)
		return
	}
	x.startTurn(m.Params, m.Held, x.asker(m))
}

// asker is who waits for the answer of a prompt.
func (x *session) asker(m Prompt) *request {
	r := x.owe(acp.MethodSessionPrompt, m.Client, m.Req)
	if x.client == nil { // it was sent just before its client went
		r.owed.Moot()
		return nil
	}
	return r
}

func (x *session) startTurn(params []byte, held *kernel.Lease, asker *request) {
	x.turn, _, _ = x.turn.step(evPrompt)
	x.prompt = prompt{params: params, held: held, asker: asker}
	s := x.s
	s.turns.Add(1)
	x.prompt.owed = x.c.Own("turn", func(context.Context, error) { s.turnEnded() })
	x.armTTL()
	if x.conv.phase == alive {
		x.sendPrompt()
	} else {
		x.wantAgent()
	}
}

// takes is which blocks the agent takes, as far as it is known.
func (x *session) takes() acp.PromptCapabilities {
	if x.conv.info != nil {
		return x.conv.info.Prompt
	}
	if known, _ := x.s.learned.Now(); known != nil {
		return known.Prompt
	}
	return acp.PromptCapabilities{}
}

func (x *session) sendPrompt() {
	x.prompt.wire = new(agent.Wire)
	params, err := acp.WithSessionID(x.prompt.params, x.conv.id)
	if err == nil {
		x.prompt.ticket, err = x.c.Request(x.conv.ref, agent.Request{Method: acp.MethodSessionPrompt, Params: params, Held: x.prompt.held, Wire: x.prompt.wire})
	}
	switch {
	case errors.Is(err, kernel.ErrStopped): // it has just died, the news is on its way: the prompt waits for the next one
		held, full := x.c.Account().Acquire(int64(len(x.prompt.params))) // its lease ended with the message
		if full != nil {
			x.prompt.params, x.prompt.held = nil, nil
			x.advance(evNoAgent, reply{err: wireError(full)})
			return
		}
		x.prompt.held = held
		x.stopAgent()
		return
	case err != nil:
		x.prompt.params, x.prompt.held = nil, nil
		x.advance(evNoAgent, reply{err: wireError(err)})
		return
	}
	x.prompt.held = nil
	x.prompt.noisy, x.prompt.early = x.conv.noise, x.c.Now().Sub(x.conv.turned) <= leavesWithin
	if x.prompt.again || x.conv.noise == nil || !x.keepPrompt() {
		x.prompt.params = nil
	}
	x.conv.quiet = false
	x.advance(evSent, reply{})
	x.credits(x.client == nil)
	x.prompt.heard, x.prompt.noise = x.c.Now(), x.conv.noisy()
	x.prompt.quiet = x.c.After(x.s.cfg.TurnIdleTimeout, silent{})
}

// leavesWithin is how long after the end of a turn a process may be about to leave, with its last word already said. A prompt
// that it gets then, and of which nothing is heard before it is gone, did not reach it. Later than that its end may be what the
// prompt did, and so may a crash at any time: what a prompt has done is never done twice.
const leavesWithin = time.Second

// goneWithin is how long after it got such a prompt a process that was leaving has ended: real agents take up to three seconds for it.
const goneWithin = 3 * time.Second

// keepPrompt pays for the prompt once more, until the agent shows life.
func (x *session) keepPrompt() bool {
	held, err := x.c.Account().Acquire(int64(len(x.prompt.params)))
	x.prompt.held = held
	return err == nil
}

// unheard tells whether the agent left by itself without having heard of the prompt, as far as that shows.
func (x *session) unheard(err error) bool {
	var exited *agent.Exited
	at := x.prompt.early && x.c.Now().Sub(x.prompt.heard) <= goneWithin // it was leaving: nothing was heard of it since it got the prompt
	left := errors.Is(err, agent.ErrClosed) || at && asError(err, &exited) && exited.Reason == "" && exited.Code == 0 && exited.Signal == 0
	return left && x.prompt.params != nil && x.turn.phase == running && x.prompt.noise == x.prompt.noisy()
}

// onPromptAnswer is the agent's answer, after every update that it wrote before.
func (x *session) onPromptAnswer(a kernel.Answer) {
	x.prompt.ticket = kernel.Ticket{}
	if a.Err == nil {
		m, _ := a.Msg.(agent.Reply)
		r := reply{result: m.Result, lease: a.Lease}
		if _, ok := stopReason(m.Result); !ok {
			a.Lease.Release()
			x.c.Refuse("malformed_answer")
			r = reply{err: wireError(errNoReason)}
		}
		x.advance(evAnswer, r)
		return
	}
	e := evExited
	var theirs *jsonrpc.Error
	var long *agent.LineTooLong
	var full *kernel.Overloaded
	if asError(a.Err, &theirs) || asError(a.Err, &long) || asError(a.Err, &full) {
		e = evAnswer
	}
	if e == evExited && x.unheard(a.Err) {
		e, x.prompt.again = evUnheard, true
		x.prompt.quiet()
	}
	if e != evAnswer && x.conv.phase == alive {
		x.stopAgent() // it is gone, the news is on its way: a prompt until then waits for the next one
	}
	x.advance(e, reply{err: wireError(a.Err)})
	if x.turn.phase == waiting {
		x.wantAgent() // unless its end has still to come
	}
}

func (x *session) onCancel(m Cancel) {
	if !x.isOwner(m.Client) {
		return
	}
	if m.Req != 0 && (x.prompt.asker == nil || x.prompt.asker.req != m.Req) { // else it is answered already
		if !x.cancelQueued(m.Req) {
			x.cancelForward(m.Req)
		}
		return
	}
	if m.Req == 0 {
		x.cancelQueued(0) // the prompt in the frame before may be one of those
	}
	if x.turn.phase == idle { // what an agent calls between two turns ends as well, and what is called where there is no agent
		x.endCalls(capability.EndCancel)
	}
	x.advance(evCancel, reply{})
}

// advance takes the turn one step and does what the step says.
func (x *session) advance(e event, r reply) {
	next, out, do := x.turn.step(e)
	was := x.turn.phase
	x.turn = next
	if do&tellAgent != 0 {
		x.cancelAgent()
	}
	if out != unsettled {
		x.settle(out, r)
	} else {
		r.lease.Release()
	}
	if do&disarmed != 0 {
		x.finishTurn()
	}
	if do&stopAgent != 0 {
		x.c.Log().Warn("agent did not end its turn within agent.cancel_timeout, it is stopped", "session", acp.SessionTag(x.id))
		x.stopAgent()
	}
	if was != idle && next.phase == idle {
		x.armTTL()
		if x.loading() && e != evEnd {
			x.loadNow()
		}
	}
}

// cancelAgent tells the agent, and all that it started, that the turn is over.
func (x *session) cancelAgent() {
	x.sendCancel()
	x.credits(true)
	x.endCalls(capability.EndCancel)
	x.settleAsks(false)
	x.prompt.late = x.c.After(x.s.cfg.CancelTimeout, overdue{})
}

func (x *session) sendCancel() {
	n := acp.SessionCancel(x.conv.id)
	_ = x.c.Tell(x.conv.ref, agent.Notify{Method: n.Method, Params: n.Params}) // an agent that cannot take it is stopped when cancel_timeout is over
}

func (x *session) endCalls(why capability.EndReason) {
	_ = x.desk.Signal(capability.EndCalls{Reason: why}) // a desk that is gone has ended them
}

// fated notes how the turn ended, for last_turn.
func (x *session) fated(r reply) (fate []byte) {
	fate = turnFate(r)
	x.lastTurn = append(append([]byte{'{'}, fate...), '}')
	return fate
}

var cancelledResult = []byte(`{"stopReason":"cancelled"}`)

// settle gives the turn its one outcome.
func (x *session) settle(out outcome, r reply) {
	switch out {
	case cancelled:
		if reason, _ := stopReason(r.result); reason != acp.StopCancelled {
			r.lease.Release()
			r = reply{result: cancelledResult}
		}
		r.err = nil
	case idleError:
		r.lease.Release()
		r = reply{err: jsonrpc.InternalError(jsonrpc.ReasonIdle, "the agent said nothing for agent.turn_idle_timeout: the turn was cancelled")}
	case exitedError:
		if r.err == nil {
			r.err = jsonrpc.InternalError(jsonrpc.ReasonAgentExited, "the agent is gone: the next prompt starts another")
		}
	}
	fate := x.fated(r)
	asker := x.prompt.asker
	x.prompt.asker = nil
	if asker != nil {
		x.answer(asker, r.result, r.lease, r.err)
		return
	}
	r.lease.Release()
	x.push(methodFrame(acp.MethodTurnEnded, x.id, append([]byte{','}, append(fate, '}')...)), pinned)
}

// finishTurn puts away what a turn has left.
func (x *session) finishTurn() {
	p := x.prompt
	x.prompt = prompt{}
	p.held.Release()
	for _, cancel := range []func(){p.quiet, p.late} {
		if cancel != nil {
			cancel()
		}
	}
	if !p.ticket.IsZero() {
		x.c.Cancel(p.ticket)
	}
	if p.owed.Discharge() {
		x.s.turnEnded()
	}
	x.endCalls(capability.EndTurn)
	x.settleAsks(false)
	x.credits(x.client == nil)
	x.tools.clear()
	x.conv.turned = x.c.Now()
	x.since, x.idleFor = x.c.Now(), x.c.Now()
}

// standstill is how late the look at a silent agent comes when it says more about the pod, or the machine, than about the agent.
const standstill = time.Second

// onSilent looks whether the agent was really silent: an open tool call or question speaks for it, and so does a line that
// says nothing.
func (x *session) onSilent() {
	if x.turn.phase != running {
		return
	}
	now := x.c.Now()
	noise := x.conv.noisy()
	if noise != x.prompt.noise || x.tools.open(now, x.s.cfg.CallMax) || len(x.asks) > 0 {
		x.prompt.heard, x.prompt.noise = now, noise
	}
	left := x.prompt.heard.Add(x.s.cfg.TurnIdleTimeout).Sub(now)
	if left < -standstill { // it was the pod that stood still: what the agent wrote meanwhile is still in its pipe
		x.prompt.heard, left = now, x.s.cfg.TurnIdleTimeout
	}
	if left > 0 {
		x.prompt.quiet = x.c.After(left, silent{})
		return
	}
	x.prompt.quiet = nil
	x.advance(evSilent, reply{})
}

// touch notes that the agent, or a tool call of its, showed life.
func (x *session) touch() {
	x.prompt.heard = x.c.Now()
	if x.turn.phase == running && x.prompt.params != nil {
		x.prompt.held.Release()
		x.prompt.params, x.prompt.held = nil, nil
	}
}

// onInFlight is the desk's news of calls. One that was on its way when its agent was taken for one that had heard nothing says
// otherwise: the prompt had an effect, and is given to nobody else.
func (x *session) onInFlight(m capability.InFlight) {
	x.tools.facade(m.Open)
	x.touch()
	if m.Open && x.turn.phase == waiting && x.prompt.again {
		x.advance(evExited, reply{})
	}
}

// stopReason reads the reason of a prompt's result; false when there is none, or one that is no text.
func stopReason(result []byte) (string, bool) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", false
	}
	raw, _ := o.Get("stopReason")
	return jsonrpc.String(raw)
}

// maxFate bounds what last_turn keeps of an agent's error.
const maxFate = 4 << 10

// turnFate is the member that tells how a turn ended: "stopReason":… or "error":….
func turnFate(r reply) []byte {
	if r.err == nil {
		reason, _ := stopReason(r.result)
		return jsonrpc.AppendString([]byte(`"stopReason":`), reason)
	}
	object := r.err.AppendObject(nil)
	if len(object) > maxFate {
		short := jsonrpc.Error{Code: r.err.Code, Message: kernel.Escape(r.err.Message, 200)}
		object = short.AppendObject(nil)
	}
	return append([]byte(`"error":`), bytes.Clone(object)...)
}
