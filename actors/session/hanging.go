package session

import (
	"errors"
	"slices"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A disk that hangs ends no operation, not even one whose context has ended. Who waits for one is told so in time, and the operation is left to its
// goroutine: what that brings in the end is put back where it was.

const (
	// givenUp is how long somebody waits for the store, or for a folder: a little longer than an operation may take that heeds its context.
	givenUp = storeWait + time.Second
	// maxHung bounds the goroutines that hang in the store, and those that hang in a folder: beyond it, nobody is sent after them.
	maxHung = 64
)

// Messages of the supervisor to itself about what hangs.
type (
	recordOverdue  struct{ rec *record }
	foldersOverdue struct{ entry *entry }
	listOverdue    struct{ listed *listed }
)

// storeHangs is what somebody is told whose request waits for the store.
func storeHangs() error {
	return &RecordError{Do: "reach", Err: errStoreHangs, Fix: "try again in a minute, and look at the disk below the pod's state.dir when it stays so"}
}

var errFoldersHang = errors.New("agent.workdir, or the folder asked for, does not answer: try again in a minute, and look at its disk when it stays so")

func hangs(err error) *jsonrpc.Error {
	return jsonrpc.InternalError(jsonrpc.ReasonInternal, err.Error())
}

// begun notes that the store has something to do for a record, ended that it has done it.
func (v *supervisor) begun(rec *record) {
	rec.kept.late = v.c.After(givenUp, recordOverdue{rec})
}

func (v *supervisor) ended(rec *record) {
	rec.kept.late()
	if rec.kept.hangs {
		rec.kept.hangs = false
		v.hungRecords--
	}
}

// onRecordOverdue tells whoever waits for a record that the store does not answer.
func (v *supervisor) onRecordOverdue(rec *record) {
	rec.kept.hangs = true
	v.hungRecords++
	v.c.Refuse("session_records")
	v.c.Log().Error("the record of a session", "session", acp.SessionTag(rec.id), "err", storeHangs().Error())
	if e := rec.under; rec.unread && e != nil {
		rec.under, e.late = nil, true
		v.refuse(e, hangs(storeHangs()))
	}
	v.letDown(rec)
}

// letDown answers those whose turn comes when the store has done what it hangs in. Who comes to a session that lives does not wait for that.
func (v *supervisor) letDown(rec *record) {
	k := &rec.kept
	if !k.hangs || rec.under != nil || !rec.unread && k.then == stays {
		return
	}
	behind, parted := rec.behind, k.parted
	rec.behind, k.parted = nil, nil
	for _, e := range behind {
		v.refuse(e, hangs(storeHangs()))
	}
	for _, tell := range parted {
		tell(storeHangs())
	}
}

// forgo lets a session be without a record until there is something new to keep: the store is not sent another one while so many hang.
func (v *supervisor) forgo(rec *record) {
	k := &rec.kept
	waiting := k.next
	k.dirty, k.next = false, nil
	v.c.Refuse("session_records")
	for _, q := range waiting {
		q.Fail(storeHangs())
	}
}

// onFoldersOverdue refuses a request whose folders do not answer.
func (v *supervisor) onFoldersOverdue(e *entry) {
	e.late = true
	v.hungFolders++
	v.c.Refuse("folders")
	v.c.Log().Error("the folders of a session", "session", acp.SessionTag(e.rec.id), "err", errFoldersHang.Error())
	e.params = nil // the frame that it points into is not paid for any more
	v.fail(e, hangs(errFoldersHang))
}

// onListOverdue answers a list that waits for a folder or for the store.
func (v *supervisor) onListOverdue(l *listed) {
	if !l.owed.Discharge() {
		return
	}
	v.lists = slices.DeleteFunc(v.lists, func(other *listed) bool { return other == l })
	err := storeHangs()
	if l.locating {
		v.hungFolders++
		err = errFoldersHang
	}
	v.c.Refuse("session_records")
	v.c.Log().Error("the list of sessions", "err", err.Error())
	l.client.Respond("", l.req, nil, nil, hangs(err))
}
