package kernel

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// controlPerData is how many control messages may go before a data message that waits: control overtakes, and starves nobody.
const controlPerData = 16

// kinds of items in the two lanes that behaviors see.
type itemKind uint8

const (
	told     itemKind = iota // a Tell or a question: charged to the account
	signaled                 // a Signal: charged to the mailbox's control reserve
	prepaid                  // an Answer: its question's reserve is released with its turn
	free                     // the kernel's own: Exited, Down, Restarted, Cancelled, results of Go; as many as there are causes
	timed                    // of After
)

type item struct {
	msg  Msg
	q    *Question // told: the question asked; prepaid: the one answered
	tm   *timer
	at   int64 // Unix nanoseconds: an item is small, since a flood is made of them
	cost int64
	kind itemKind
}

// mailbox is the engine's mailbox and the kernel's admission. Lanes: system (the engine's: start and stop), control, data. Refusal
// happens here, before the engine, which is only told that there is a turn to take: it never sees a message.
type mailbox struct {
	c     *cell
	acct  *Account
	batch int
	turn  func() // process, bound once: scheduling allocates nothing

	mu            sync.Mutex
	system        []any
	control, data ring
	burst         int          // control messages handled while data waited
	reserve       int64        // bytes of the control reserve in use
	answers       atomic.Int64 // bytes of the account bought for answers to come
	bytes         int64        // charged for what is queued and in turn
	registered    bool
	running       bool
	closed        bool
	invoker       actor.MessageInvoker
	dispatcher    actor.Dispatcher
	current       item // in turn
	doing         string
	since         time.Time            // of the turn or hook
	open          *Question            // delivered and unanswered, a list
	asks          map[uint64]*Question // this actor's own open requests
	timers        map[*timer]struct{}
}

// turnToken is all that the engine sees of a message.
type turnToken struct{}

var theTurn any = turnToken{}

func newMailbox(c *cell, a *Account) *mailbox {
	m := &mailbox{c: c, acct: a, batch: max(1, c.k.scheduler.Batch())}
	m.turn = m.process
	return m
}

func sizeOf(m Msg) int64 {
	if _, ok := m.(Leased); ok {
		return MessageBytes
	}
	if s, ok := m.(Sized); ok {
		return MessageBytes + max(0, int64(s.Size()))
	}
	return MessageBytes
}

// Offer admits a message to the data lane, or says at once why not. It never blocks.
func (m *mailbox) Offer(msg Msg) error {
	n := sizeOf(msg)
	if err := m.admit(n); err != nil {
		return m.refused(msg, err)
	}
	if !m.put(&m.data, item{msg: msg, kind: told, cost: n}) {
		m.acct.give(n)
		return m.refused(msg, ErrStopped)
	}
	return nil
}

// ask admits a question. Its reserve is charged to the payer, all or nothing with the message.
func (m *mailbox) ask(msg Msg, q *Question, payer *cell) error {
	n := sizeOf(msg)
	if err := q.buy(payer); err != nil {
		return m.refused(msg, err)
	}
	err := m.admit(n)
	if err == nil && !m.put(&m.data, item{msg: msg, q: q, kind: told, cost: n}) {
		m.acct.give(n)
		err = ErrStopped
	}
	if err != nil {
		q.free()
		return m.refused(msg, err)
	}
	return nil
}

func (m *mailbox) admit(n int64) error {
	if m.c.isEnding() {
		return ErrStopped
	}
	return m.acct.charge(n)
}

// signal admits a message to the control lane.
func (m *mailbox) signal(msg Msg) error {
	n := sizeOf(msg)
	m.mu.Lock()
	var err error
	switch {
	case m.closed:
		err = ErrStopped
	case m.reserve+n > ControlBytes:
		err = &Overloaded{Scope: "control", Limit: ControlBytes, Used: m.reserve, Size: n, RetryAfter: retryAfter}
	default:
		m.reserve += n
		m.control.push(item{msg: msg, kind: signaled, cost: n, at: m.c.k.clock.Now().UnixNano()})
	}
	start := m.wake()
	m.mu.Unlock()
	m.schedule(start)
	if err != nil {
		return m.refused(msg, err)
	}
	return nil
}

// refused ends the life of a message that was not admitted.
func (m *mailbox) refused(msg Msg, err error) error {
	leaseOf(msg).Release()
	if o, ok := errors.AsType[*Overloaded](err); ok {
		m.c.refuse(o.Scope)
	} else if m.c.isOver() {
		m.c.refuse("abandoned")
	}
	return err
}

// answer delivers an answer to the asker; it is paid for.
func (m *mailbox) answer(q *Question, a Answer) bool {
	if m.put(&m.data, item{msg: a, q: q, kind: prepaid}) {
		return true
	}
	q.free()
	freeLeases(a)
	return false
}

// post puts one of the kernel's own messages into the control lane; a closed mailbox drops it.
func (m *mailbox) post(msg Msg) { m.put(&m.control, item{msg: msg, kind: free}) }

// put queues an item, unless the mailbox is closed.
func (m *mailbox) put(lane *ring, it item) bool {
	it.at = m.c.k.clock.Now().UnixNano()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	lane.push(it)
	if it.kind == told {
		m.bytes += it.cost
	}
	start := m.wake()
	m.mu.Unlock()
	m.schedule(start)
	return true
}

// wake decides, under the lock, whether a turn must be scheduled.
func (m *mailbox) wake() bool {
	if m.running || !m.registered || len(m.system)+m.control.n+m.data.n == 0 {
		return false
	}
	m.running = true
	return true
}

