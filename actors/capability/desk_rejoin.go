package capability

import (
	"slices"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// parkTime is how long a call waits that is identical to one whose caller still
// seems to be there: a client that gives a request up and repeats it at once is
// often faster than the news that its first socket has closed.
const parkTime = 250 * time.Millisecond

type parkOver struct{ call uint64 }

// repeats reports that two calls are one and the same to their caller: the same
// token, name and bytes, and no key of its own.
func (k *call) repeats(o *call) bool {
	return o.request.Token == k.request.Token && o.request.Name == k.request.Name && o.sha == k.sha &&
		(k.request.Key == "" || k.request.Key == o.request.Key)
}

// rejoin looks for what an identical call of the same token left behind: an
// orphan that runs, which it joins, or its finished result, which it gets. Calls
// that have a caller are never joined without a key, and anonymous callers join by
// key alone. refusal: what it left behind is that there is no result.
func (d *desk) rejoin(c *kernel.Ctx, k *call, a asker) (done bool, refusal *Refusal) {
	if a.token == [32]byte{} {
		return false, nil
	}
	for _, o := range d.open() {
		if o.phase == running && len(o.askers) == 0 && k.repeats(o) {
			o.stopTimer()
			d.join(o, a)
			return true, nil
		}
	}
	for _, kp := range d.keys.kept {
		if kp.orphan != nil && k.request.Key == "" && k.repeats(kp.orphan) {
			refusal = d.told(c, kp, a)
			return refusal == nil, refusal
		}
	}
	return false, nil
}

// twin is an identical call whose caller still seems to be there and whose
// closing would leave it an orphan.
func (d *desk) twin(k *call) *call {
	if k.request.Token == [32]byte{} || k.request.Key != "" {
		return nil
	}
	for _, o := range d.open() {
		if o != k && (o.phase == checking || o.phase == running) && k.repeats(o) && !o.cap.Tool.ReadOnly() &&
			slices.ContainsFunc(o.askers, func(a asker) bool { return !a.endsOnClose }) {
			return o
		}
	}
	return nil
}

// undelivered is a result that came back from an HTTP request that had closed.
type undelivered struct {
	request Request // without its arguments
	sha     [32]byte
	result  Result // without bytes: there was no room to bring them back
	bytes   *kernel.Lease
}

// Lease is the lease of the result ([kernel.Leased]).
func (m undelivered) Lease() *kernel.Lease { return m.bytes }

// undelivered keeps such a result as an orphan's. Calls with a key have kept
// theirs, and for those that end with their request there is nothing to keep.
func (d *desk) undelivered(c *kernel.Ctx, m undelivered) {
	if m.request.Key != "" || m.request.EndsOnClose || m.request.Token == [32]byte{} || m.result.reads {
		m.bytes.Release()
		return
	}
	k := &call{request: m.request, sha: m.sha, until: c.Now().Add(d.limits.OrphanWindow)}
	if m.result.Raw != nil {
		d.keepForOrphan(c, k, m.result, m.bytes)
	} else {
		d.keepEnd(c, k, kept{refusal: resultNotKept()})
	}
	d.unparkFor(c, k)
}

// unparkFor lets those go on that waited to see what becomes of o: they join it
// when it is an orphan now, or get its result when its caller missed it. While a
// result is on its way to its caller they wait on: it may come back.
func (d *desk) unparkFor(c *kernel.Ctx, o *call) {
	for _, k := range d.open() {
		if k.phase == parked && k.repeats(o) {
			d.unpark(c, k)
		}
	}
}

func (d *desk) unpark(c *kernel.Ctx, k *call) {
	k.stopTimer()
	k.phase = waiting
	a := k.askers[0]
	switch done, refusal := d.rejoin(c, k, a); {
	case refusal != nil:
		d.refuse(c, k, refusal)
		return
	case !done:
		d.resolve(c, k, false)
		return
	}
	delete(d.calls, k.id)
	k.askers = nil
	k.request.Bytes.Release()
	if d.askers[a.question] == k {
		delete(d.askers, a.question)
	}
}

func (d *desk) park(c *kernel.Ctx, k *call) {
	k.stopTimer()
	k.phase = parked
	k.timer = c.After(parkTime, parkOver{k.id})
}

func (d *desk) parkOver(c *kernel.Ctx, id uint64) {
	if k := d.calls[id]; k != nil && k.phase == parked {
		d.unpark(c, k)
	}
}
