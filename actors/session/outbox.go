package session

import (
	"errors"
	"sync/atomic"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/runtime/kernel"
)

// Bounds of what an outbox keeps. They are those of the agent's credits, so that a client that is merely slow loses
// nothing: then the agent waits. Only while nobody reads, or after a cancel, is anything dropped.
const (
	keptFrames  = agent.CreditLines
	keptBytes   = agent.CreditBytes
	earlyFrames = 100 // before the answer of session/new
)

// weight says what is dropped last.
type weight uint8

const (
	fleeting weight = iota // news of the pod's own that the next client is told anyhow: neither kept nor counted
	plain
	terminal // the end of a tool call: dropped when nothing plain is left
	pinned   // the end of a turn, an answer, a question: never dropped
)

// item is one thing that a session says to its client, in its place.
type item struct {
	body   atomic.Pointer[[]byte] // the frame; nil for an act, and once it has left
	size   int64
	lease  *kernel.Lease // of the frame, as long as it is ours
	credit *agent.Credit
	weight weight
	// act is said in place of a frame: an answer, or a request of the agent. *kernel.Overloaded puts it off.
	act    func() error
	answer bool   // the act answers a request: it is done however the session ends
	short  func() // answers a prompt whose turn's words the client does not get; nil for other answers
	drop   func() // what an act leaves behind that is never done; may be nil
	state  atomic.Uint32
}

const (
	here    uint32 = iota // not known to have left
	left                  // written to the socket
	stopped               // taken out of the stream
)

func newFrame(frame []byte, lease *kernel.Lease, credit *agent.Credit, w weight) *item {
	it := &item{size: int64(len(frame)), lease: lease, credit: credit, weight: w}
	it.body.Store(&frame)
	return it
}

// outbox is what one session says to its client, in order: what was offered and is on its way, what waits because the
// client's stream is full, and what is kept because there is no client. It belongs to the session's actor; only an
// item's fate is reported from elsewhere.
type outbox struct {
	session string
	account *kernel.Account
	wake    func() // from any goroutine: there may be room again

	client  Client // nil: nobody reads
	held    bool   // nothing leaves yet: the client does not know the session's id
	frames  int    // how many are kept at most
	queue   []*item
	bytes   int64 // of the queue
	flight  []*item
	blocked atomic.Bool

	missed, missedBytes int64 // dropped since the last account of it
}

// push says one more thing.
func (o *outbox) push(it *item) {
	o.prune()
	if o.client != nil && !o.held && len(o.queue) == 0 && o.offer(it) {
		return
	}
	o.queue = append(o.queue, it)
	o.bytes += it.size
	if o.client == nil || o.held {
		it.credit.Done()
	}
	o.bound()
}

// flush offers what waits, in order, as far as there is room. It tells whether the outbox is empty.
func (o *outbox) flush() bool {
	o.blocked.Store(false)
	o.prune()
	for o.client != nil && !o.held && len(o.queue) > 0 {
		it := o.queue[0]
		if !o.offer(it) {
			return false
		}
		o.bytes -= it.size
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	if len(o.queue) == 0 {
		o.queue = nil
	}
	return len(o.queue) == 0
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
}

// detach is called when the client is gone, or after it was told that it lost the session: what never left comes back
// to the front of the queue, in order; answers are given, and questions forgotten, because the next client is asked again.
func (o *outbox) detach() {
	o.client = nil
	back := make([]*item, 0, len(o.flight)+len(o.queue))
	for _, it := range o.flight {
		if it.state.Load() != stopped || it.weight == fleeting {
			continue // it left, or is being written just now
		}
		lease, err := o.account.Acquire(it.size)
		if err != nil {
			o.miss(it)
			continue
		}
		again := newFrame(*it.body.Load(), lease, nil, it.weight)
		o.bytes += again.size
		back = append(back, again)
	}
	o.flight = nil
	for _, it := range o.queue {
		switch {
		case it.answer && it.short != nil && len(back) > 0:
			it.short() // what was said before it is the next client's
		case it.answer:
			_ = it.act() // it is still owed to that client; one that is gone takes it too
		case it.act != nil:
			it.forget()
		case it.weight == fleeting:
			o.bytes -= it.size
			o.miss(it)
		default:
			it.credit.Done()
			back = append(back, it)
		}
	}
	o.queue = back
	o.bound()
}

// attach lets everything kept go to the client, in order.
func (o *outbox) attach(client Client) {
	o.client, o.frames = client, keptFrames
	o.flush()
}

// first puts something before all that waits: the answer that must be read before it.
func (o *outbox) first(it *item) { o.queue = append([]*item{it}, o.queue...) }

// bound drops what is too much: plain items first, then ends of tool calls, the oldest of each, but never the last one.
func (o *outbox) bound() {
	for len(o.queue) > 1 && (len(o.queue) > o.frames || o.bytes > keptBytes) {
		at := o.oldest()
		if at < 0 {
			return
		}
		it := o.queue[at]
		o.queue = append(o.queue[:at], o.queue[at+1:]...)
		o.bytes -= it.size
		o.miss(it)
	}
}

func (o *outbox) oldest() int {
	for w := fleeting; w < pinned; w++ {
		for i, it := range o.queue {
			if it.weight == w && it.act == nil {
				return i
			}
		}
	}
	return -1
}

func (o *outbox) miss(it *item) {
	it.lease.Release()
	it.credit.Done()
	if it.weight == plain || it.weight == terminal { // the agent's updates; what else there is, an account tells
		o.missed++
		o.missedBytes += it.size
	}
}

func (it *item) forget() {
	if it.drop != nil {
		it.drop()
	}
}

// close ends it: answers are given, what is kept is freed and counts as missed.
func (o *outbox) close() {
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
	o.queue, o.flight, o.bytes = nil, nil, 0
}
