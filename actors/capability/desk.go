package capability

import (
	"fmt"

	"github.com/acpod/acpod/runtime/kernel"
)

// desk owns the names of one session, its calls in flight, the keys that were
// used, and the results that are kept for repeats. All of it belongs to its
// turns; only the view is read from outside.
type desk struct {
	cfg      DeskConfig
	limits   DeskLimits
	servers  map[string]*served
	declared map[string]struct{}
	dead     deadTokens
	names    names
	view     *View
	bill     bill

	calls    map[uint64]*call
	askers   map[*kernel.Question]*call
	tickets  map[kernel.Ticket]*call
	sent     int // calls that were sent and are open
	orphans  int // of them without a caller, as shown
	keys     keyBook
	settling map[uint64]*settler

	base      *baseNames // whose names the desk has, while it pays for them
	naming    bool
	lists     []*List // of the configured servers, as their tools were named
	pinning   pinning
	pinned    map[*List]struct{} // of the session's own servers: given to the pins
	instances map[int]instance
	finding   map[int]kernel.Ticket // configured servers that were asked to list
	found     map[kernel.Ticket]request
	slow      map[int]*Toolset // configured servers that a search has waited for in vain, as they stood then
}

func newDesk(cfg DeskConfig) *desk {
	return &desk{
		cfg: cfg, limits: cfg.Limits,
		servers: map[string]*served{}, declared: map[string]struct{}{},
		calls: map[uint64]*call{}, askers: map[*kernel.Question]*call{}, tickets: map[kernel.Ticket]*call{},
		settling: map[uint64]*settler{},
		naming:   cfg.Roster.size() == 0,
		pinning:  pinning{pins: cfg.Pins, scope: cfg.PinScope},
	}
}

// Messages of the desk to itself.
type (
	settleOver struct{ question uint64 }     // a Settle waited long enough
	waitOver   struct{ call uint64 }         // a call waited long enough for its name
	retryOver  struct{ settle, call uint64 } // one of them waited long enough for servers that have failed before
	orphanOver struct{ call uint64 }         // nobody came back for a call
	forgetKept struct{ kept *kept }          // a kept result is old
)

// Start takes over what the generation before had published.
func (d *desk) Start(c *kernel.Ctx) error {
	d.keys = newKeyBook(d.limits)
	d.bill.free = d.cfg.Owner == "-"
	if d.cfg.Pins != nil && d.cfg.PinScope == "" {
		d.pinning.own = sessionPinsOf(d.cfg.OwnPins)
	}
	if before := d.cfg.View.Load(); before != nil {
		d.view = before
		d.restore(before)
		if !d.bill.pay(c.Account(), d.remembered(), len(d.declared), 0) {
			c.Refuse("names_unpaid") // they keep their meaning all the same: they were shown
		}
	}
	d.publish(c)
	return nil
}

func (d *desk) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case Request:
		d.begin(c, m)
	case kernel.Answer:
		d.answered(c, m)
	case forgotten:
		d.forgotten(c, m)
	case checked:
		d.checked(c, m)
	case turnedAway:
		d.turnedAway(c, m)
	case kernel.Cancelled:
		d.left(c, m.Question)
	case CancelRequest:
		d.cancelRequest(c, m)
	case Continued:
		d.continued(m)
	case EndCalls:
		d.endCalls(c, m)
	case waitOver:
		d.waited(c, m.call)
	case undelivered:
		d.undelivered(c, m)
	case parkOver:
		d.parkOver(c, m.call)
	case orphanOver:
		d.orphanOver(c, m.call)
	case forgetKept:
		d.keys.drop(m.kept)
	case Settle:
		d.settle(c)
	case settleOver:
		d.waitedInVain(m.question)
		d.settleOver(c, m.question)
	case retryOver:
		d.retryOver(c, m)
	case kernel.Exited:
		d.exited(c, m)
	case kernel.Restarted:
		d.restarted(c, m)
	case Prepare:
		d.prepare(c, m)
	case Declared:
		for _, name := range m.Names {
			d.declare(c, name)
		}
		d.publish(c)
	case Attach:
		d.attach(c, m.Source)
	case Detach:
		d.detach(c, m.Source)
	case Changed:
		d.publish(c)
	default:
		c.Refuse("message")
		c.Log().Warn("dropped a message that a desk does not know", "type", fmt.Sprintf("%T", m))
	}
	d.showOrphans(c)
	return nil
}

// showOrphans has the tree show how many calls run on without a caller.
func (d *desk) showOrphans(c *kernel.Ctx) {
	n := 0
	for _, k := range d.calls {
		if k.phase == running && len(k.askers) == 0 {
			n++
		}
	}
	if n != d.orphans {
		d.orphans = n
		c.Attr("orphans", n)
	}
}

// Stop ends every call with a word to its caller.
func (d *desk) Stop(c *kernel.Ctx, cause error) {
	for _, k := range d.open() {
		d.fail(c, k, &ended{EndDesk})
	}
}

// Free gives back all that the desk holds: requests of calls that an abandoned
// desk never ended, kept results, the last lists, and its bill.
func (d *desk) Free(error) {
	for _, k := range d.calls {
		k.request.Bytes.Release()
	}
	for _, kp := range d.keys.kept {
		kp.lease.Release()
	}
	if d.cfg.View.Load() == d.view { // else a successor has the lists
		d.releaseLists()
	}
	d.bill.lease.Release()
	d.cfg.Roster.leave(d.base)
}
