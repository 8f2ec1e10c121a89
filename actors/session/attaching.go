package session

import (
	"errors"

	"github.com/acpod/acpod/runtime/kernel"
)

// attach hands the resume of a living session to it.
func (v *supervisor) attach(e *entry) {
	m := attach{client: e.client, req: e.req, params: e.params, folders: e.folders, held: e.held, load: e.kind == kindLoad}
	e.held = nil // the message brings it
	v.hand(e, m)
}

// maxHands is how many generations of a session a request is given to, each after the one before has ended with it: it may be the request that they
// do not survive.
const maxHands = 3

// hand gives a request to its living session, which answers it.
func (v *supervisor) hand(e *entry, m kernel.Msg) {
	if e.hands == maxHands {
		if held, ok := m.(kernel.Leased); ok {
			held.Lease().Release()
		}
		v.fail(e, ended(nil))
		return
	}
	e.asked, e.hands = e.rec.ref, e.hands+1
	ticket, err := v.c.Request(e.rec.ref, m)
	var full *kernel.Overloaded
	switch {
	case err == nil:
		v.attaching[ticket] = e
	case errors.As(err, &full):
		v.fail(e, overloaded(full))
	default:
		v.again(e)
	}
}

// again lets a request wait for the end of the session that it found ending.
func (v *supervisor) again(e *entry) {
	rec := e.rec
	rec.under = nil
	e.slot.Release()
	e.slot = nil
	rec.behind = append([]*entry{e}, rec.behind...)
	switch {
	case rec.living():
		if rec.ref != e.asked { // it crashed in it, and another generation is there already; else the news of that is on its way
			v.next(rec)
		}
	case rec.kept.then != stays:
		v.work(rec)
	default:
		v.next(rec)
	}
}

// onAnswer is an answer of a session: to a resume, or to the wish for its place.
func (v *supervisor) onAnswer(a kernel.Answer) {
	e, ok := v.attaching[a.Ticket]
	if !ok {
		v.places.onAnswer(a)
		return
	}
	delete(v.attaching, a.Ticket)
	a.Lease.Release()
	if a.Err != nil {
		v.again(e)
		return
	}
	e.owed.Discharge()
	rec := e.rec
	rec.under = nil
	if granted, _ := a.Msg.(attached); bool(granted) && e.back() { // a refused one leaves no trace, and a delete names no folder
		rec.note(e.client.Rank())
		rec.cwd, rec.updated = e.folders.Cwd, v.now()
	}
	v.next(rec)
}
