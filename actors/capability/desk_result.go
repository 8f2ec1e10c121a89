package capability

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// answered is the end of a call that its source told.
func (d *desk) answered(c *kernel.Ctx, a kernel.Answer) {
	if r, ok := d.found[a.Ticket]; ok {
		a.Lease.Release()
		d.discovered(c, a.Ticket, r)
		return
	}
	k := d.tickets[a.Ticket]
	if k == nil {
		a.Lease.Release()
		return
	}
	delete(d.tickets, a.Ticket)
	k.ticket = kernel.Ticket{}
	result, ok := a.Msg.(Result)
	var fault *jsonrpc.Error
	var unsent *NotSent
	switch {
	case a.Err == nil && ok && int64(len(result.Raw)) > d.limits.ResultBytes:
		a.Lease.Release()
		c.Refuse("result_bytes")
		d.fail(c, k, &TooLarge{Size: int64(len(result.Raw)), Limit: d.limits.ResultBytes})
	case a.Err == nil && ok:
		if err := a.Lease.Move(c.Account()); err != nil { // from what all sessions have in common to what this one has
			a.Lease.Release()
			c.Refuse("result")
			d.fail(c, k, err)
			return
		}
		is, object := isError(result.Raw)
		if !object {
			a.Lease.Release()
			d.faulted(c, k, &jsonrpc.Error{Code: jsonrpc.Internal, Message: "the server answered without a result object"})
			return
		}
		d.deliver(c, k, result, a.Lease, OutcomeOK, is)
	case errors.As(a.Err, &fault) && !errors.As(a.Err, &unsent):
		d.faulted(c, k, fault) // in memory of its own
		a.Lease.Release()
	default:
		a.Lease.Release()
		cause := a.Err
		if cause == nil {
			cause = ErrDetached
		}
		d.fail(c, k, cause)
	}
}

// faulted ends a call that its server answered with an error.
func (d *desk) faulted(c *kernel.Ctx, k *call, fault *jsonrpc.Error) {
	if k.cap.configured {
		fault = withoutSecrets(fault)
	}
	lease, err := c.Account().Acquire(int64(len(fault.Message) + 2*fault.Size() + 256))
	if err != nil { // what the answer's reserve pays for
		c.Refuse("result")
		fault = &jsonrpc.Error{Code: fault.Code, Message: oneLine(fault.Message)}
	}
	raw := errorResult(fault)
	lease.Shrink(int64(len(raw)))
	d.deliver(c, k, Result{Raw: raw}, lease, OutcomeError, true)
}

// deliver ends a call with a result: for its callers, for a repeat of its key,
// or for the one who may come back for an orphan.
func (d *desk) deliver(c *kernel.Ctx, k *call, result Result, lease *kernel.Lease, outcome string, isErr bool) {
	d.exit(c, k, outcome, isErr, len(result.Raw))
	result.reads = k.cap.Tool.ReadOnly()
	askers := d.leave(k)
	if k.key != nil {
		d.keepForKey(c, k, result)
		if len(askers) == 0 {
			d.keepEnd(c, k, kept{of: k.key})
		}
	} else if len(askers) == 0 {
		d.keepForOrphan(c, k, result, lease)
		return
	}
	if len(askers) == 0 {
		lease.Release()
		return
	}
	for _, a := range askers[1:] {
		d.share(c, a, result)
	}
	if !askers[0].question.Answer(result, lease) && k.key == nil {
		d.missed(c, k, askers[0], result)
	}
}

// missed is a result whose caller went while it was on its way: it is kept as an
// orphan's would be.
func (d *desk) missed(c *kernel.Ctx, k *call, gone asker, result Result) {
	if gone.endsOnClose || k.cap.Tool.ReadOnly() {
		return
	}
	k.until = c.Now().Add(d.limits.OrphanWindow)
	d.keepAgain(c, &kept{orphan: k.remains()}, result)
	d.unparkFor(c, k)
}

