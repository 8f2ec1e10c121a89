package session

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// keepRecord is asked of the supervisor: nil error = what of the session outlives the pod is written, as this message has it.
type keepRecord struct{ change change }

// changed tells the supervisor that there is something new to keep; nobody waits for it.
type changed struct{ change change }

// change is what of a session its record has beside what [life] shows.
type change struct {
	id         string
	cwd        string
	additional []string
	declared   []string
	pins       []byte
	inner      string
}

func (x *session) change() change {
	return change{id: x.id, cwd: x.folders.Cwd, additional: x.folders.Additional, declared: slices.Clone(x.declared), pins: x.ownPins(), inner: x.inner}
}

// ownPins is what its servers' tools were when nobody else keeps that. A desk that is not there yet knows what the record knew.
func (x *session) ownPins() []byte {
	if v := x.view.Load(); v != nil {
		return v.OwnPins()
	}
	return x.pins
}

// pinned has the record written when its servers' tools were pinned by the session alone.
func (x *session) pinned() {
	if x.owner.pinScope() != "" || !x.life.opened.Load() {
		return
	}
	if now := x.ownPins(); !bytes.Equal(now, x.pins) {
		x.pins = now
		_ = x.c.Parent().Signal(changed{x.change()})
	}
}

// keep has the record written; the request that opens is answered after that.
func (x *session) keep() {
	if !x.keeping.IsZero() { // what is being written may be older
		x.c.Cancel(x.keeping)
	}
	ticket, err := x.c.Request(x.c.Parent(), keepRecord{change: x.change()})
	x.keeping = ticket
	if err != nil {
		x.keeping = kernel.Ticket{}
		x.kept(err)
		return
	}
	x.c.After(keepWait, storeOverdue{ticket})
}

// keepWait is how long a session waits for its record: as long as one operation that is under way and its own may take. A disk that hangs ends
// neither, and a client must have its answer.
const keepWait = 2*storeWait + time.Second

// storeOverdue says that the supervisor has not answered what was asked of it about the record.
type storeOverdue struct{ ticket kernel.Ticket }

var errStoreHangs = errors.New("the state directory does not answer")

func (x *session) onStoreOverdue(ticket kernel.Ticket) {
	if ticket == x.keeping {
		x.c.Cancel(ticket)
		x.kept(errStoreHangs)
	}
}

// kept is the end of that. A session whose record cannot be written serves all the same: the pod says that it will not outlive it, and tries again
// when there is something new.
func (x *session) kept(err error) {
	x.keeping = kernel.Ticket{}
	if err != nil {
		x.c.Refuse("session_record")
		x.c.Log().Error("the session's record was not written: it does not outlive this pod", "session", acp.SessionTag(x.id), "err", err.Error())
	}
	x.answerAgain()
	if x.loading() && !x.open.shown {
		if x.turn.phase == idle {
			x.loadNow()
		}
		return
	}
	x.answerOpening()
}

// recollect tells the desk of servers that were declared in a former life: their tools are known to be detached.
func (x *session) recollect() {
	if len(x.known) == 0 {
		return
	}
	n := 0
	for _, name := range x.known {
		n += len(name) + declaredBytes
	}
	lease, err := x.c.Account().Acquire(int64(n))
	if err != nil {
		x.c.Refuse("session_bytes")
		return
	}
	x.declared = slices.Clone(x.known)
	x.payDeclared(lease)
	_ = x.desk.Signal(capability.Declared{Names: x.declared}) // it has just been spawned
}

// onLeaseLost is the news that the session lives in another pod: what there is of it here ends, and its client is told that it was superseded.
func (x *session) onLeaseLost() {
	for _, r := range []*request{x.prompt.asker, x.opening} {
		if r != nil {
			r.give(x.id, nil, nil, jsonrpc.SupersededError())
		}
	}
	x.prompt.asker, x.opening = nil, nil
	x.end(endMoved, errMoved)
}
