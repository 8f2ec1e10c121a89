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
	s         *Sessions
	c         *kernel.Ctx
	records   map[string]*record
	refs      map[kernel.Ref]*record
	dozing    map[string]doze
	last      time.Time        // that was given to a record
	slots     *admission.Group // of the living, and of those that are admitted and do not live yet
	places    places
	attaching map[kernel.Ticket]*entry
	errands   map[kernel.Ref]*errandPlace
	errandSeq int
	// renewEvery is how often leases are renewed, 0 = none of them ends.
	renewEvery time.Duration
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
	return &supervisor{s: s, records: make(map[string]*record), refs: make(map[kernel.Ref]*record), dozing: make(map[string]doze),
		attaching: make(map[kernel.Ticket]*entry), errands: make(map[kernel.Ref]*errandPlace)}
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

// now is the time, later than any that it said before: what is ordered by it is ordered.
func (v *supervisor) now() time.Time {
	now := v.c.Now()
	if !now.After(v.last) {
		now = v.last.Add(1)
	}
	v.last = now
	return now
}

// Receive implements kernel.Behavior.
func (v *supervisor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	v.c = c
	switch m := m.(type) {
	case Open:
		v.onOpen(m)
	case Resume:
		v.enter(v.about(kindResume, m.Client, m.Req, m.Params, m.Held))
	case Load:
		v.enter(v.about(kindLoad, m.Client, m.Req, m.Params, m.Held))
	case Fork:
		v.enter(v.about(kindFork, m.Client, m.Req, m.Params, m.Held))
	case Delete:
		v.enter(v.about(kindDelete, m.Client, m.Req, &Params{SessionParams: acp.SessionParams{SessionID: m.Session}}, nil))
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
	case listed:
		v.onListed(m)
	case taken:
		v.onTaken(m)
	case stored:
		v.onStored(m)
	case keepRecord:
		v.onKeep(m.change, c.Question())
	case changed:
		v.onKeep(m.change, nil)
	case dropRecord:
		v.onDrop(m)
	case renew:
		v.onRenew()
	case renewed:
		v.onRenewed(m)
	case swept:
		if m.err != nil {
			c.Refuse("session_records")
			c.Log().Warn("old records of sessions were not all removed", "err", m.err.Error())
		}
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
	c.Attr("tokens", v.s.tokens.Live())
	v.showRecords()
	return nil
}

// showRecords shows what the store has.
func (v *supervisor) showRecords() {
	f := v.s.cfg.Store.Figures()
	v.c.Attr("records", f.Kind)
	v.c.Attr("suspended", f.Records-f.Held)
	for name, n := range map[string]int64{"records_forgotten": f.Forgotten, "records_aside": f.Aside, "records_failed": f.Failed} {
		if n > 0 {
			v.c.Attr(name, n)
		}
	}
}

// entry takes a request, and with it the duty to answer it until a session has it.
func (v *supervisor) entry(client Client, req uint64, params *Params, held *kernel.Lease) *entry {
	return &entry{client: client, req: req, params: params, held: held, owed: v.c.Own("answer", releaseAnswer("", client, req))}
}

// about takes a request about a session that there is.
func (v *supervisor) about(k kind, client Client, req uint64, params *Params, held *kernel.Lease) *entry {
	e := v.entry(client, req, params, held)
	e.kind, e.id = k, params.SessionID
	return e
}

func (v *supervisor) onOpen(m Open) {
	e := v.entry(m.Client, m.Req, m.Params, m.Held)
	if v.s.draining.Load() {
		v.refuse(e, jsonrpc.Draining(0))
		return
	}
	if v.admit(e, wayNew, m.Client.Key()) {
		v.begin(e)
	}
}

// begin gives an admitted request a session that was not there.
func (v *supervisor) begin(e *entry) {
	now := v.now()
	rec := &record{id: v.s.newID(), owner: owner{key: e.client.Key(), secret: e.client.Secret()}, created: now, updated: now, under: e}
	e.rec = rec
	v.records[rec.id] = rec
	v.check(e)
}

// enter lets in a request about a session that there is, after those that came before it. Who may not have the session is told what is told of
// one that is not there.
func (v *supervisor) enter(e *entry) {
	rec := v.records[e.id]
	switch {
	case rec != nil && (rec.closed() || !rec.unread && !rec.owner.admits(e.client.Key(), e.client.Secret())):
		v.refuse(e, acp.UnknownSession(e.id))
	case rec != nil && (rec.under != nil || v.leaving(rec)):
		if len(rec.behind) == maxBehind {
			v.refuse(e, jsonrpc.BusyError())
			return
		}
		rec.behind = append(rec.behind, e)
	case v.s.draining.Load() && e.kind != kindDelete:
		v.refuse(e, jsonrpc.Draining(0))
	case !v.offers(e.kind):
		v.refuse(e, jsonrpc.UnknownMethod(methods[e.kind]))
	case rec == nil:
		if e.kind == kindFork && !v.admit(e, wayNew, e.client.Key()) || e.back() && !v.admit(e, wayBack, e.client.Key()) {
			return
		}
		rec = &record{id: e.id, unread: true, under: e}
		e.rec, v.records[e.id] = rec, rec
		v.take(e)
	case e.kind == kindFork:
		if v.admit(e, wayNew, e.client.Key()) {
			e.rec = rec
			v.fork(e, rec.inner)
		}
	case e.kind == kindDelete:
		e.rec, rec.under = rec, e
		v.hand(e, remove{client: e.client, req: e.req})
	default:
		if e.rec = rec; v.admit(e, wayJoin, rec.owner.key) {
			rec.under = e
			v.check(e)
		}
	}
}

// methods are the names of what comes in.
var methods = [...]string{kindNew: acp.MethodSessionNew, kindResume: acp.MethodSessionResume, kindLoad: acp.MethodSessionLoad, kindFork: acp.MethodSessionFork,
	kindDelete: acp.MethodSessionDelete}

// offers tells whether the agent does what such a request asks for: a client was offered no more.
func (v *supervisor) offers(k kind) bool {
	info, _ := v.s.learned.Now()
	switch k {
	case kindLoad:
		return info != nil && info.LoadSession
	case kindFork:
		return info != nil && info.Session.Fork
	case kindDelete:
		return info != nil && info.Session.Delete
	case kindNew, kindResume:
	}
	return true
}

// leaving tells whether a session has decided to end and its end has not come yet, or its record is being let go.
func (v *supervisor) leaving(rec *record) bool {
	return rec.kept.then != stays || rec.living() && end(rec.life.ending.Load()) != endUnknown
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
	if e.back() && rec.living() {
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
	if e.way == wayJoin { // it lived when this began, and was suspended meanwhile
		v.again(e)
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
	m := attach{client: e.client, req: e.req, params: e.params, folders: e.folders, held: e.held, load: e.kind == kindLoad}
	e.held = nil // the message brings it
	v.hand(e, m)
}

// hand gives a request to its living session, which answers it.
func (v *supervisor) hand(e *entry, m kernel.Msg) {
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

// again lets a request wait for the end of the session that it found ending.
func (v *supervisor) again(e *entry) {
	rec := e.rec
	rec.under = nil
	e.slot.Release()
	e.slot = nil
	rec.behind = append([]*entry{e}, rec.behind...)
	switch {
	case rec.living():
	case rec.kept.then != stays:
		v.work(rec)
	default:
		v.next(rec)
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
		rec.cwd, rec.updated = e.folders.Cwd, v.now()
	}
	v.next(rec)
}

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
	v.refuse(e, bad)
	switch {
	case rec.living():
		v.next(rec)
	case e.back() || e.kind == kindDelete:
		v.part(rec, released)
	default:
		v.part(rec, deleted)
	}
}

func (v *supervisor) refuse(e *entry, bad *jsonrpc.Error) {
	e.held.Release()
	e.slot.Release()
	if e.owed == nil || e.owed.Discharge() {
		e.client.Respond("", e.req, nil, nil, bad)
	}
}

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
	rec.kept.parted = append(rec.kept.parted, q)
	v.part(rec, deleted)
}
