package session

import (
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

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
	case rec != nil && (rec.under != nil || rec.unread || v.leaving(rec)):
		if len(rec.behind) == maxBehind {
			v.refuse(e, jsonrpc.BusyError())
			return
		}
		rec.behind = append(rec.behind, e)
		v.letDown(rec)
	case v.s.draining.Load() && e.kind != kindDelete:
		v.refuse(e, jsonrpc.Draining(0))
	case !v.offers(e.kind):
		v.refuse(e, jsonrpc.UnknownMethod(methods[e.kind]))
	case rec == nil && v.hungRecords >= maxHung:
		v.c.Refuse("session_records")
		v.refuse(e, hangs(storeHangs()))
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