// share answers one more caller with bytes of its own.
func (d *desk) share(c *kernel.Ctx, a asker, result Result) {
	lease, err := c.Account().Acquire(int64(len(result.Raw)))
	if err != nil {
		c.Refuse("result")
		a.question.Fail(&Refusal{Code: OutcomeUnknown, Text: "the call has ended and the pod has no room for its result; repeat it with the same idempotency key"})
		return
	}
	a.question.Answer(Result{Raw: slices.Clone(result.Raw)}, lease)
}

// fail ends a call without a result, at once and down to its server.
func (d *desk) fail(c *kernel.Ctx, k *call, cause error) {
	sent := k.phase == running
	if k.cap.configured {
		cause = &explained{cause}
	}
	refusal := Outcome(cause, sent, sent && k.cap.Tool.ReadOnly())
	switch {
	case errors.Is(cause, ErrTimeout):
		refusal.Text += fmt.Sprintf(" (server %s, after %v)", jsonrpc.Show(k.cap.Server), c.Now().Sub(k.begun).Round(time.Millisecond))
	case refusal.Full != nil && refusal.Full.Scope == "result_bytes":
		if argument := sizeArgument(k.cap.Tool.InputSchema); argument != "" {
			refusal.Text += "; its argument " + argument + " asks for less"
		}
	}
	if by := (*ended)(nil); sent && len(k.askers) == 0 && refusal.Code == OutcomeUnknown && !errors.As(cause, &by) {
		d.keepEnd(c, k, kept{refusal: refusal}) // nobody is there to be told, and nobody has ended it
	}
	d.refuse(c, k, refusal)
}

// refuse ends a call with a refusal for all its callers.
func (d *desk) refuse(c *kernel.Ctx, k *call, refusal *Refusal) {
	if d.calls[k.id] != k {
		return // it ended meanwhile
	}
	if !k.ticket.IsZero() {
		c.Cancel(k.ticket)
		delete(d.tickets, k.ticket)
	}
	if k.phase == running {
		d.exit(c, k, string(refusal.Code), true, 0)
	} else {
		entry := d.entry(k)
		entry.Event, entry.Time, entry.Duration = EventRefused, c.Now(), c.Now().Sub(k.begun)
		entry.Outcome, entry.IsError = string(refusal.Code), true
		d.cfg.Audit.Record(entry)
		c.Refuse(string(refusal.Code))
	}
	d.endKey(c, k, refusal)
	for _, a := range d.leave(k) {
		a.question.Fail(refusal)
	}
	d.unparkFor(c, k)
}

// exit writes the end of a sent call into the audit and pays what was owed. A desk that was abandoned owes it no more:
// its release has written and counted that end.
func (d *desk) exit(c *kernel.Ctx, k *call, outcome string, isErr bool, bytes int) {
	if !k.owed.Discharge() {
		return
	}
	d.cfg.Open.Add(-1)
	d.count(c, -1)
	entry := d.entry(k)
	entry.Event, entry.Time, entry.Duration = EventExit, c.Now(), c.Now().Sub(k.begun)
	entry.Outcome, entry.IsError, entry.Bytes = outcome, isErr, bytes
	d.cfg.Audit.Record(entry)
}

// entry is what all records of a call share.
func (d *desk) entry(k *call) Entry {
	e := Entry{Call: k.id, Provider: "-", Tool: cut(k.request.Name), Session: d.cfg.Tag, ArgsSHA: k.sha}
	if k.provider != "" {
		e.Provider, e.Server, e.Filtered = k.provider, k.server, k.filtered
	}
	if k.cap.Tool != nil {
		e.Provider, e.Server, e.Tool = k.cap.Provider, k.cap.Server, k.cap.Tool.Name
	}
	return e
}

// leave takes a call out of the books and returns who waits for it.
func (d *desk) leave(k *call) []asker {
	delete(d.calls, k.id)
	k.stopTimer()
	k.request.Bytes.Release()
	askers := k.askers
	for _, a := range askers {
		delete(d.askers, a.question)
	}
	k.askers = nil
	return askers
}
