package capability

import (
	"slices"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// phase is how far a call has come.
type phase uint8

const (
	waiting  phase = iota // for servers that are connecting
	parked                // for a moment, whether the caller of the same call has just gone, or until its key may be used again
	checking              // its arguments, and its key in the ledger
	refusing              // unless its key was started before
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

	need     map[int]struct{} // configured servers that it waits for
	want     Want             // … and what it asked of them
	tried    map[int]struct{} // … and has waited for
	server   string           // who is meant by its name, when that is known and there is no capability
	provider string
	filtered bool // its server's filter leaves out what was asked for
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

// begin takes a new request: it joins an orphan, gets its kept result, is told
// of the first call of its key, or becomes a call. Whoever repeats a call under
// its key asks what became of it, so the key comes before everything that speaks
// of this request alone: no room for it, no server for it.
func (d *desk) begin(c *kernel.Ctx, r Request) {
	q := c.Question()
	if q == nil {
		r.Bytes.Release()
		return
	}
	a := asker{question: q, token: r.Token, requestID: r.RequestID, endsOnClose: r.EndsOnClose}
	k := &call{id: q.ID(), request: r, args: arguments(r.Arguments), sha: r.digest(), begun: c.Now()}
	if d.dead.has(r.Token) {
		d.enter(k, a)
		d.refuse(c, k, &Refusal{Code: Unknown, Text: unknownText(r.Name)})
		return
	}
	done, refusal := d.rejoin(c, k, a)
	if done {
		r.Bytes.Release()
		return
	}
	d.enter(k, a)
	if refusal != nil {
		d.refuse(c, k, refusal)
		return
	}
	if b, ok := d.names.find(r.Name); ok && d.repeated(c, k, b) {
		return
	}
	if len(d.calls) > d.limits.Calls {
		c.Refuse("calls")
		d.turnAway(c, k, overloaded(&kernel.Overloaded{Scope: "calls", Limit: int64(d.limits.Calls), Used: int64(len(d.calls) - 1), Size: 1, RetryAfter: time.Second}))
		return
	}
	if d.twin(k) != nil {
		d.park(c, k)
		return
	}
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
	for {
		r := d.view.resolve(k.request.Name, k.waited, k.tried)
		k.server, k.provider, k.filtered = r.server, r.provider, r.filtered
		switch {
		case r.use != nil:
			if !d.use(c, k.request.Name, *r.use) {
				d.turnAway(c, k, noRoomForNames(c.Account()))
				return
			}
		case len(r.wake) > 0:
			if d.wake(c, k, r) {
				d.arm(c, k)
				return
			}
			d.nameFor(c, k.request.Name) // what is listed may be named
		case r.Wait:
			d.arm(c, k)
			return
		case r.Refusal != nil:
			if !d.nameFor(c, k.request.Name) {
				d.turnAway(c, k, r.Refusal)
				return
			}
		default:
			k.stopTimer()
			k.cap = r.Capability
			d.check(c, k)
			return
		}
	}
}

// arm bounds a call's wait.
func (d *desk) arm(c *kernel.Ctx, k *call) {
	if k.timer == nil {
		k.timer = c.After(SettleTimeout, waitOver{k.id})
	}
}

func (d *desk) waited(c *kernel.Ctx, id uint64) {
	if k := d.calls[id]; k != nil && k.phase == waiting {
		k.timer, k.need = nil, nil
		d.nameFor(c, k.request.Name)
		d.resolve(c, k, true)
	}
}

func (k *call) stopTimer() {
	if k.timer != nil {
		k.timer()
		k.timer = nil
	}
}
