package session

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// keeping is the store's side of one record: one operation at a time, in order, and of what changes meanwhile only the latest word.
type keeping struct {
	shelf  *shelf // nil = the store has no record that is ours
	under  bool   // an operation is under way
	hangs  bool   // … and does not end
	late   func() // takes the look at that back
	dirty  bool   // there is something new since the last one began
	then   parting
	failed error              // the record could not be deleted
	parted []func(error)      // wait for the parting
	next   []*kernel.Question // wait for what is dirty
	now    []*kernel.Question // wait for the operation under way
}

// parting is how a record goes.
type parting uint8

const (
	stays    parting = iota
	released         // the session sleeps
	deleted          // it is gone for good
)

// shelf is a record that is ours, for whoever lets go of it when this generation of the supervisor has ended.
type shelf struct {
	lease   atomic.Pointer[Lease] // nil = it is not ours, or not yet
	new     bool                  // nobody knew the session before
	owed    *kernel.Obligation
	durable atomic.Pointer[Durable]
	life    atomic.Pointer[life] // of the living one
}

// storeWait bounds one operation of the store. A disk that is slower than that is told as an error.
const storeWait = 30 * time.Second

// operation is what is done to a record.
type operation uint8

const (
	opCreate operation = iota
	opPut
	opRelease
	opDelete
)

// Messages of the supervisor to itself about the store.
type (
	stored struct { // the end of an operation
		rec   *record
		op    operation
		shelf *shelf
		err   error
	}
	taken struct { // a record that was asked for
		entry *entry
		d     Durable
		shelf *shelf
		err   error
	}
	renew   struct{}
	renewed struct{ err error }
	swept   struct{ err error }
)

// dropRecord is asked of the supervisor by a session that its client closed: the answer says that its record is gone.
type dropRecord struct{ id string }

// leaseLost tells a session that somebody else has its record.
type leaseLost struct{}

var errMoved = errors.New("it lives in another pod now: its record was taken over")

// write has the store keep what is new. Who waits is answered when it is written.
func (v *supervisor) write(rec *record, who *kernel.Question) {
	if who != nil {
		rec.kept.next = append(rec.kept.next, who)
	}
	rec.kept.dirty = true
	v.work(rec)
}

// part lets the record go, after what is under way.
func (v *supervisor) part(rec *record, how parting) {
	rec.kept.then = max(rec.kept.then, how)
	v.work(rec)
}

// work begins the next operation of a record, or finds that there is none.
func (v *supervisor) work(rec *record) {
	k := &rec.kept
	switch {
	case k.under:
		v.letDown(rec)
	case k.then != stays && k.shelf == nil:
		v.away(rec, nil)
	case k.then == deleted:
		v.operate(rec, opDelete)
	case k.then == released:
		v.operate(rec, opRelease)
	case k.dirty && k.shelf == nil && v.hungRecords >= maxHung:
		v.forgo(rec)
	case k.dirty && k.shelf == nil:
		v.operate(rec, opCreate)
	case k.dirty:
		v.operate(rec, opPut)
	}
}

func (v *supervisor) operate(rec *record, op operation) {
	k := &rec.kept
	k.under, k.dirty = true, false
	v.begun(rec)
	k.now, k.next = k.next, nil
	d, store, sh := rec.durable(), v.s.cfg.Store, k.shelf
	if op == opCreate {
		sh = v.shelve(true)
	}
	sh.durable.Store(&d)
	v.c.Go("record", func(ctx context.Context) kernel.Msg {
		ctx, cancel := context.WithTimeout(ctx, storeWait)
		defer cancel()
		m := stored{rec: rec, op: op, shelf: sh}
		switch op {
		case opCreate:
			var lease Lease
			if lease, m.err = store.Create(ctx, d); m.err == nil {
				sh.lease.Store(&lease)
			}
		case opPut:
			m.err = store.Put(ctx, *sh.lease.Load(), d)
		case opRelease:
			m.err = store.Release(ctx, *sh.lease.Load(), d)
		case opDelete:
			m.err = store.Delete(ctx, *sh.lease.Load())
		}
		return m
	})
}

