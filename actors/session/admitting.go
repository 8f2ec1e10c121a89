package session

import (
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// parked is a resume that waits for the place of the agent which it needs: a session that has none gets one for who comes back. Until it
// has that, nothing of the session is touched.
type parked struct {
	attach
	question *kernel.Question
}

// onAttach is a resume, or load, of this living session. A refused one changes nothing.
func (x *session) onAttach(m attach) {
	p := &parked{m, x.c.Question()}
	if x.removal.request != nil { // what follows its end decides
		p.held.Release()
		p.question.Fail(kernel.ErrStopped)
		return
	}
	if bad := x.judge(m.client); bad != nil {
		x.turnAway(p, bad)
		return
	}
	if x.conv.phase == none && x.slot == slotNone && x.s.cfg.Driver != DriverNone {
		x.parked = p
		x.wantAgent()
		return
	}
	x.admit(p)
}

// judge tells whether that client may have the session; nil = yes.
func (x *session) judge(client Client) *jsonrpc.Error {
	asked := claim{rank: client.Rank(), turn: x.busy()}
	if x.client != nil && !gone(x.client) {
		asked.held, asked.same, asked.other = true, x.client == client, x.client.Rank()
	}
	switch judge(asked) {
	case busy:
		return jsonrpc.BusyError()
	case superseded:
		return jsonrpc.SupersededError()
	case grant:
	}
	return nil
}

// turnAway refuses a resume.
func (x *session) turnAway(p *parked, bad *jsonrpc.Error) {
	p.held.Release()
	p.client.Respond("", p.req, nil, nil, bad)
	p.question.Answer(attached(false), nil)
}

// unpark goes on with a resume whose place is there, or is not to be had.
func (x *session) unpark(err error) {
	p := x.parked
	if x.parked = nil; p == nil {
		return
	}
	bad := x.judge(p.client)
	if err != nil {
		bad = wireError(err)
	}
	if bad != nil {
		x.turnAway(p, bad)
		return
	}
	x.admit(p)
}

// leaveParked is the end of the session: the supervisor asks again what comes after it.
func (x *session) leaveParked() {
	if p := x.parked; p != nil {
		x.parked = nil
		p.held.Release()
		p.question.Fail(kernel.ErrStopped)
	}
}

// admit gives the session to the client of a resume.
func (x *session) admit(p *parked) {
	m := p.attach
	declared, err := x.afford(m.params)
	if err != nil {
		x.turnAway(p, wireError(err))
		return
	}
	m.held.Release()
	same := x.client == m.client
	x.out.resolve(true)
	if !same {
		x.takeOver()
		x.own(m.client)
		x.publish() // before the answer: who has read that finds the session in its list
	}
	names := len(x.declared)
	changed := !x.folders.same(m.folders)
	x.folders, x.meta = m.folders, keepMeta(x.c, m.params.Meta, x.s.cfg.ForwardMeta)
	x.declare(m.client, declared, same)
	changed = changed || len(x.declared) != names
	if !x.owned.Owed() { // this generation was abandoned: who asked it asks the next one, as after a crash until here
		return
	}
	open := &opener{client: m.client, resume: true, load: m.load}
	r := x.owe(open.method(), m.client, m.req)
	p.question.Answer(attached(true), nil) // from here on the answer is ours, not the supervisor's
	alive := x.conv.phase == alive || x.s.cfg.Driver == DriverNone
	if same && alive && !m.load && x.opening == nil { // the client has the session, and goes on with it meanwhile
		x.open = open
		if x.again = append(x.again, r); changed {
			x.keep()
		} else if x.keeping.IsZero() {
			x.answerAgain()
		}
		return
	}
	if former := x.opening; former != nil { // of somebody who has lost it: this request takes its place
		former.owed.Moot()
	}
	x.opening, x.open = r, open
	x.out.held, x.out.client = true, m.client
	switch p := x.conv.phase; {
	case !x.keeping.IsZero(), p == claiming, p == preparing, p == starting, p == newing: // what is under way has an answer for it in the end
	case x.loadWaits():
		x.askAgain()
	case m.load:
		x.loadNow()
	case !alive:
		x.wantAgent()
	case changed:
		x.keep()
	default:
		x.answerOpening()
	}
}

// answerAgain answers the resumes of a client that had the session all the time.
func (x *session) answerAgain() {
	list := x.again
	x.again = nil
	for _, r := range list {
		body, _ := x.openResult() // an empty object takes members
		x.answer(r, body, nil, nil)
	}
}

// leaveAgain is the loss of that client: it is told when another one has taken the session.
func (x *session) leaveAgain(taken bool) {
	list := x.again
	x.again = nil
	for _, r := range list {
		if taken {
			r.give(x.id, nil, nil, jsonrpc.SupersededError())
		} else {
			r.owed.Moot()
		}
	}
}
