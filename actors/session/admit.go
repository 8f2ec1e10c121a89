package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// supervision is how many restarts of sessions, of all together, are no reason to give up.
var supervision = kernel.Intensity{Max: 100, Window: 10 * time.Second}

// supervisor is one generation of `sessions`.
type supervisor struct {
	s       *Sessions
	c       *kernel.Ctx
	records map[string]*record
	refs    map[kernel.Ref]*record
	seq     uint64
	slots   *admission.Group // of the living, and of those that are admitted and do not live yet
	places  places
	asleep  int // suspended records
	// asleepBytes is what they hold.
	asleepBytes int64
	attaching   map[kernel.Ticket]*entry
	errands     map[kernel.Ref]*errandPlace
	errandSeq   int
}

// Messages to the supervisor from its sessions and itself.
type (
	claimSlot struct{ id string } // asked: nil error = the place is taken
	slotFreed struct{ id string }
	checked   struct { // the folders of an entry
		entry *entry
		bad   *jsonrpc.Error
	}
	learnt struct{ failed error }
	sweep  struct{}
)

func newSupervisor(s *Sessions) *supervisor {
	return &supervisor{s: s, records: make(map[string]*record), refs: make(map[kernel.Ref]*record), attaching: make(map[kernel.Ticket]*entry),
		errands: make(map[kernel.Ref]*errandPlace)}
}

// Start implements kernel.Starter.
func (v *supervisor) Start(c *kernel.Ctx) error {
	v.c = c
	v.slots = v.s.gate.generation()
	v.places = places{sup: v}
	c.After(v.sweepEvery(), sweep{})
	if v.s.cfg.Driver == DriverNone {
		v.s.learned.learn(nil)
		return nil
	}
	v.learn()
	return nil
}

// Receive implements kernel.Behavior.
func (v *supervisor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	v.c = c
	switch m := m.(type) {
	case Open:
		v.onOpen(m)
	case Resume:
		v.onResume(m)
	case List:
		v.onList(m)
	case Ask:
		v.onAsk(m)
	case Cancel:
		v.onCancelAsk(m)
	case claimErrand:
		v.onErrandClaim(m)
	case learnAgain:
		v.learn()
	case checked:
		v.onChecked(m)
	case claimSlot:
		v.onClaim(m)
	case slotFreed:
		if rec := v.records[m.id]; rec != nil {
			v.places.free(rec)
		}
	case kernel.Answer:
		v.onAnswer(m)
	case kernel.Exited:
		v.onExited(m)
	case learnt:
		if m.failed != nil && !errors.Is(m.failed, context.Canceled) {
			c.Log().Warn("the agent could not be asked what it offers: clients are offered the baseline", "err", m.failed.Error())
		}
	case sweep:
		v.forgetOld()
		c.After(v.sweepEvery(), sweep{})
	}
	v.s.living.Store(int64(len(v.refs)))
	c.Attr("living", len(v.refs))
	c.Attr("suspended", v.asleep)
	c.Attr("tokens", v.s.tokens.Live())
	return nil
}

// entry takes a request, and with it the duty to answer it until a session has it.
func (v *supervisor) entry(client Client, req uint64, params *Params, held *kernel.Lease) *entry {
	return &entry{client: client, req: req, params: params, held: held, owed: v.c.Own("answer", releaseAnswer("", client, req))}
}

func (v *supervisor) onOpen(m Open) {
	e := v.entry(m.Client, m.Req, m.Params, m.Held)
	if v.s.draining.Load() {
		v.refuse(e, jsonrpc.Draining(0))
		return
	}
	if !v.admit(e, wayNew, m.Client.Key()) {
		return
	}
	v.seq++
	now := v.c.Now()
	rec := &record{id: v.s.newID(), owner: owner{key: m.Client.Key(), secret: m.Client.Secret()}, seq: v.seq, created: now, updated: now, under: e}
	e.rec = rec
	v.records[rec.id] = rec
	v.check(e)
}

func (v *supervisor) onResume(m Resume) {
	e := v.entry(m.Client, m.Req, m.Params, m.Held)
	e.resume = true
	rec := v.records[m.Params.SessionID]
	if rec == nil || rec.closed() || !rec.owner.admits(m.Client.Key(), m.Client.Secret()) {
		v.refuse(e, acp.UnknownSession(m.Params.SessionID))
		return
	}
	e.rec = rec
	v.resume(e)
}

// resume admits the resume of a session that is known, after those that came before it.
func (v *supervisor) resume(e *entry) {
	rec := e.rec
	switch {
	case v.s.draining.Load():
		v.refuse(e, jsonrpc.Draining(0))
	case rec.under != nil || v.leaving(rec):
		if len(rec.behind) == maxBehind {
			v.refuse(e, jsonrpc.BusyError())
			return
		}
		rec.behind = append(rec.behind, e)
	case rec.living():
		if v.admit(e, wayJoin, rec.owner.key) {
			rec.under = e
			v.check(e)
		}
	default:
		if v.admit(e, wayBack, rec.owner.key) {
			rec.under = e
			v.check(e)
		}
	}
}

// leaving tells whether a living session has decided to end and its end has not come yet.
func (v *supervisor) leaving(rec *record) bool {
	return rec.living() && end(rec.life.ending.Load()) != endUnknown
}

