package audit

import (
	"strings"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// QueueRecords is how many records wait for the sink at most. A session makes two a call, so this is some seconds of
// the heaviest load for a disk that has stalled.
const QueueRecords = 4096

// recordBytes is what a waiting record is charged: an Entry, its place in the queue, and the three names in it.
const recordBytes = 768

// A queued record with what pays for it.
type queued struct {
	entry capability.Entry
	lease *kernel.Lease
}

// Recorder takes records. The zero value is not usable; see [New].
type Recorder struct {
	queue   chan queued
	dropped atomic.Int64
	ends    outcomes
	// telling is set while the actor has been woken about drops and has not answered yet.
	telling atomic.Bool
	ref     atomic.Pointer[kernel.Ref]
}

// Record implements capability.Audit. What is recorded before the actor has started waits for it.
func (r *Recorder) Record(e capability.Entry) {
	if e.Event != capability.EventCall {
		r.ends.count(e.Outcome)
	}
	ref := r.actor()
	var lease *kernel.Lease
	var err error
	if !ref.IsZero() {
		lease, err = ref.Account().Acquire(recordBytes)
	}
	if err == nil {
		select {
		case r.queue <- queued{own(e), lease}:
			return
		default:
			lease.Release()
		}
	}
	r.dropped.Add(1)
	ref.CountRefusal("audit_queue")
	if r.telling.CompareAndSwap(false, true) && ref.Signal(dropping{}) != nil {
		r.telling.Store(false)
	}
}

// own cuts the names of an entry to what is written of them, in memory of their own: a name may be a piece of a request, and would
// keep all of it while the record waits.
func own(e capability.Entry) capability.Entry {
	for _, name := range []*string{&e.Provider, &e.Server, &e.Tool} {
		*name = strings.Clone((*name)[:min(len(*name), longestName+1)]) // the one more tells that it is cut
	}
	return e
}

// Dropped is how many records found no room and have not been told in the log yet.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// actor is the living generation, or the zero Ref before the first has started.
func (r *Recorder) actor() kernel.Ref {
	if ref := r.ref.Load(); ref != nil {
		return ref.Current()
	}
	return kernel.Ref{}
}
