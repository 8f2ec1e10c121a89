package session

import (
	"errors"
	"fmt"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// spawn starts the session of an admitted entry.
func (v *supervisor) spawn(e *entry, s slot) {
	rec := e.rec
	rec.life = &life{}
	if rec.kept.shelf != nil {
		rec.kept.shelf.life.Store(rec.life)
	}
	b := birth{id: rec.id, owner: rec.owner, life: rec.life, folders: e.folders, meta: keepMeta(v.c, e.params.Meta, v.s.cfg.ForwardMeta),
		slot: s, carried: rec.carried, known: rec.declared, pins: rec.pins,
		open: &opener{client: e.client, req: e.req, params: e.params, held: e.held, resume: e.back(), load: e.kind == kindLoad, fork: e.copies}}
	ref, err := v.spawnNamed(b)
	if err != nil {
		v.c.Log().Error("a session could not be started", "session", acp.SessionTag(rec.id), "err", err.Error())
		rec.life = nil
		v.places.free(rec)
		v.fail(e, jsonrpc.InternalError(jsonrpc.ReasonInternal, "the session could not be started: try again"))
		return
	}
	rec.slot, e.slot = e.slot, nil
	e.owed.Discharge()
	e.owed = nil // the session owes it from its first step on
	rec.ref, rec.under, rec.first = ref, nil, e
	rec.cwd, rec.additional, rec.updated = e.folders.Cwd, e.folders.Additional, v.now()
	rec.note(e.client.Rank())
	v.refs[ref] = rec
	v.next(rec)
}

// spawnNamed finds a free name: sess-<tag>, then sess-<tag>-2 and so on.
func (v *supervisor) spawnNamed(b birth) (kernel.Ref, error) {
	base := acp.TreeName(b.id)
	name := base
	for n := 2; ; n++ {
		ref, err := v.c.Spawn(v.s.spec(name, b))
		if !errors.Is(err, kernel.ErrTaken) || n > 100 {
			return ref, err
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}