func (m *mailbox) schedule(start bool) {
	if start {
		m.dispatcher.Schedule(m.turn)
	}
}

// close refuses from now on and ends the life of what is queued. The stop itself is the system lane's, which stays open.
func (m *mailbox) close(cause error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	left := make([]item, 0, m.control.n+m.data.n)
	for m.control.n > 0 {
		left = append(left, m.control.pop())
	}
	for m.data.n > 0 {
		left = append(left, m.data.pop())
	}
	for i := range left {
		m.uncount(&left[i])
	}
	timers := m.timers
	m.timers = nil
	m.mu.Unlock()
	for t := range timers {
		if t.stop() {
			freeLeases(t.msg)
		} // else it is in the lane, or finds the mailbox closed
	}
	for i := range left {
		m.drop(left[i], cause)
	}
}

// uncount takes an item out of the mailbox's own sums, under the lock.
func (m *mailbox) uncount(it *item) {
	switch it.kind {
	case told:
		m.bytes -= it.cost
	case signaled:
		m.reserve -= it.cost
	}
}

// drop ends the life of an item that no turn handles.
func (m *mailbox) drop(it item, cause error) {
	switch it.kind {
	case told:
		m.acct.give(it.cost)
		if it.q != nil {
			it.q.Fail(cause)
		}
	case prepaid:
		it.q.free()
	}
	freeLeases(it.msg)
}

// freeLeases releases what a message brought along.
func freeLeases(msg Msg) {
	if a, ok := msg.(Answer); ok {
		a.Lease.Release()
		leaseOf(a.Msg).Release()
		return
	}
	leaseOf(msg).Release()
}

// next takes what comes next: system before control before data, save that data which waits is let in after controlPerData.
// Without anything to do the mailbox stops running.
func (m *mailbox) next() (system any, ok bool) {
	for {
		m.mu.Lock()
		if len(m.system) > 0 {
			system = m.system[0]
			m.system = m.system[1:]
			m.mu.Unlock()
			return system, true
		}
		var it item
		switch {
		case m.control.n > 0 && (m.data.n == 0 || m.burst < controlPerData):
			if it = m.control.pop(); m.data.n > 0 {
				m.burst++
			}
		case m.data.n > 0:
			it = m.data.pop()
			m.burst = 0
		default:
			m.running = false
			m.mu.Unlock()
			return nil, false
		}
		if m.admitTurn(&it) {
			m.current, m.since = it, m.c.k.clock.Now()
			m.mu.Unlock()
			return nil, true
		}
		m.uncount(&it)
		m.mu.Unlock()
		m.drop(it, ErrStopped)
	}
}

// admitTurn says whether anybody still wants the item, and does its bookkeeping. Under the lock.
func (m *mailbox) admitTurn(it *item) bool {
	switch it.kind {
	case told:
		if it.q == nil {
			return true
		}
		if it.q.state.Load() != questionOpen {
			return false // cancelled in the queue
		}
		m.link(it.q)
	case prepaid:
		if m.asks[it.q.id] == nil {
			return false // cancelled when the answer was on its way
		}
		delete(m.asks, it.q.id)
	case timed:
		if _, live := m.timers[it.tm]; !live {
			return false // taken back when it was in the lane
		}
		delete(m.timers, it.tm)
	}
	return true
}

func (m *mailbox) process() {
	for range m.batch {
		system, ok := m.next()
		if !ok {
			return
		}
		m.deliver(system)
	}
	m.schedule(true) // still running: let others have a turn
}

// deliver takes one turn. Whatever way it ends, the bytes are given back, and the mailbox goes on.
func (m *mailbox) deliver(system any) {
	done := false
	defer func() {
		reason := recover()
		if reason != nil { // the cell recovers a behavior's panics: this one is the engine's or ours
			m.c.crash(&Crash{Value: reason})
		}
		if system == nil {
			m.settle(done)
		}
		if !done && reason == nil { // Goexit: this goroutine is lost, the actor must not be
			m.c.crash(ErrGoexit)
			m.schedule(true)
		}
	}()
	if system != nil {
		m.invoker.InvokeSystemMessage(system)
	} else {
		m.c.handled = false
		m.invoker.InvokeUserMessage(theTurn)
	}
	done = true
}

// settle ends the life of an item after its turn.
func (m *mailbox) settle(done bool) {
	m.mu.Lock()
	it := m.current
	m.uncount(&it)
	m.current, m.since = item{}, time.Time{}
	m.mu.Unlock()
	switch it.kind {
	case told:
		m.acct.give(it.cost)
	case prepaid:
		it.q.free()
	}
	if !done || !m.c.handled { // panicked, exited, or came too late: nobody owns what it brought
		freeLeases(it.msg)
	}
}

// The engine's side.

func (m *mailbox) PostUserMessage(msg any) { _ = m.Offer(msg) }

func (m *mailbox) PostSystemMessage(msg any) {
	if _, ok := msg.(*actor.Stop); ok {
		m.c.cancel(m.c.cause()) // on the poster's goroutine: a receive that waits on its context returns
	}
	m.mu.Lock()
	m.system = append(m.system, msg)
	start := m.wake()
	m.mu.Unlock()
	m.schedule(start)
}

func (m *mailbox) RegisterHandlers(i actor.MessageInvoker, d actor.Dispatcher) {
	m.mu.Lock()
	m.invoker, m.dispatcher = i, d
	m.mu.Unlock()
}

func (m *mailbox) Start() {
	m.mu.Lock()
	m.registered = true
	start := m.wake()
	m.mu.Unlock()
	m.schedule(start)
}

func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.n
}
