package provider

import (
	"maps"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// callPhase is how far a call has come.
type callPhase uint8

const (
	queued  callPhase = iota // for its tool's concurrency or rate
	waiting                  // for a connection
	sent
)

// call is one call of a desk.
type call struct {
	capability.Call
	question *kernel.Question
	phase    callPhase
	id       int64 // of its request, once it was sent
	limit    time.Time
	gate     *gate
	deadline time.Time     // while it waits
	stop     func()        // takes back its timer; nil = none is set
	held     *kernel.Lease // for its place here
	bytes    *kernel.Lease // of its arguments; nil once they are the link's
	session  int           // of the connection, over which it was sent
	again    bool          // it was sent over a session that the server had lost
	alive    bool          // it has shown progress since it was sent
}

// untimed takes its timer back.
func (k *call) untimed() {
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
}

// suspect is a request that was told to stop: what a server says without naming a call may still be about it.
type suspect struct {
	id    int64
	owner string
	at    time.Time
}

// calls are the calls of a server.
type calls struct {
	byQuestion map[*kernel.Question]*call
	byID       map[int64]*call // those that were sent
	waiting    []*call         // in the order of their arrival
	suspects   []suspect       // the latest, in the order in which they were told to stop
}

func newCalls() calls {
	return calls{byQuestion: map[*kernel.Question]*call{}, byID: map[int64]*call{}}
}

func (t *calls) n() int { return len(t.byQuestion) }

// all is every call, in the order of their arrival.
func (t *calls) all() []*call {
	return slices.SortedFunc(maps.Values(t.byQuestion), func(x, y *call) int { return int(int64(x.question.ID() - y.question.ID())) })
}

// sent is every call on the wire, in the order in which they were sent.
func (t *calls) sent() []*call {
	return slices.SortedFunc(maps.Values(t.byID), func(x, y *call) int { return int(x.id - y.id) })
}

// remove takes a call out of all tables but its gate's.
func (t *calls) remove(k *call) {
	delete(t.byQuestion, k.question)
	delete(t.byID, k.id)
	t.waiting = slices.DeleteFunc(t.waiting, func(x *call) bool { return x == k })
}

// suspect remembers a request that was told to stop.
func (t *calls) suspect(s suspect) {
	if len(t.suspects) >= maxCalls {
		t.suspects = slices.Delete(t.suspects, 0, 1)
	}
	t.suspects = append(t.suspects, s)
}

// cleared takes a suspect out whose late answer came.
func (t *calls) cleared(id int64) bool {
	at := slices.IndexFunc(t.suspects, func(s suspect) bool { return s.id == id })
	if at < 0 {
		return false
	}
	t.suspects = slices.Delete(t.suspects, at, at+1)
	return true
}

// owner is the one session whose calls a connection has, or may still have at that moment; false when they are nobody's, of several
// sessions, or may be.
func (t *calls) owner(now time.Time) (string, bool) {
	owner := ""
	for _, k := range t.byID {
		if owner != "" && owner != k.Owner {
			return "", false
		}
		owner = k.Owner
	}
	for _, s := range t.suspects {
		if s.owner != "" && s.owner != owner && now.Sub(s.at) < suspectFor {
			return "", false
		}
	}
	return owner, owner != ""
}
