package capability

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// phase is how far a call has come.
type phase uint8

const (
	waiting  phase = iota // for servers that are connecting
	checking              // its arguments, and its key in the ledger
	ready                 // checked and about to be sent
	running               // sent, its answer is open
)

// call is one call in flight. Several callers may wait for one with a key.
type call struct {
	id      uint64 // unique in the kernel
	request Request
	args    []byte // what is sent; nil once it was
	sha     [32]byte
	phase   phase
	waited  bool // for connecting servers, long enough
	begun   time.Time
	cap     Capability
	ticket  kernel.Ticket
	askers  []asker   // who waits; none = an orphan
	former  asker     // who went last, while it is an orphan
	until   time.Time // the end of its orphanage
	timer   func()    // takes back the timer of its phase or of its orphanage
	owed    *kernel.Obligation
	key     *keyEntry // nil = none
	started bool      // its key stands in the ledger
}

// asker is one present caller.
type asker struct {
	question    *kernel.Question
	token       [32]byte
	requestID   string
	endsOnClose bool
}

// open is every call in the order of their beginning.
func (d *desk) open() []*call {
	list := make([]*call, 0, len(d.calls))
	for _, k := range d.calls {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *call) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return list
}

// begin takes a new request: it joins an orphan, gets its kept result, or
// becomes a call.
func (d *desk) begin(c *kernel.Ctx, r Request) {
	q := c.Question()
	if q == nil {
		r.Bytes.Release()
		return
	}
	a := asker{question: q, token: r.Token, requestID: r.RequestID, endsOnClose: r.EndsOnClose}
	k := &call{id: q.ID(), request: r, args: arguments(r.Arguments), sha: argsSHA(r.Arguments), begun: c.Now()}
	if d.rejoin(c, k, a) {
		r.Bytes.Release()
		return
	}
	if len(d.calls) >= d.limits.Calls {
		d.enter(k, a)
		c.Refuse("calls")
		d.fail(c, k, &kernel.Overloaded{Scope: "calls", Limit: int64(d.limits.Calls), Used: int64(len(d.calls) - 1), Size: 1, RetryAfter: time.Second})
		return
	}
	d.enter(k, a)
	d.resolve(c, k, false)
}

// enter registers a call with its first caller.
func (d *desk) enter(k *call, a asker) {
	d.calls[k.id] = k
	d.join(k, a)
}

// join lets one more caller wait for a call.
func (d *desk) join(k *call, a asker) {
	k.askers = append(k.askers, a)
	d.askers[a.question] = k
}

// resolve asks the view what the name leads to and goes on accordingly.
func (d *desk) resolve(c *kernel.Ctx, k *call, waited bool) {
	k.waited = k.waited || waited
	r := d.view.Resolve(k.request.Name, k.waited)
	switch {
	case r.Refusal != nil:
		d.refuse(c, k, r.Refusal)
	case r.Wait:
		if k.timer == nil {
			k.timer = c.After(SettleTimeout, waitOver{k.id})
		}
	default:
		k.stopTimer()
		k.cap = r.Capability
		d.check(c, k)
	}
}

func (d *desk) waited(c *kernel.Ctx, id uint64) {
	if k := d.calls[id]; k != nil && k.phase == waiting {
		k.timer = nil
		d.resolve(c, k, true)
	}
}

func (k *call) stopTimer() {
	if k.timer != nil {
		k.timer()
		k.timer = nil
	}
}

// checked is the result of checking a call's arguments, beside the turns.
type checked struct {
	call      uint64
	key       *keyEntry
	record    KeyRecord
	unchecked string     // why the schema had no say
	err       error      // what is wrong with the arguments
	seen      *KeyRecord // an earlier start of the same key
	down      error      // the ledger failed
}

// check looks at the key, and then at the arguments on a goroutine of its own,
// because a schema of a stranger decides how long that takes.
func (d *desk) check(c *kernel.Ctx, k *call) {
	k.phase = checking
	if k.request.Key != "" && d.claimKey(c, k) {
		return
	}
	schema, args, ledger := k.cap.Tool.schema, k.args, d.cfg.Ledger
	out := checked{call: k.id, key: k.key, record: d.record(k)}
	c.Go("arguments", func(ctx context.Context) kernel.Msg {
		if out.unchecked, out.err = schema().Check(ctx, args); out.err == nil && out.key != nil {
			out.seen, out.down = ledger.Start(ctx, out.record)
		}
		return out
	})
}

// started reports that the check wrote the key into the ledger.
func (m checked) started() bool {
	return m.key != nil && m.err == nil && m.down == nil && m.seen == nil
}

// checked sends a call whose arguments are sound. What may be called is judged
// again: lists and servers may have changed meanwhile.
func (d *desk) checked(c *kernel.Ctx, m checked) {
	k := d.calls[m.call]
	if k == nil || k.phase != checking {
		if m.started() { // it was ended while it was being checked
			d.unstart(c, m.key, m.record)
		} else if m.key != nil {
			d.keys.remove(m.key)
		}
		return
	}
	k.phase, k.started = ready, m.started()
	if m.unchecked != "" {
		c.Refuse("unchecked_arguments") // passed on, and counted
		c.Log().Warn("arguments were passed on unchecked; the server checks them itself", "server", jsonrpc.Show(k.cap.Server), "tool", jsonrpc.Show(k.cap.Tool.Name), "why", m.unchecked)
	}
	switch {
	case m.err != nil:
		d.refuse(c, k, &Refusal{Code: BadArguments, Text: m.err.Error()})
		return
	case m.down != nil:
		c.Log().Warn("an idempotency key could not be recorded; the call was refused", "error", m.down)
		d.refuse(c, k, &Refusal{Code: TooMuch, Text: "the pod could not record the idempotency key; repeat the call later"})
		return
	case m.seen != nil && m.seen.ArgsSHA != k.sha:
		d.refuse(c, k, otherArguments())
		return
	case m.seen != nil:
		d.keys.lost(k.key)
		k.key = nil
		d.refuse(c, k, &Refusal{Code: OutcomeUnknown, Text: "a call with this idempotency key was started before and its end was not seen; look at what it did and use another key to repeat it"})
		return
	}
	r := d.view.Resolve(k.request.Name, true)
	if r.Refusal != nil {
		d.refuse(c, k, r.Refusal)
		return
	}
	if now := r.Capability; now.Server != k.cap.Server || now.Tool.Name != k.cap.Tool.Name {
		d.refuse(c, k, &Refusal{Code: Unknown, Text: unknownText(k.request.Name)})
		return
	}
	k.cap = r.Capability
	d.send(c, k)
}

