package session

import (
	"errors"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// noRecord is what a client is told of a record that the store does not give.
func (v *supervisor) noRecord(e *entry, err error) *jsonrpc.Error {
	var held *HeldError
	switch {
	case errors.Is(err, ErrNoRecord):
		return acp.UnknownSession(e.id)
	case errors.As(err, &held):
		return jsonrpc.InternalError(jsonrpc.ReasonInternal, held.Error())
	}
	v.c.Refuse("session_records")
	v.c.Log().Error("the record of a session", "session", acp.SessionTag(e.id), "err", err.Error())
	return jsonrpc.InternalError(jsonrpc.ReasonInternal, "the session's record cannot be read now: the pod's log says why")
}

// onKeep is a session's news of what outlives the pod.
func (v *supervisor) onKeep(m change, who *kernel.Question) {
	rec := v.records[m.id]
	if rec == nil || !rec.living() || rec.kept.then != stays {
		who.Fail(kernel.ErrStopped)
		return
	}
	rec.follows(m)
	rec.updated = v.now()
	v.write(rec, who)
}

// onDrop is a session that was closed.
func (v *supervisor) onDrop(m dropRecord) {
	rec, q := v.records[m.id], v.c.Question()
	if rec == nil {
		q.Answer(struct{}{}, nil)
		return
	}
	rec.kept.parted = append(rec.kept.parted, func(err error) {
		if err != nil {
			q.Fail(err)
			return
		}
		q.Answer(struct{}{}, nil)
	})
	v.part(rec, deleted)
}
