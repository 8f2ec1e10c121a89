package capability

import (
	"context"
	"slices"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// keyID is what an idempotency key belongs to, within its session.
type keyID struct {
	binding
	key string
}

// keyEntry is one key that was used: its call while that is open, then how it
// ended.
type keyEntry struct {
	id      keyID
	sha     [32]byte
	call    *call
	result  *kept    // the finished result, while it is kept
	refusal *Refusal // what a repeat is told when there is no result
	undoing bool     // its call was not made, and its start is being taken back
}

// kept is a finished result that waits for a repeat, or what a repeat is told in its place.
type kept struct {
	result  Result
	lease   *kernel.Lease
	stop    func()    // takes back the timer that forgets it
	key     *keyEntry // of a call with a key, else
	orphan  *call     // of a call whose caller went: as much of it as [call.remains]
	refusal *Refusal  // there is no result, and why; or …
	of      *keyEntry // … the result is that of this key, and a repeat without the key shares it
}

// keyBook is the desk's memory of keys and of results for repeats. It is bounded
// in keys and in bytes; the oldest goes first.
type keyBook struct {
	limits  DeskLimits
	entries map[keyID]*keyEntry
	order   []*keyEntry // by first use
	kept    []*kept     // by end
	bytes   int64
}

func newKeyBook(l DeskLimits) keyBook { return keyBook{limits: l, entries: map[keyID]*keyEntry{}} }

// claimKey makes a call the one of its key. It reports true when the call needs
// no further check: the key has another, or there is no room to remember it.
func (d *desk) claimKey(c *kernel.Ctx, k *call) (settled bool) {
	b := binding{k.cap.place(), k.cap.Tool.Name}
	if d.repeated(c, k, b) {
		return true
	}
	if !d.bill.pay(c.Account(), d.bill.names, len(d.declared), min(len(d.keys.order)+1, d.limits.Keys)) {
		c.Refuse("keys")
		a := c.Account()
		d.turnAway(c, k, overloaded(&kernel.Overloaded{Scope: a.Scope(), Limit: a.Limit(), Used: a.Used(), Size: keyBytes}))
		return true
	}
	if k.key = d.keys.add(keyID{b, k.request.Key}, k); k.key == nil {
		c.Refuse("keys")
		d.turnAway(c, k, overloaded(&kernel.Overloaded{Scope: "keys", Limit: int64(d.limits.Keys), Used: int64(len(d.keys.order)), Size: 1}))
		return true
	}
	return false
}

// repeated settles a call whose key this desk knows, whether or not its server
// is there now: it joins the open call of the key, gets its result, waits until the
// start of one that was not made is taken back, or is told how it ended. It reports false for a call without a key, and for a key that
// the desk does not know; the ledger may.
func (d *desk) repeated(c *kernel.Ctx, k *call, b binding) bool {
	e := d.keys.entries[keyID{b, k.request.Key}]
	switch {
	case e == nil:
		return false
	case e.sha != k.sha:
		d.refuse(c, k, otherArguments())
	case e.call != nil:
		for _, a := range d.leave(k) {
			d.join(e.call, a)
		}
		e.call.stopOrphanage()
	case e.result != nil:
		for _, a := range d.leave(k) {
			d.share(c, a, e.result.result)
		}
	case e.undoing && len(d.calls) <= d.limits.Calls && c.Now().Sub(k.begun) < SettleTimeout:
		d.park(c, k)
	default:
		d.refuse(c, k, e.refusal)
	}
	return true
}

func otherArguments() *Refusal {
	return &Refusal{Code: BadArguments, Text: "this idempotency key was used with other arguments; use another key"}
}

// stopOrphanage takes back the timer of a call whose caller had gone.
func (k *call) stopOrphanage() {
	if k.phase == running {
		k.stopTimer()
	}
}

// add remembers a key; nil when every remembered key has an open call.
func (b *keyBook) add(id keyID, k *call) *keyEntry {
	if len(b.order) >= b.limits.Keys {
		// One whose start is being taken back is not forgotten: that would take back the start of the next call as well.
		at := slices.IndexFunc(b.order, func(e *keyEntry) bool { return e.call == nil && !e.undoing })
		if at < 0 {
			return nil
		}
		b.remove(b.order[at])
	}
	e := &keyEntry{id: id, sha: k.sha, call: k}
	b.entries[id] = e
	b.order = append(b.order, e)
	return e
}

func (b *keyBook) remove(e *keyEntry) {
	delete(b.entries, e.id)
	b.order = slices.DeleteFunc(b.order, func(x *keyEntry) bool { return x == e })
	if e.result != nil {
		b.drop(e.result)
	}
}

// lost notes that a key was started by an earlier life whose end was not seen.
func (b *keyBook) lost(e *keyEntry) {
	e.call, e.undoing = nil, false
	e.refusal = endNotSeen()
}

// endKey notes that a call ended without a result. One that was sent and may have
// had an effect is not repeated. Any other is as if it had not been: its start is
// taken back, and until that is done a repeat waits.
func (d *desk) endKey(c *kernel.Ctx, k *call, refusal *Refusal) {
	e := k.key
	if e == nil {
		return
	}
	e.call, e.undoing = nil, true
	e.refusal = &Refusal{Code: CancelledCall, Text: "the call before with this idempotency key was not made and is being taken back; repeat it"}
	switch {
	case refusal.Code == OutcomeUnknown:
		e.refusal, e.undoing = refusal, false
	case k.started:
		d.unstart(c, e, d.record(k))
	case k.phase != checking: // else what comes of the check takes it back
		d.keys.remove(e)
	}
}

// keepForKey remembers how a call with a key ended, and its result while there
// is room.
func (d *desk) keepForKey(c *kernel.Ctx, k *call, result Result) {
	e := k.key
	e.call = nil
	e.refusal = &Refusal{Code: OutcomeUnknown, Text: "the call with this idempotency key has ended and its result is no longer kept; use another key to repeat it"}
	size := int64(len(result.Raw))
	if size > d.limits.KeptBytes {
		return
	}
	lease, err := c.Account().Acquire(size)
	if err != nil {
		return
	}
	kp := &kept{result: Result{Raw: slices.Clone(result.Raw)}, lease: lease, key: e}
	e.result = kp
	d.keep(c, kp, d.limits.KeepResult)
}

func (d *desk) keep(c *kernel.Ctx, kp *kept, for_ time.Duration) {
	kp.stop = c.After(for_, forgetKept{kp})
	d.keys.kept = append(d.keys.kept, kp)
	d.keys.bytes += int64(len(kp.result.Raw))
	for _, old := range d.keys.kept[:len(d.keys.kept)-1] {
		if d.keys.bytes <= d.limits.KeptBytes {
			break
		}
		d.keys.empty(old)
	}
	d.keys.kept = slices.DeleteFunc(d.keys.kept, func(old *kept) bool { return old.forgotten() })
	if len(d.keys.kept) > d.limits.Keys {
		c.Refuse("kept_results")
		d.keys.drop(d.keys.kept[0])
	}
}

// drop forgets a kept result; what it had is freed.
func (b *keyBook) drop(kp *kept) {
	if b.take(kp) {
		kp.lease.Release()
	}
}

// take removes a kept result whose lease goes on to somebody else.
func (b *keyBook) take(kp *kept) bool {
	at := slices.Index(b.kept, kp)
	if at < 0 {
		return false
	}
	b.kept = slices.Delete(b.kept, at, at+1)
	b.bytes -= int64(len(kp.result.Raw))
	kp.stop()
	if kp.key != nil {
		kp.key.result = nil
	}
	return true
}

// forgetOrphans drops the results of orphans of a token, or of all.
func (b *keyBook) forgetOrphans(token [32]byte) {
	for _, kp := range slices.Clone(b.kept) {
		if kp.orphan != nil && (token == [32]byte{} || kp.orphan.request.Token == token) {
			b.drop(kp)
		}
	}
}

// record is the ledger's record of a call, with an empty key when it has none.
func (d *desk) record(k *call) KeyRecord {
	if k.key == nil {
		return KeyRecord{}
	}
	return KeyRecord{Session: d.cfg.Owner, Server: k.key.id.inLedger(), Tool: k.key.id.tool, Key: k.key.id.key, ArgsSHA: k.sha}
}

// unstart takes a key's start back out of the ledger: its call was not made.
func (d *desk) unstart(c *kernel.Ctx, e *keyEntry, record KeyRecord) {
	ledger := d.cfg.Ledger
	c.Go("forget key", func(ctx context.Context) kernel.Msg {
		return forgotten{key: e, err: ledger.Forget(ctx, record)}
	})
}

// forgotten says that a key's start was taken back, or could not be.
type forgotten struct {
	key *keyEntry
	err error
}

func (d *desk) forgotten(c *kernel.Ctx, m forgotten) {
	if m.err != nil {
		c.Log().Warn("an idempotency key could not be taken back; its repeats will be outcome_unknown", "error", m.err)
		d.keys.lost(m.key)
	} else {
		d.keys.remove(m.key)
	}
	d.undone(c, m.key)
}

// undone lets those go on that waited until a start was taken back.
func (d *desk) undone(c *kernel.Ctx, e *keyEntry) {
	for _, k := range d.open() {
		if k.phase == parked && k.request.Key == e.id.key {
			d.unpark(c, k)
		}
	}
}
