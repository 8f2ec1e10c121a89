package session

import (
	"errors"
	"slices"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// places is max_sessions: who holds a place, who gets the place of a session that is being suspended, and in which order. It
// belongs to the supervisor. A place is taken before any work starts, and is free again only when the process in it has
// ended, so there are never more agents than places.
type places struct {
	sup     *supervisor
	waiting []wish
	asked   map[kernel.Ticket]suspension
}

// wish is somebody who wants a place: a request on its way in, or a living session whose agent is to start again.
type wish struct {
	rec      *record
	entry    *entry           // nil for a living session
	question *kernel.Question // of a living session
	spawned  bool             // the entry's session lives already and waits
	from     *record          // whose place it waits for: one that is ending and has none of its own to give to another
}

// suspension is a session that was asked to give its place up for a wish.
type suspension struct {
	of   *record
	wish wish
}

// want gives the wish a place: a free one now, or that of the session that is suspended for it, or none.
func (p *places) want(w wish) {
	if len(p.waiting) == 0 {
		if slot := p.take(); slot != nil {
			p.give(w, slot)
			return
		}
	}
	p.suspendFor(w)
}

// take claims a free place; nil when there is none, which is no refusal yet: somebody may be suspended.
func (p *places) take() *admission.Slot {
	claims := p.sup.s.gate.claims(wayAgent, "")
	if !p.sup.s.gate.desk.Fits(claims...) {
		return nil
	}
	slot, err := p.sup.slots.Admit(claims...)
	if err != nil {
		return nil
	}
	return slot
}

func (p *places) give(w wish, slot *admission.Slot) {
	if w.question != nil && !w.question.Answer(struct{}{}, nil) { // who asked has ended while another was asked to yield, and gives nothing back
		slot.Release()
		p.serve()
		return
	}
	w.rec.place, w.rec.agent = placeHeld, slot
	switch {
	case w.spawned:
		_ = w.rec.ref.Signal(slotGranted{}) // a session that has ended gives its place back by its exit
	case w.question != nil:
	default:
		p.sup.spawn(w.entry, slotHeld)
	}
}

// suspendFor asks the session that yields first; its answer comes to onAnswer.
func (p *places) suspendFor(w wish) {
	id, ok := victim(p.candidates(w.rec))
	if !ok {
		p.deny(w)
		return
	}
	rec := p.sup.records[id]
	ticket, err := p.sup.c.Request(rec.ref, suspend{})
	switch {
	case err == nil:
		if p.asked == nil {
			p.asked = make(map[kernel.Ticket]suspension)
		}
		p.asked[ticket] = suspension{of: rec, wish: w}
	case errors.Is(err, kernel.ErrStopped): // it is ending already: its place is free in a moment
		p.wait(w, rec)
	default:
		p.deny(w)
	}
}

func (p *places) candidates(not *record) []candidate {
	var list []candidate
	going := make(map[*record]bool, len(p.asked))
	for _, s := range p.asked {
		going[s.of] = true
	}
	for _, w := range p.waiting {
		going[w.from] = true
	}
	for _, rec := range p.sup.refs {
		if rec.place != placeHeld {
			continue
		}
		st := rec.status()
		list = append(list, candidate{id: rec.id, key: rec.owner.key, idleSince: st.idleSince, clientless: st.client == nil,
			busy: st.busy || going[rec] || rec == not || rec.under != nil})
	}
	return list
}

// onAnswer is what a session that was asked to yield says. One that turned out busy is passed over for the next.
func (p *places) onAnswer(a kernel.Answer) {
	a.Lease.Release()
	s, ok := p.asked[a.Ticket]
	if !ok {
		return
	}
	delete(p.asked, a.Ticket)
	if errors.Is(a.Err, errBusy) || s.of.place != placeHeld { // or its exit came first, and the place may be taken again
		p.want(s.wish)
		return
	}
	p.wait(s.wish, s.of) // it stops: its exit frees the place
}

// wait lets the wish stand in line for a place that is being freed; a request's session is spawned meanwhile.
func (p *places) wait(w wish, from *record) {
	w.from = from
	if w.entry != nil {
		w.spawned = true
		w.rec.place = placeWaiting
		p.waiting = append(p.waiting, w)
		p.sup.spawn(w.entry, slotPending)
		return
	}
	p.waiting = append(p.waiting, w)
}

// free takes a record's place back, or its wish for one, and serves who waits.
func (p *places) free(rec *record) {
	p.waiting = slices.DeleteFunc(p.waiting, func(w wish) bool { return w.rec == rec })
	if i := slices.IndexFunc(p.waiting, func(w wish) bool { return w.from == rec }); i > 0 { // the longest waiting goes first; the other gets what it waited for
		p.waiting[i].from, p.waiting[0].from = p.waiting[0].from, p.waiting[i].from
	}
	rec.agent.Release()
	rec.place, rec.agent = placeNone, nil
	p.serve()
}

// serve gives free places to those who wait, the longest waiting first.
func (p *places) serve() {
	for len(p.waiting) > 0 {
		slot := p.take()
		if slot == nil {
			return
		}
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.give(w, slot)
	}
}

// deny says that every agent is busy.
func (p *places) deny(w wish) {
	slot, err := p.sup.slots.Admit(p.sup.s.gate.claims(wayAgent, "")...)
	if err == nil { // one became free at this very moment
		p.give(w, slot)
		return
	}
	bad := p.sup.full(err)
	p.sup.c.Log().Info("all agents are busy", "session", acp.SessionTag(w.rec.id))
	if w.question != nil {
		w.question.Fail(bad)
		return
	}
	p.sup.fail(w.entry, bad)
}

// onClaim is a living session that wants to start an agent again.
func (v *supervisor) onClaim(m claimSlot) {
	rec, q := v.records[m.id], v.c.Question()
	switch {
	case rec == nil:
		q.Fail(kernel.ErrStopped)
	case rec.place == placeHeld:
		q.Answer(struct{}{}, nil)
	default:
		v.places.want(wish{rec: rec, question: q})
	}
}
