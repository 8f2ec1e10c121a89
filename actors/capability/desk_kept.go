package capability

import "github.com/acpod/acpod/runtime/kernel"

// endBytes is charged for the end of a call that is remembered without its result.
const endBytes = 2 << 10

// remains is what is remembered of a call that has ended: by what a repeat of it is known, and until when.
func (k *call) remains() *call {
	return &call{request: Request{Name: k.request.Name, Token: k.request.Token, Key: k.request.Key}, sha: k.sha, until: k.until}
}

// keepForOrphan keeps the result of a call whose caller has gone, for an
// identical call within what is left of the orphan window.
func (d *desk) keepForOrphan(c *kernel.Ctx, k *call, result Result, lease *kernel.Lease) {
	if left := k.until.Sub(c.Now()); left > 0 {
		d.keep(c, &kept{result: result, lease: lease, orphan: k.remains()}, left)
		return
	}
	lease.Release()
}

// keepEnd remembers the end of a call whose caller has gone and was told nothing: an identical call within what is left of the orphan
// window is told that, once, and not made. Without it a write that may have had its effect would be made again, and nobody would know.
func (d *desk) keepEnd(c *kernel.Ctx, k *call, end kept) {
	left := k.until.Sub(c.Now())
	if left <= 0 || k.request.Token == [32]byte{} {
		return
	}
	lease, err := c.Account().Acquire(endBytes)
	if err != nil {
		c.Refuse("kept_results")
		return
	}
	end.lease, end.orphan = lease, k.remains()
	d.keep(c, &end, left)
}

// resultNotKept is what the repeat of a call is told that has ended well, and of which no result is there.
func resultNotKept() *Refusal {
	return &Refusal{Code: OutcomeUnknown, Text: "this call was made before and has ended, and the pod had no room to keep its result; look at what it did before you repeat it"}
}

// empty makes room: of a kept result there is left, for an orphan, that it has ended. A key knows that by itself.
func (b *keyBook) empty(kp *kept) {
	if len(kp.result.Raw) == 0 {
		return
	}
	b.bytes -= int64(len(kp.result.Raw))
	kp.result = Result{}
	if kp.orphan != nil {
		kp.lease.Shrink(min(kp.lease.Size(), endBytes))
		kp.refusal = resultNotKept()
		return
	}
	kp.lease.Release()
	kp.stop()
	kp.key.result, kp.key = nil, nil
}

// forgotten reports that nothing is left of it.
func (kp *kept) forgotten() bool { return kp.key == nil && kp.orphan == nil }

// told answers the repeat of an orphan with what was kept. refusal: it is to be refused, and why.
func (d *desk) told(c *kernel.Ctx, kp *kept, a asker) (refusal *Refusal) {
	d.keys.take(kp)
	switch of := kp.of; {
	case kp.refusal != nil:
		refusal = kp.refusal
	case of == nil:
		if result := kp.result; !a.question.Answer(result, kp.lease) && !a.endsOnClose {
			d.keepAgain(c, kp, result) // whoever came for it has gone as well
		}
		return nil
	case of.result != nil:
		d.share(c, a, of.result.result)
	default:
		refusal = of.refusal
	}
	kp.lease.Release()
	return refusal
}

// keepAgain keeps a result once more, of which the lease is gone.
func (d *desk) keepAgain(c *kernel.Ctx, kp *kept, result Result) {
	if lease, err := c.Account().Acquire(int64(len(result.Raw))); err == nil {
		d.keepForOrphan(c, kp.orphan, result, lease)
		return
	}
	d.keepEnd(c, kp.orphan, kept{refusal: resultNotKept()})
}
