package session

import (
	"context"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// take asks the store for the record of a session that does not live here.
func (v *supervisor) take(e *entry) {
	id, store, sh := e.id, v.s.cfg.Store, v.shelve(false)
	v.begun(e.rec)
	v.c.Go("record", func(ctx context.Context) kernel.Msg {
		ctx, cancel := context.WithTimeout(ctx, storeWait)
		defer cancel()
		m := taken{entry: e, shelf: sh}
		var lease Lease
		if m.d, lease, m.err = store.Take(ctx, id); m.err == nil {
			sh.durable.Store(&m.d)
			sh.lease.Store(&lease)
		}
		return m
	})
}

func (v *supervisor) onTaken(m taken) {
	e := m.entry
	rec := e.rec
	v.ended(rec)
	if e.late { // nobody waits for it any more: what was taken is let go of
		if m.err != nil {
			m.shelf.owed.Discharge()
			v.away(rec, m.err)
			return
		}
		rec.read(m.d)
		v.ours(rec, m.shelf)
		v.part(rec, released)
		return
	}
	if m.err != nil {
		m.shelf.owed.Discharge()
		rec.under = nil
		v.refuse(e, v.noRecord(e, m.err))
		v.away(rec, m.err)
		return
	}
	rec.read(m.d)
	v.ours(rec, m.shelf)
	delete(v.dozing, rec.id)
	switch {
	case !rec.owner.admits(e.client.Key(), e.client.Secret()):
		v.fail(e, acp.UnknownSession(rec.id))
	case e.kind == kindFork:
		rec.under = nil
		inner := rec.inner
		v.part(rec, released)
		v.fork(e, inner)
	case e.kind == kindDelete:
		v.deleteAsleep(e)
	default:
		v.check(e)
	}
}
