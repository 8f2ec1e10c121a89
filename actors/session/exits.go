package session

import (
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// Bounds of the records of suspended sessions, in number and in what they hold together (Config.RecordsBytes may say less). The oldest go
// first. An ordinary record is a little more than RecordBytes.
const (
	maxSuspended = 50_000
	RecordsBytes = 64 << 20
)

// RecordBytes is what a record holds beside its texts: itself, its id, 16 ranks, its places in maps.
const RecordBytes = 3 << 10

// size is what a suspended record holds. It does not change while it sleeps.
func (r *record) size() int64 { return int64(RecordBytes + len(r.cwd) + len(r.lastTurn)) }

// sleeps and wakes keep the count of suspended records.
func (v *supervisor) sleeps(rec *record) {
	v.asleep++
	v.asleepBytes += rec.size()
}

func (v *supervisor) wakes(rec *record) {
	v.asleep--
	v.asleepBytes -= rec.size()
}

// onExited is the end of a session's generation.
func (v *supervisor) onExited(m kernel.Exited) {
	rec := v.refs[m.Ref]
	if rec == nil {
		v.errandExited(m.Ref)
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
		rec.first = nil // it keeps the request that opened it
		v.sleeps(rec)
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
			v.wakes(rec)
		}
	}
}

func (v *supervisor) limitAsleep() {
	for v.asleep > maxSuspended || v.asleepBytes > v.s.cfg.RecordsBytes {
		var oldest *record
		for _, rec := range v.records {
			if !rec.living() && rec.under == nil && (oldest == nil || rec.updated.Before(oldest.updated)) {
				oldest = rec
			}
		}
		if oldest == nil {
			return
		}
		delete(v.records, oldest.id)
		v.wakes(oldest)
		v.c.Refuse("suspended_records")
	}
}
