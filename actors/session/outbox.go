package session

import (
	"errors"
	"sync/atomic"

	"github.com/acpod/acpod/runtime/kernel"
)

// outbox is what one session says to its client, in order: what was offered and is on its way, what waits because the
// client's stream is full, and what is kept because there is no client. It belongs to the session's actor; only an
// item's fate is reported from elsewhere.
//
// What waits for a client that reads slowly is bounded by the agent's credits: the agent waits too, nothing is dropped, and
// text updates that follow each other become one. Only where the agent does not wait (nobody reads, or the turn is being
// ended) does bound drop anything; see early for what is said before the session is known.
type outbox struct {
	session string
	account *kernel.Account
	spare   int64              // what stays free on the account while a client is there, for the agent's next line
	wake    func()             // from any goroutine: there may be room again
	refused func(scope string) // counts an update that is dropped

	client  Client // nil: nobody reads
	held    bool   // nothing leaves yet: the client does not know the session's id
	open    bool   // the agent does not wait
	queue   []*item
	bytes   int64        // of the agent's updates in the queue
	weighs  [weights]int // items of the queue that are no acts, by weight, and of its answers
	flight  []*item
	unsure  []*item // of a client that is lost: they were being written, and may have left or not
	early   early
	blocked atomic.Bool

	missed, missedBytes int64 // dropped since the last account of it
	waived              waived
	merged              int64 // updates that went to a slow client as part of another's frame
}

// push says one more thing.
func (o *outbox) push(it *item) {
	o.prune()
	if o.client != nil && !o.held && len(o.queue) == 0 && o.offer(it) {
		return
	}
	waits := o.client != nil && !o.held
	if !waits {
		it.repay()
	}
	if waits && o.joins(it) {
		return
	}
	o.append(it)
	o.bound()
}

// joins makes the last that waits and it one.
func (o *outbox) joins(it *item) bool {
	if len(o.queue) == 0 {
		return false
	}
	last := o.queue[len(o.queue)-1]
	before := last.size
	if !last.merge(it, o.account) {
		return false
	}
	o.bytes += last.size - before
	o.merged++
	return true
}

func (o *outbox) append(it *item) {
	o.queue = append(o.queue, it)
	o.weigh(it, 1)
}

func (o *outbox) weigh(it *item, by int) {
	switch {
	case it.act == nil:
		o.weighs[it.weight] += by
	case it.answer:
		o.weighs[owed] += by
	}
	if it.weight == plain || it.weight == terminal {
		o.bytes += int64(by) * it.size
	}
}

// remove takes the item at that place out.
func (o *outbox) remove(at int) *item {
	it := o.queue[at]
	if at == 0 {
		o.queue[0] = nil
		o.queue = o.queue[1:]
	} else {
		o.queue = append(o.queue[:at], o.queue[at+1:]...)
	}
	if len(o.queue) == 0 {
		o.queue = nil
	}
	o.weigh(it, -1)
	return it
}

// flush offers what waits, in order, as far as there is room.
func (o *outbox) flush() {
	o.blocked.Store(false)
	o.prune()
	for o.client != nil && !o.held && len(o.queue) > 0 && o.offer(o.queue[0]) {
		o.remove(0)
	}
}

// offer hands one item to the client; false = not now.
func (o *outbox) offer(it *item) bool {
	var full *kernel.Overloaded
	if it.act != nil {
		if errors.As(it.act(), &full) {
			o.blocked.Store(true)
			return false
		}
		return true
	}
	err := o.client.Offer(o.session, *it.body.Load(), it.lease, func(written bool) { o.settled(it, written) })
	if err != nil { // a socket that is gone takes nothing either: its end is on the way to us
		o.blocked.Store(errors.As(err, &full))
		return false
	}
	it.lease = nil
	o.flight = append(o.flight, it)
	return true
}

// settled runs on any goroutine.
func (o *outbox) settled(it *item, written bool) {
	it.credit.Done()
	if written {
		it.body.Store(nil)
		it.state.Store(left)
	} else {
		it.state.Store(stopped)
	}
	if o.blocked.Load() {
		o.wake()
	}
}

