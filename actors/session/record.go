package session

import (
	"slices"
	"time"

	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// record is what the supervisor knows of one session that lives, or that a request is about just now. Of all others only the store knows.
type record struct {
	id         string
	owner      owner
	unread     bool // the store has not said yet whether there is such a session, and whose it is
	cwd        string
	additional []string
	declared   []string // every name that its clients declared
	pins       []byte
	created    time.Time // no two of a pod's life are the same: the order of session/list
	updated    time.Time

	ref   kernel.Ref // zero while it does not live
	life  *life      // of the living one
	place place
	slot  *admission.Slot // of the living one, and of its agent while it has a place
	agent *admission.Slot
	carried
	kept keeping

	ranks  []uint64 // connections that opened or resumed it, for session/list
	first  *entry   // what its present life was spawned for
	under  *entry   // a request that is being admitted
	behind []*entry // requests that came meanwhile, in order
}

// place is a record's part of max_sessions.
type place uint8

const (
	placeNone    place = iota
	placeWaiting       // for a session that is being suspended for it
	placeHeld
)

// maxRanks and maxBehind bound what one session may make its record hold.
const (
	maxRanks  = 16
	maxBehind = 16
)

func (r *record) living() bool { return !r.ref.IsZero() }

// closed tells whether it was closed and only its processes have not ended yet: for clients it is gone.
func (r *record) closed() bool { return r.life != nil && end(r.life.ending.Load()) == endClosed }

// status is the snapshot of a living session, and of one that has not begun.
func (r *record) status() status {
	if r.life != nil {
		if st := r.life.status.Load(); st != nil {
			return *st
		}
	}
	return status{busy: true, carried: r.carried}
}

// durable is what of it outlives the pod.
func (r *record) durable() Durable {
	st := r.status()
	return Durable{ID: r.id, Key: r.owner.key, Client: r.owner.secret, Agent: r.inner, Cwd: r.cwd, Additional: r.additional, Servers: r.declared, Pins: r.pins,
		LastTurn: st.lastTurn, Missed: st.missed, MissedB: st.missedB, Created: r.created, Updated: r.updated}
}

// read makes it the record that the store has.
func (r *record) read(d Durable) {
	r.unread = false
	r.owner = owner{key: d.Key, secret: d.Client}
	r.cwd, r.additional, r.declared, r.pins = d.Cwd, d.Additional, d.Servers, d.Pins
	r.created, r.updated = d.Created, d.Updated
	r.carried = carried{inner: d.Agent, lastTurn: d.LastTurn, missed: d.Missed, missedB: d.MissedB}
}

// follows takes over what its session says of itself.
func (r *record) follows(m change) {
	r.cwd, r.additional, r.declared, r.pins, r.inner = m.cwd, m.additional, m.declared, m.pins, m.inner
}

// note notes a connection that has, or asks for, the session.
func (r *record) note(rank uint64) {
	if slices.Contains(r.ranks, rank) {
		return
	}
	if len(r.ranks) == maxRanks {
		r.ranks = r.ranks[1:]
	}
	r.ranks = append(r.ranks, rank)
}

// kind is what a request on its way in asks for.
type kind uint8

const (
	kindNew kind = iota
	kindResume
	kindLoad
	kindFork
	kindDelete
)

// entry is one request on its way in.
type entry struct {
	kind    kind
	client  Client
	req     uint64
	params  *Params
	id      string // of the session that it is about, "" for session/new
	held    *kernel.Lease
	way     way
	rec     *record
	copies  string // the agent's id of the session that it forks
	owed    *kernel.Obligation
	slot    *admission.Slot // of the session that it opens, until that lives; nil for one that lives already
	folders Folders
	asked   kernel.Ref // the generation of a living session that it was given to last
	hands   int        // how often it was given to one
	late    bool       // it was answered before the store, or its folders, did
}

// back tells whether it brings a session back that there was.
func (e *entry) back() bool { return e.kind == kindResume || e.kind == kindLoad }