// send hands a call to its source. From here on its end is in the audit whatever
// happens to this desk.
func (d *desk) send(c *kernel.Ctx, k *call) {
	entry := d.entry(k)
	entry.Event, entry.Time = EventCall, c.Now()
	d.cfg.Audit.Record(entry)
	k.phase = running
	d.count(c, 1)
	audit, open, clock := d.cfg.Audit, d.cfg.Open, c.Now
	begun := c.Now()
	k.begun = begun
	k.owed = c.Own("call "+strconv.FormatUint(k.id, 10), func(_ context.Context, _ error) {
		open.Add(-1)
		entry.Event, entry.Time, entry.Duration = EventExit, clock(), clock().Sub(begun)
		entry.Outcome, entry.IsError = string(OutcomeUnknown), true
		audit.Record(entry)
	})
	out := Call{ID: k.id, Tool: k.cap.Tool.Name, Arguments: k.args, Deadline: begun.Add(d.limits.Timeout),
		Limit: begun.Add(d.limits.CallMax), Progress: k.request.Progress, Bytes: k.request.Bytes}
	k.args, k.request.Arguments, k.request.Bytes = nil, nil, nil // the call has them now
	ticket, err := k.cap.source.Call(c, out)
	if err != nil {
		d.fail(c, k, &NotSent{err})
		return
	}
	k.ticket = ticket
	d.tickets[ticket] = k
}

// count keeps the numbers of calls in flight: the pod's, and the session's,
// whose turn is not idle while a call is open.
func (d *desk) count(c *kernel.Ctx, by int) {
	d.cfg.Open.Add(int64(by))
	before := d.sent
	d.sent += by
	c.Attr("calls", d.sent)
	if (before == 0) != (d.sent == 0) {
		_ = c.Parent().Signal(InFlight{Open: d.sent > 0}) // a parent that is gone needs no telling
	}
}

// answered is the end of a call that its source told.
func (d *desk) answered(c *kernel.Ctx, a kernel.Answer) {
	k := d.tickets[a.Ticket]
	if k == nil {
		a.Lease.Release()
		return
	}
	delete(d.tickets, a.Ticket)
	k.ticket = kernel.Ticket{}
	result, ok := a.Msg.(Result)
	var fault *jsonrpc.Error
	switch {
	case a.Err == nil && ok:
		is, object := isError(result.Raw)
		if !object {
			a.Lease.Release()
			fault = &jsonrpc.Error{Code: jsonrpc.Internal, Message: "the server answered without a result object"}
			d.deliver(c, k, Result{Raw: errorResult(fault)}, nil, OutcomeError, true)
			return
		}
		d.deliver(c, k, result, a.Lease, OutcomeOK, is)
	case errors.As(a.Err, &fault):
		a.Lease.Release()
		d.deliver(c, k, Result{Raw: errorResult(fault)}, nil, OutcomeError, true)
	default:
		a.Lease.Release()
		cause := a.Err
		if cause == nil {
			cause = ErrDetached
		}
		d.fail(c, k, cause)
	}
}

// deliver ends a call with a result: for its callers, for a repeat of its key,
// or for the one who may come back for an orphan.
func (d *desk) deliver(c *kernel.Ctx, k *call, result Result, lease *kernel.Lease, outcome string, isErr bool) {
	d.exit(c, k, outcome, isErr, len(result.Raw))
	askers := d.leave(k)
	if k.key != nil {
		d.keepForKey(c, k, result)
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
	if lease, err := c.Account().Acquire(int64(len(result.Raw))); err == nil {
		k.until = c.Now().Add(d.limits.OrphanWindow)
		d.keepForOrphan(c, k, result, lease)
	}
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
	d.refuse(c, k, Outcome(cause, sent, sent && k.cap.Tool.ReadOnly()))
}

// refuse ends a call with a refusal for all its callers.
func (d *desk) refuse(c *kernel.Ctx, k *call, refusal *Refusal) {
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
}

// exit writes the end of a sent call into the audit and pays what was owed.
func (d *desk) exit(c *kernel.Ctx, k *call, outcome string, isErr bool, bytes int) {
	k.owed.Discharge()
	d.count(c, -1)
	entry := d.entry(k)
	entry.Event, entry.Time, entry.Duration = EventExit, c.Now(), c.Now().Sub(k.begun)
	entry.Outcome, entry.IsError, entry.Bytes = outcome, isErr, bytes
	d.cfg.Audit.Record(entry)
}

// entry is what all records of a call share.
func (d *desk) entry(k *call) Entry {
	e := Entry{Call: k.id, Provider: "-", Tool: cut(k.request.Name), Session: d.cfg.Tag, ArgsSHA: k.sha}
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
