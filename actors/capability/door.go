package capability

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Delivery is the result of a call on its way to its caller. Whoever gets it says
// once what became of it: [Delivery.Done] or [Delivery.Missed].
type Delivery struct {
	Raw   []byte // the result object, to be carried as it is
	reads bool   // it is of a tool that only reads
	lease *kernel.Lease
	who   Caller
	call  Request // without its arguments
}

// Done says that the result was told, or will not be missed: what pays for it is freed.
func (d *Delivery) Done() { d.lease.Release() }

// Missed says that the result could not be told: the HTTP request had closed. An
// identical call gets it within the orphan window, as the contract has it.
func (d *Delivery) Missed() {
	m := undelivered{request: d.call, sha: d.call.sha, result: Result{Raw: d.Raw, reads: d.reads}, bytes: d.lease}
	desk := d.who.Desk.Current()
	if _, full := errors.AsType[*kernel.Overloaded](desk.Tell(m)); full { // the lease is freed; a repeat is told at least that the call was made
		m.result.Raw, m.bytes = nil, nil
		_ = desk.Signal(m)
	}
}

// redact takes out of the result what the operator's rules name. It runs beside the desk, which has others to serve.
func (d *Delivery) redact() *Refusal {
	rules := d.who.view().redact
	if rules == nil {
		return nil
	}
	out := rules(d.Raw)
	if len(out) == len(d.Raw) && (len(out) == 0 || &out[0] == &d.Raw[0]) {
		return nil
	}
	lease, refusal := afford(d.who.Account, int64(len(out)))
	d.lease.Release()
	d.Raw, d.lease = out, lease
	if refusal != nil {
		return &Refusal{Code: OutcomeUnknown, Full: refusal.Full, Text: "the call has ended and the pod has no room for its result; look at what it did before you repeat it"}
	}
	return nil
}

// Execute makes one call for a caller and waits for its end. It is called by
// the facade on the goroutine of the HTTP request, whose end ctx is: what then
// becomes of the call is the desk's to decide (contract, What ends a call).
//
// It returns the result and with it the lease that pays for it; or a *Refusal;
// or ctx's cause, when nobody waits any more. Every call is in the audit, also
// those that were refused. The request's lease is taken over, and its arguments are
// not kept.
func Execute(ctx context.Context, who Caller, r Request) (*Delivery, error) {
	body, refusal := unwrap(who, &r)
	defer body.Release()
	r.Token, r.sha = who.Token, argsSHA(r.Arguments)
	if refusal != nil {
		r.Bytes.Release()
		recordUnheard(who, r, refusal)
		return nil, refusal
	}
	asked := r.Asked
	r.Asked = nil
	p, err := who.Desk.Current().Ask(r)
	if asked != nil {
		asked()
	}
	r.Arguments, r.Bytes, r.Asides = nil, nil, Asides{} // the desk has them now
	if err != nil {
		refusal := who.view().startedBefore(ctx, r)
		if refusal == nil {
			refusal = notAsked(r.Name, err)
		}
		recordUnheard(who, r, refusal)
		return nil, refusal
	}
	defer p.Drop()
	m, lease, err := p.Wait(ctx)
	switch result, ok := m.(Result); {
	case err == nil && ok:
		d := &Delivery{Raw: result.Raw, reads: result.reads, lease: lease, who: who, call: r}
		if ctx.Err() != nil { // it closed while the answer was on its way
			d.Missed()
			return nil, context.Cause(ctx)
		}
		if refusal := d.redact(); refusal != nil {
			return nil, refusal
		}
		return d, nil
	case errors.As(err, &refusal):
		return nil, refusal
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	lease.Release()
	// The desk went without a word, so nobody can say whether the call was sent.
	return nil, &Refusal{Code: OutcomeUnknown, Text: "the pod lost track of the call; look at what it did before you repeat it"}
}

// notAsked is the refusal of a call that its desk did not take, and whose key,
// if it has one, was never started.
func notAsked(name string, err error) *Refusal {
	var full *kernel.Overloaded
	if errors.As(err, &full) {
		return overloaded(full)
	}
	return &Refusal{Code: Unknown, Text: unknownText(name)}
}

// recordUnheard is the audit of a call that no desk has seen.
func recordUnheard(who Caller, r Request, refusal *Refusal) {
	if who.Audit == nil {
		return
	}
	who.Audit.Record(Entry{Time: time.Now(), Event: EventRefused, Provider: "-", Tool: cut(r.Name), Session: who.Tag,
		ArgsSHA: r.digest(), Outcome: string(refusal.Code), IsError: true})
}

// Search finds capabilities for a caller. It waits for servers that are
// connecting, at most [SettleTimeout]. It returns the JSON text of the contract
// and the lease that pays for it; or a *Refusal; or ctx's cause.
func Search(ctx context.Context, who Caller, q Query) ([]byte, *kernel.Lease, error) {
	view := who.view()
	if view == emptyView || view.Unsettled() { // a desk that has just begun has published nothing yet
		if err := settle(ctx, who.Desk); err != nil {
			return nil, nil, err
		}
		view = who.view()
	}
	work, refusal := afford(who.Account, view.searchBytes())
	if refusal != nil {
		return nil, nil, refusal
	}
	defer work.Release()
	found, refusal := view.search(q)
	if refusal != nil {
		return nil, nil, refusal
	}
	lease, refusal := afford(who.Account, found.size)
	if refusal != nil {
		return nil, nil, refusal
	}
	text, _ := jsonrpc.ValidUTF8(found.text())
	lease.Shrink(int64(cap(text)))
	return text, lease, nil
}

// afford acquires on a caller's account, or says why that cannot be.
func afford(account *kernel.Account, n int64) (*kernel.Lease, *Refusal) {
	lease, err := account.Acquire(n)
	var full *kernel.Overloaded
	switch {
	case errors.As(err, &full):
		return nil, overloaded(full)
	case err != nil:
		return nil, &Refusal{Code: CancelledCall, Text: string(EndSession)}
	}
	return lease, nil
}

// settle waits until the desk says that nothing is connecting. A desk that does
// not answer is no reason to fail: what is there is shown.
func settle(ctx context.Context, desk kernel.Ref) error {
	p, err := desk.Current().Ask(Settle{})
	if err != nil {
		return nil
	}
	defer p.Drop()
	if _, _, err = p.Wait(ctx); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// view is what the caller's desk has published.
func (c Caller) view() *View {
	if c.View != nil {
		if v := c.View.Load(); v != nil {
			return v
		}
	}
	return emptyView
}
