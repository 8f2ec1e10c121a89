package session

import (
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// maxSuspended bounds the records of suspended sessions; each is a few hundred bytes. The oldest go first.
const maxSuspended = 50_000

// onExited is the end of a session's generation.
func (v *supervisor) onExited(m kernel.Exited) {
	rec := v.refs[m.Ref]
	if rec == nil {
		return
	}
	delete(v.refs, m.Ref)
	if !m.Next.IsZero() { // it crashed and comes back, without its client
		rec.ref = m.Next
		v.refs[m.Next] = rec
		v.places.free(rec)
		return
	}
	how := end(rec.life.ending.Load())
	if !rec.life.started.Load() { // it was stopped before it could answer
		v.refuse(rec.first, ended(m.Cause))
	}
	rec.carried = rec.status().carried
	rec.updated = v.c.Now()
	rec.ref, rec.life = kernel.Ref{}, nil
	rec.slot.Release()
	rec.slot = nil
	if how == endSuspended {
		v.asleep++
		v.limitAsleep()
	} else {
		delete(v.records, rec.id)
	}
	v.places.free(rec)
	v.next(rec)
}

// next lets the request in that waited behind the one before.
func (v *supervisor) next(rec *record) {
	if rec.under != nil || len(rec.behind) == 0 || v.leaving(rec) {
		return
	}
	e := rec.behind[0]
	rec.behind = rec.behind[1:]
	if v.records[rec.id] != rec {
		v.refuse(e, acp.UnknownSession(rec.id))
		v.next(rec)
		return
	}
	v.resume(e)
	v.next(rec)
}

func (v *supervisor) sweepEvery() time.Duration { return min(v.s.cfg.Retention, 10*time.Minute) }

// forgetOld forgets the records whose retention is over.
func (v *supervisor) forgetOld() {
	before := v.c.Now().Add(-v.s.cfg.Retention)
	for id, rec := range v.records {
		if !rec.living() && rec.under == nil && rec.updated.Before(before) {
			delete(v.records, id)
			v.asleep--
		}
	}
}

func (v *supervisor) limitAsleep() {
	if v.asleep <= maxSuspended {
		return
	}
	var oldest *record
	for _, rec := range v.records {
		if !rec.living() && rec.under == nil && (oldest == nil || rec.updated.Before(oldest.updated)) {
			oldest = rec
		}
	}
	if oldest != nil {
		delete(v.records, oldest.id)
		v.asleep--
		v.c.Refuse("suspended_records")
	}
}