// admit reserves what an entry needs that comes in that way, before anything is done for it, or refuses it.
func (v *supervisor) admit(e *entry, w way, key string) bool {
	e.way = w
	claims := v.s.gate.claims(w, key)
	if len(claims) == 0 {
		return true
	}
	slot, err := v.slots.Admit(claims...)
	if err != nil {
		v.refuse(e, v.full(err))
		return false
	}
	e.slot = slot
	return true
}

// full is the answer to who found no room; the tree counts it.
func (v *supervisor) full(err error) *jsonrpc.Error {
	o, ok := errors.AsType[*kernel.Overloaded](err)
	if !ok {
		return jsonrpc.Draining(0) // this generation has ended
	}
	v.c.Refuse(o.Scope)
	return overloaded(o)
}

// check looks at the folders, off the turn.
func (v *supervisor) check(e *entry) {
	workdir, resolve := v.s.cfg.Workdir, v.s.folders
	v.c.Go("folders", func(context.Context) kernel.Msg {
		folders, bad := resolve(workdir, e.params)
		e.folders = folders
		return checked{entry: e, bad: bad}
	})
}

func (v *supervisor) onChecked(m checked) {
	e := m.entry
	rec := e.rec
	switch {
	case v.records[rec.id] != rec: // it was closed meanwhile
		v.fail(e, acp.UnknownSession(rec.id))
		return
	case m.bad != nil:
		v.fail(e, m.bad)
		return
	}
	if e.resume && rec.living() {
		if v.leaving(rec) { // it decided to end meanwhile: what follows that end decides
			v.again(e)
			return
		}
		v.attach(e)
		return
	}
	if v.s.draining.Load() {
		v.fail(e, jsonrpc.Draining(0))
		return
	}
	if e.way == wayJoin && !v.admit(e, wayBack, rec.owner.key) { // it lived when this began, and was suspended meanwhile
		rec.under = nil
		v.next(rec)
		return
	}
	if v.s.cfg.Driver == DriverNone {
		v.spawn(e, slotNone)
		return
	}
	v.places.want(wish{rec: rec, entry: e})
}

// attach hands the resume of a living session to it.
func (v *supervisor) attach(e *entry) {
	m := attach{client: e.client, req: e.req, params: e.params, folders: e.folders, held: e.held}
	e.held = nil // the message brings it
	ticket, err := v.c.Request(e.rec.ref, m)
	var full *kernel.Overloaded
	switch {
	case err == nil:
		v.attaching[ticket] = e
	case errors.As(err, &full):
		v.fail(e, overloaded(full))
	default:
		v.again(e)
	}
}

// again lets a resume wait for the end of the session that it found ending.
func (v *supervisor) again(e *entry) {
	e.rec.under = nil
	e.rec.behind = append([]*entry{e}, e.rec.behind...)
	if !e.rec.living() {
		v.next(e.rec)
	}
}

// onAnswer is an answer of a session: to a resume, or to the wish for its place.
func (v *supervisor) onAnswer(a kernel.Answer) {
	e, ok := v.attaching[a.Ticket]
	if !ok {
		v.places.onAnswer(a)
		return
	}
	delete(v.attaching, a.Ticket)
	a.Lease.Release()
	if a.Err != nil {
		v.again(e)
		return
	}
	e.owed.Discharge()
	rec := e.rec
	rec.under = nil
	if granted, _ := a.Msg.(attached); bool(granted) { // a refused one leaves no trace
		rec.note(e.client.Rank())
		rec.cwd, rec.updated = e.folders.Cwd, v.c.Now()
	}
	v.next(rec)
}

// spawn starts the session of an admitted entry.
func (v *supervisor) spawn(e *entry, s slot) {
	rec := e.rec
	if e.resume {
		v.wakes(rec)
	}
	rec.life = &life{}
	b := birth{id: rec.id, owner: rec.owner, life: rec.life, folders: e.folders, meta: keepMeta(v.c, e.params.Meta, v.s.cfg.ForwardMeta),
		slot: s, carried: rec.carried, open: &opener{client: e.client, req: e.req, params: e.params, held: e.held, resume: e.resume}}
	ref, err := v.spawnNamed(b)
	if err != nil {
		v.c.Log().Error("a session could not be started", "session", acp.SessionTag(rec.id), "err", err.Error())
		if e.resume {
			v.sleeps(rec)
		}
		v.places.free(rec)
		v.fail(e, jsonrpc.InternalError(jsonrpc.ReasonInternal, "the session could not be started: try again"))
		return
	}
	rec.slot, e.slot = e.slot, nil
	e.owed.Discharge()
	e.owed = nil // the session owes it from its first step on
	rec.ref, rec.under, rec.first = ref, nil, e
	rec.cwd, rec.updated = e.folders.Cwd, v.c.Now()
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

// Free gives back what requests hold that were on their way in when the supervisor ended: a crash leaves them there.
func (v *supervisor) Free(error) {
	for _, rec := range v.records {
		for _, e := range append([]*entry{rec.under}, rec.behind...) {
			if e != nil {
				e.held.Release()
			}
		}
	}
}

// fail refuses an entry that had its record's attention.
func (v *supervisor) fail(e *entry, bad *jsonrpc.Error) {
	rec := e.rec
	rec.under = nil
	if !e.resume {
		delete(v.records, rec.id)
	}
	v.refuse(e, bad)
	v.next(rec)
}

func (v *supervisor) refuse(e *entry, bad *jsonrpc.Error) {
	e.held.Release()
	e.slot.Release()
	if e.owed == nil || e.owed.Discharge() {
		e.client.Respond("", e.req, nil, nil, bad)
	}
}
