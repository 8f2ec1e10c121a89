package capability

import "github.com/acpod/acpod/runtime/kernel"

// left says that a caller's HTTP request has closed, or that a search waits no
// more. A call that others wait for goes on. One that was not sent ends; so does
// one that only reads, or whose protocol says that closing cancels. Any other
// runs on as an orphan.
func (d *desk) left(c *kernel.Ctx, q *kernel.Question) {
	delete(d.settling, q.ID())
	k := d.askers[q]
	if k == nil {
		return
	}
	gone := d.drop(k, q)
	if len(k.askers) > 0 {
		return
	}
	if k.phase != running || gone.endsOnClose || k.cap.Tool.ReadOnly() {
		d.fail(c, k, &ended{EndRequest})
		return
	}
	k.former, k.until = gone, c.Now().Add(d.limits.OrphanWindow)
	k.timer = c.After(d.limits.OrphanWindow, orphanOver{k.id})
	c.Log().Debug("a call runs on without its caller", "call", k.id, "window", d.limits.OrphanWindow)
	d.unparkFor(c, k)
}

// drop takes one caller off a call.
func (d *desk) drop(k *call, q *kernel.Question) (gone asker) {
	delete(d.askers, q)
	for i, a := range k.askers {
		if a.question == q {
			gone = a
			k.askers = append(k.askers[:i:i], k.askers[i+1:]...)
			break
		}
	}
	return gone
}

func (d *desk) orphanOver(c *kernel.Ctx, id uint64) {
	if k := d.calls[id]; k != nil && len(k.askers) == 0 {
		k.timer = nil
		d.fail(c, k, &ended{EndRequest})
	}
}

// cancelRequest is notifications/cancelled: every call of that token whose
// caller gave that request id, also one that runs as an orphan.
func (d *desk) cancelRequest(c *kernel.Ctx, m CancelRequest) {
	if m.Token == [32]byte{} {
		c.Refuse("cancel")
		return
	}
	matches := func(a asker) bool { return a.token == m.Token && a.requestID == m.RequestID }
	for _, k := range d.open() {
		if len(k.askers) == 0 {
			if matches(k.former) {
				d.fail(c, k, &ended{EndRequest})
			}
			continue
		}
		for _, a := range append([]asker(nil), k.askers...) {
			if !matches(a) {
				continue
			}
			if len(k.askers) == 1 {
				d.fail(c, k, &ended{EndRequest})
				break
			}
			d.drop(k, a.question)
			a.question.Fail(Outcome(&ended{EndRequest}, k.phase == running, k.cap.Tool != nil && k.cap.Tool.ReadOnly()))
		}
	}
}

// continued has a call known by the request that waits for it now.
func (d *desk) continued(m Continued) {
	for _, k := range d.calls {
		for i, a := range k.askers {
			if a.token == m.Token && a.requestID == m.Was {
				k.askers[i].requestID = m.Is
			}
		}
	}
}

// endCalls ends the calls of a session or of one token.
func (d *desk) endCalls(c *kernel.Ctx, m EndCalls) {
	if m.Reason == EndToken && m.Token != [32]byte{} {
		if d.dead.add(m.Token, c.Now()) {
			c.Refuse("revoked_tokens")
		}
	}
	for _, k := range d.open() {
		if m.Token == [32]byte{} || k.request.Token == m.Token {
			d.fail(c, k, &ended{m.Reason})
		}
	}
	d.keys.forgetOrphans(m.Token)
}