func (v *supervisor) onStored(m stored) {
	rec, k := m.rec, &m.rec.kept
	k.under = false
	v.ended(rec)
	waited := k.now
	k.now = nil
	for _, q := range waited {
		if m.err != nil {
			q.Fail(m.err)
		} else {
			q.Answer(struct{}{}, nil)
		}
	}
	if m.err != nil {
		v.c.Refuse("session_records")
		v.c.Log().Error("the record of a session", "session", acp.SessionTag(rec.id), "err", m.err.Error())
	}
	switch {
	case m.op == opCreate && m.err == nil:
		v.ours(rec, m.shelf)
	case m.op == opCreate:
		m.shelf.owed.Discharge()
	case m.op == opPut && errors.Is(m.err, ErrLeaseLost):
		v.unshelve(rec)
		k.then = max(k.then, released)  // what it still says is written nowhere: who has the record may have deleted it
		_ = rec.ref.Signal(leaseLost{}) // one that does not live has nothing to end
	case m.op == opDelete && m.err != nil && !errors.Is(m.err, ErrLeaseLost): // then it is at least not held
		k.failed, k.then = m.err, released
	case m.op == opRelease, m.op == opDelete:
		v.unshelve(rec)
		v.away(rec, cmp.Or(k.failed, m.err))
		return
	}
	v.work(rec)
}

// shelve prepares for a record that will be ours: whatever ends this generation, and when, lets go of it.
func (v *supervisor) shelve(fresh bool) *shelf {
	sh := &shelf{new: fresh}
	sh.owed = v.c.Own("record", sh.release(v.s.cfg.Store))
	return sh
}

// ours notes that it is.
func (v *supervisor) ours(rec *record, sh *shelf) {
	sh.life.Store(rec.life)
	rec.kept.shelf = sh
	if lease := sh.lease.Load(); !lease.Expires.IsZero() {
		v.renewBefore(lease.Expires.Sub(v.c.Now()))
	}
}

func (v *supervisor) unshelve(rec *record) {
	rec.kept.shelf.owed.Discharge()
	rec.kept.shelf = nil
}

// release lets go of the record as the session left it; one that was closed, or whose id nobody has read, is gone.
func (s *shelf) release(store Store) func(context.Context, error) {
	return func(ctx context.Context, _ error) {
		lease, d := s.lease.Load(), s.durable.Load()
		if lease == nil {
			return
		}
		l := s.life.Load()
		if l == nil && s.new || l != nil && (end(l.ending.Load()) == endClosed || s.new && !l.opened.Load()) {
			if err := store.Delete(ctx, *lease); err == nil || errors.Is(err, ErrLeaseLost) {
				return
			} // what cannot be removed now is found again, which is no more than a client may have
		}
		last := *d
		if l != nil {
			if st := l.status.Load(); st != nil {
				last.Agent, last.LastTurn, last.Missed, last.MissedB = st.inner, st.lastTurn, st.missed, st.missedB
			}
		}
		_ = store.Release(ctx, *lease, last) // it stays as it was last written
	}
}

// away is the end of a record's parting: what there is to know of the session, the store knows, or nobody.
func (v *supervisor) away(rec *record, err error) {
	k := &rec.kept
	parted := k.parted
	k.parted = nil
	for _, tell := range parted {
		if errors.Is(err, ErrLeaseLost) { // it is gone from here, whoever has it
			tell(nil)
		} else {
			tell(err)
		}
	}
	if rec.living() || rec.under != nil {
		return // it was deleted before its session has ended
	}
	if v.records[rec.id] == rec {
		delete(v.records, rec.id)
	}
	if k.then == released && err == nil {
		v.doze(rec)
	}
	behind := rec.behind
	rec.behind = nil
	for _, e := range behind {
		v.enter(e)
	}
}
