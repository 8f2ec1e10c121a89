package kernel

import (
	"context"
	"sync/atomic"
)

// Ticket stands for an open request of the actor that holds it. The zero Ticket stands for none.
type Ticket struct{ id uint64 }

// IsZero tells the zero Ticket.
func (t Ticket) IsZero() bool { return t.id == 0 }

// ID is unique in the kernel.
func (t Ticket) ID() uint64 { return t.id }

// Answer is what comes of a Ctx.Request, once, on the data lane: Msg with the Lease of what it carries (the receiver's to release),
// or Err, which is what the callee failed it with or the cause of the callee's end.
type Answer struct {
	Ticket Ticket
	Msg    Msg
	Lease  *Lease
	Err    error
}

// Cancelled tells a callee, on its control lane, that nobody waits for the answer any more. Answering is no fault, it frees the lease.
type Cancelled struct{ Question *Question }

const (
	questionOpen uint32 = iota
	questionAnswered
	questionCancelled
)

// Question is the callee's side of a Request or an Ask. It may be kept and answered later, from any goroutine.
// One that its callee's generation leaves unanswered is answered with that generation's exit cause.
type Question struct {
	id      uint64
	state   atomic.Uint32
	callee  *cell
	asker   *cell // nil for an Ask
	pending *Pending
	payer   *cell // the asker, the callee for an Ask
	reserve Lease // AnswerBytes of the payer's account

	// In the callee's mailbox, under its lock: delivered and not answered.
	prev, next *Question
	linked     bool
}

// ID is unique in the kernel. It is the id of the asker's Ticket.
func (q *Question) ID() uint64 { return q.id }

// Answer answers with m, and l, the lease of what m carries beyond AnswerBytes. The first answer wins; after that, and when
// nobody waits any more, it reports false and frees the lease. An answer without a lease that is larger than its reserve and
// does not fit the asker's account arrives as *Overloaded in its place.
func (q *Question) Answer(m Msg, l *Lease) bool { return q.settle(m, l, nil) }

// Fail answers with an error.
func (q *Question) Fail(err error) bool {
	if err == nil {
		err = ErrDone
	}
	return q.settle(nil, nil, err)
}

func (q *Question) settle(m Msg, l *Lease, err error) bool {
	if q == nil || !q.state.CompareAndSwap(questionOpen, questionAnswered) {
		l.Release()
		leaseOf(m).Release()
		return false
	}
	q.callee.mb.unlink(q)
	if s, ok := m.(Sized); ok && l == nil && leaseOf(m) == nil {
		if more := int64(s.Size()) - AnswerBytes; more > 0 {
			if e := q.reserve.grow(more); e != nil {
				m, err = nil, e
			} else {
				q.payer.mb.answers.Add(more)
			}
		}
	}
	if q.asker != nil {
		return q.asker.mb.answer(q, Answer{Ticket: Ticket{q.id}, Msg: m, Lease: l, Err: err})
	}
	return q.pending.answer(m, l, err)
}

// buy pays for the answer.
func (q *Question) buy(payer *cell) error {
	if err := payer.acct.charge(AnswerBytes); err != nil {
		return err
	}
	q.payer, q.reserve.account, q.reserve.size = payer, payer.acct, AnswerBytes
	payer.mb.answers.Add(AnswerBytes)
	return nil
}

// free gives back what was paid; only the first call does.
func (q *Question) free() {
	if n := q.reserve.release(); n > 0 {
		q.payer.mb.answers.Add(-n)
	}
}

// cancel takes the asker's interest back. It reports whether the question was still open.
func (q *Question) cancel() bool {
	if !q.state.CompareAndSwap(questionOpen, questionCancelled) {
		return false
	}
	q.free()
	q.callee.mb.withdraw(q)
	return true
}

// Pending is the asker's side of an Ask: one slot for the answer, bought when the question was put.
type Pending struct {
	q     Question
	slot  chan struct{} // closed when the three fields below are set
	msg   Msg
	lease *Lease
	err   error
	taken atomic.Uint32 // the lease's owner: nobody yet, the waiter, or Drop
}

const (
	leaseHere uint32 = iota
	leaseTaken
	leaseDropped
)

// Wait returns the answer and the lease of what it carries, which is the caller's from then on; or the error that the callee failed
// it with, the cause of its generation's end, or ctx's cause. After the latter it may be called again.
func (p *Pending) Wait(ctx context.Context) (Msg, *Lease, error) {
	select {
	case <-p.slot:
	default:
		select {
		case <-p.slot:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	p.q.free()
	if !p.taken.CompareAndSwap(leaseHere, leaseTaken) {
		return nil, nil, ErrStopped // read twice, or dropped
	}
	return p.msg, p.lease, p.err
}

// Reserved is the bytes that this question still has on its callee's account: for tests and for the curious.
func (p *Pending) Reserved() int64 { return p.q.reserve.Size() }

// Done is closed when an answer is there.
func (p *Pending) Done() <-chan struct{} { return p.slot }

// Drop ends the asker's interest: the callee of an open question gets Cancelled, and the lease of an answer that nobody took is
// freed. Always defer it; after a Wait that returned the answer it does nothing.
func (p *Pending) Drop() {
	if p == nil || p.q.cancel() || p.q.state.Load() == questionCancelled {
		return
	}
	<-p.slot // answered: at most the few instructions between winning and filling the slot away
	p.q.free()
	if p.taken.CompareAndSwap(leaseHere, leaseDropped) {
		p.lease.Release()
		leaseOf(p.msg).Release()
	}
}

func (p *Pending) answer(m Msg, l *Lease, err error) bool {
	p.msg, p.lease, p.err = m, l, err
	close(p.slot)
	return true
}
