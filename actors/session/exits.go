package session

import (
	"context"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

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
		v.next(rec)
		return
	}
	how, opened := end(rec.life.ending.Load()), rec.life.opened.Load()
	if !rec.life.started.Load() { // it was stopped before it could answer
		v.refuse(rec.first, ended(m.Cause))
	}
	was := rec.first.back()
	rec.carried = rec.status().carried
	rec.updated = v.now()
	rec.ref, rec.life, rec.first = kernel.Ref{}, nil, nil // first keeps the request that opened it
	rec.slot.Release()
	rec.slot = nil
	v.places.free(rec)
	switch {
	case how == endClosed, how == endUnknown && !opened && !was:
		v.part(rec, deleted)
	default: // it sleeps, and one that went down by a fault of ours is found again as well
		v.part(rec, released)
	}
}

// next lets the request in that waited behind the one before.
func (v *supervisor) next(rec *record) {
	for rec.under == nil && len(rec.behind) > 0 && !v.leaving(rec) {
		e := rec.behind[0]
		rec.behind = rec.behind[1:]
		v.enter(e)
	}
}

func (v *supervisor) sweepEvery() time.Duration { return min(v.s.cfg.Retention, 10*time.Minute) }

// forgetOld has the store forget the records whose retention is over.
func (v *supervisor) forgetOld() {
	before, store := v.c.Now().Add(-v.s.cfg.Retention), v.s.cfg.Store
	for id, d := range v.dozing {
		if d.updated.Before(before) {
			delete(v.dozing, id)
		}
	}
	if v.sweeping { // the one before hangs
		return
	}
	v.sweeping = true
	v.c.Go("sweep", func(ctx context.Context) kernel.Msg {
		ctx, cancel := context.WithTimeout(ctx, storeWait)
		defer cancel()
		_, err := store.Sweep(ctx, before)
		return swept{err}
	})
}