func (o *outbox) prune() {
	n := 0
	for n < len(o.flight) && o.flight[n].state.Load() == left {
		o.flight[n] = nil
		n++
	}
	if o.flight = o.flight[n:]; len(o.flight) == 0 {
		o.flight = nil
	}
	o.settleWaived()
	o.resolve(false)
}

// resolve sorts what was being written when its client was lost, as soon as it is known: what did not leave comes before all
// that is kept. At last it does not wait to know: then it counts as missed.
func (o *outbox) resolve(last bool) {
	var back []*item
	n := 0
	for _, it := range o.unsure {
		switch state := it.state.Load(); {
		case state == here && !last:
			o.unsure[n] = it
			n++
		case state == here:
			o.missed, o.missedBytes = o.missed+it.count, o.missedBytes+it.said
		case state == stopped:
			if it = o.restored(it); it != nil {
				back = append(back, it)
			}
		}
	}
	if o.unsure = o.unsure[:n]; n == 0 {
		o.unsure = nil
	}
	if len(back) > 0 {
		o.queue = append(back, o.queue...)
		for _, it := range back {
			o.weigh(it, 1)
		}
		o.bound()
	}
}

// restored is what is kept of an item that was taken out of its client's stream, nil for nothing.
func (o *outbox) restored(it *item) *item {
	if it.weight == fleeting {
		return nil
	}
	lease, err := o.account.Acquire(it.holds())
	if err != nil || it.gap != nil { // what the client did not read of a gap, the account tells the next
		lease.Release()
		o.miss(it)
		return nil
	}
	return it.again(lease)
}

// detach is called when the client is gone, or after it was told that it lost the session: what never left comes back
// to the front of the queue, in order; answers are given, and questions forgotten, because the next client is asked again.
// Of a client that is lost with its socket, what is being written just now never leaves whole, unless it was the end of it.
func (o *outbox) detach(lost bool) {
	o.client = nil
	flight, queue := o.flight, o.queue
	o.flight, o.queue, o.bytes, o.weighs = nil, nil, 0, [weights]int{}
	cut := o.waived.open
	for _, it := range flight {
		switch state := it.state.Load(); {
		case it.past:
			cut = cut || state == stopped || state == here && lost
		case state == stopped:
			if it = o.restored(it); it != nil {
				o.append(it)
			}
		case state == here && lost && it.weight != fleeting:
			o.unsure = append(o.unsure, it)
		}
	}
	for _, it := range queue {
		switch {
		case it.past:
			cut = true
			o.miss(it)
		case it.answer && it.short != nil && len(o.queue) > 0:
			it.short() // what was said before it is the next client's
		case it.answer:
			_ = it.act() // it is still owed to that client; one that is gone takes it too
		case it.act != nil:
			it.forget()
		case it.weight == fleeting, it.gap != nil:
			o.miss(it)
		default:
			it.repay()
			o.append(it)
		}
	}
	if cut {
		o.unshown()
	}
	o.waived = waived{}
	o.bound()
}

// attach lets everything kept go to the client, in order.
func (o *outbox) attach(client Client) {
	o.client = client
	o.flush()
}

// first puts something before all that waits: the answer that must be read before it.
func (o *outbox) first(it *item) {
	o.queue = append([]*item{it}, o.queue...)
	o.weigh(it, 1)
}

// close ends it: answers are given, what is kept is freed and counts as missed.
func (o *outbox) close() {
	o.unknown()
	o.prune()
	o.resolve(true)
	o.unshown()
	for _, it := range o.queue {
		switch {
		case it.act == nil:
			o.miss(it)
		case it.answer:
			_ = it.act()
		default:
			it.forget()
		}
	}
	o.queue, o.flight, o.bytes, o.weighs = nil, nil, 0, [weights]int{}
}

// free gives back what an outbox holds that nobody closed. Nothing is said any more.
func (o *outbox) free() {
	for _, items := range [][]*item{o.early.items, o.queue} {
		for _, it := range items {
			it.lease.Release()
			it.repay()
		}
	}
}

// Merged is how many updates went to clients that read slowly as part of another update's frame, since the pod's start.
func (s *Sessions) Merged() int64 { return s.merged.Load() }
