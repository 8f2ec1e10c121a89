package session

import (
	"time"

	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// record is what the supervisor knows of one session, living or suspended.
type record struct {
	id      string
	owner   owner
	seq     uint64 // order of opening
	cwd     string
	created time.Time
	updated time.Time

	ref   kernel.Ref // zero while it does not live
	life  *life      // of the living one
	place place
	slot  *admission.Slot // of the living one, and of its agent while it has a place
	agent *admission.Slot
	carried

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
	return status{busy: true}
}

// opened notes a connection that has, or asks for, the session.
func (r *record) note(rank uint64) {
	for _, known := range r.ranks {
		if known == rank {
			return
		}
	}
	if len(r.ranks) == maxRanks {
		r.ranks = r.ranks[1:]
	}
	r.ranks = append(r.ranks, rank)
}

// entry is one session/new or session/resume on its way in.
type entry struct {
	client  Client
	req     uint64
	params  *Params
	held    *kernel.Lease
	resume  bool
	way     way
	rec     *record
	owed    *kernel.Obligation
	slot    *admission.Slot // of the session that it opens, until that lives; nil for one that lives already
	folders Folders
}
