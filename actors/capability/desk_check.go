package capability

import (
	"context"
	"errors"
	"strconv"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

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
	schemas, tool, args, ledger, account := d.cfg.Schemas, k.cap.Tool, k.args, d.cfg.Ledger, c.Account()
	out := checked{call: k.id, key: k.key, record: d.record(k)}
	c.Go("arguments", func(ctx context.Context) kernel.Msg {
		out.unchecked, out.err = schemas.Check(ctx, account, tool.InputSchema, args)
		switch {
		case out.key == nil:
		case out.err == nil:
			out.seen, out.down = ledger.Start(ctx, out.record)
		default:
			out.seen = ledger.Seen(ctx, out.record)
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
	var bad *ArgumentError
	switch {
	case m.seen != nil && m.seen.ArgsSHA != k.sha:
		d.refuse(c, k, otherArguments())
		return
	case m.seen != nil:
		d.keys.lost(k.key)
		k.key = nil
		d.refuse(c, k, endNotSeen())
		return
	case errors.As(m.err, &bad):
		d.refuse(c, k, &Refusal{Code: BadArguments, Text: bad.Text, Schema: k.cap.Tool.InputSchema})
		return
	case m.err != nil:
		d.fail(c, k, m.err)
		return
	case m.down != nil:
		c.Log().Warn("an idempotency key could not be recorded; the call was refused", "error", m.down)
		d.refuse(c, k, &Refusal{Code: TooMuch, Text: "the pod could not record the idempotency key; repeat the call later"})
		return
	}
	r := d.view.Resolve(k.request.Name, true)
	if r.Refusal != nil {
		k.server, k.provider, k.filtered = r.server, r.provider, r.filtered
		d.refuse(c, k, r.Refusal)
		return
	}
	if now := r.Capability; now.place() != k.cap.place() || now.Tool.Name != k.cap.Tool.Name {
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
	audit, open, clock := d.cfg.Audit, d.cfg.Open, c.Now
	begun := c.Now()
	k.begun = begun
	open.Add(1)
	k.owed = c.Own("call "+strconv.FormatUint(k.id, 10), func(_ context.Context, _ error) {
		open.Add(-1)
		entry.Event, entry.Time, entry.Duration = EventExit, clock(), clock().Sub(begun)
		entry.Outcome, entry.IsError = string(OutcomeUnknown), true
		audit.Record(entry)
	})
	if k.owed.Owed() { // else this desk was abandoned, and speaks for nobody
		d.count(c, 1)
	}
	out := Call{ID: k.id, Tool: k.cap.Tool.Name, Arguments: k.args, Deadline: begun.Add(d.limits.Timeout),
		Limit: begun.Add(d.limits.CallMax), Owner: d.cfg.Owner, Asides: k.request.Asides, Bytes: k.request.Bytes}
	k.args, k.request.Arguments, k.request.Bytes = nil, nil, nil // the call has them now
	source, err := d.server(c, k.cap)
	if err != nil {
		out.Bytes.Release()
		d.fail(c, k, &NotSent{err})
		return
	}
	ticket, err := source.Call(c, out)
	if err != nil {
		d.fail(c, k, &NotSent{err})
		return
	}
	k.ticket = ticket
	d.tickets[ticket] = k
}

// count keeps the number of the session's calls in flight: its turn is not idle
// while a call is open.
func (d *desk) count(c *kernel.Ctx, by int) {
	before := d.sent
	d.sent += by
	c.Attr("calls", d.sent)
	if (before == 0) != (d.sent == 0) {
		_ = c.Parent().Signal(InFlight{Open: d.sent > 0}) // a parent that is gone needs no telling
	}
}
