package session

import (
	"context"
	"errors"
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
	s           *Sessions
	c           *kernel.Ctx
	records     map[string]*record
	refs        map[kernel.Ref]*record
	dozing      map[string]doze
	last        time.Time        // that was given to a record
	slots       *admission.Group // of the living, and of those that are admitted and do not live yet
	places      places
	attaching   map[kernel.Ticket]*entry
	lists       []*listed // that wait
	looking     int       // … and that the store looks for
	hungRecords int       // operations of the store for a record that do not end
	hungFolders int       // looks at folders that do not
	hanging     bool      // the tree says so
	sweeping    bool
	errands     map[kernel.Ref]*errandPlace
	errandSeq   int
	learning    bool // the agent is being asked what it offers …
	stale       bool // … and has to be again
	// renewEvery is how often leases are renewed, 0 = none of them ends.
	renewEvery time.Duration
}

// Messages to the supervisor from its sessions and itself.
type (
	claimSlot struct{ id string } // asked: nil error = the place is taken
	slotFreed struct{ id string }
	checked   struct { // the folders of an entry
		entry   *entry
		folders Folders
		bad     *jsonrpc.Error
		late    func() // takes the look at an entry that waits too long back
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
	case located:
		v.onLocated(m.listed)
	case *listed:
		v.onListed(m)
	case recordOverdue:
		v.onRecordOverdue(m.rec)
	case foldersOverdue:
		v.onFoldersOverdue(m.entry)
	case listOverdue:
		v.onListOverdue(m.listed)
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
	case agentDeleted:
		v.onAgentDeleted(m)
	case renew:
		v.onRenew()
	case renewed:
		v.onRenewed(m)
	case swept:
		v.sweeping = false
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
		v.onLearnt(m)
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
	if n := v.hungRecords + v.hungFolders; n > 0 || v.hanging {
		v.hanging = n > 0
		v.c.Attr("hanging", n)
	}
	for name, n := range map[string]int64{"records_forgotten": f.Forgotten, "records_aside": f.Aside, "records_failed": f.Failed} {
		if n > 0 {
			v.c.Attr(name, n)
		}
	}
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
	if v.hungFolders >= maxHung {
		v.c.Refuse("folders")
		v.fail(e, hangs(errFoldersHang))
		return
	}
	workdir, resolve := v.s.cfg.Workdir, v.s.folders
	asked := &Params{SessionParams: acp.SessionParams{Cwd: e.params.Cwd, AdditionalDirectories: e.params.AdditionalDirectories}}
	late := v.c.After(givenUp, foldersOverdue{e})
	v.c.Go("folders", func(context.Context) kernel.Msg {
		folders, bad := resolve(workdir, asked)
		return checked{entry: e, folders: folders, bad: bad, late: late}
	})
}

func (v *supervisor) onChecked(m checked) {
	e := m.entry
	if e.late { // it was answered
		v.hungFolders--
		return
	}
	m.late()
	e.folders = m.folders
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
	case rec.id == e.id: // it is another's, or stays what it was
		v.part(rec, released)
	default: // nobody knows it
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
