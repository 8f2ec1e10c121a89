package tunnel

import (
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// sent is one call whose answer is open.
type sent struct {
	ticket   kernel.Ticket
	question *kernel.Question
	number   uint64        // its progress token, and part of its request id
	patience time.Duration // from one sign of life to the next
	limit    time.Time
	stop     func() // takes back its deadline
	progress func(params []byte)
}

// calls are the calls in flight, by what their ends come with.
type calls struct {
	tickets   map[kernel.Ticket]*sent
	questions map[*kernel.Question]*sent
	numbers   map[uint64]*sent
}

func newCalls() calls {
	return calls{map[kernel.Ticket]*sent{}, map[*kernel.Question]*sent{}, map[uint64]*sent{}}
}

func (s *calls) add(x *sent) {
	s.tickets[x.ticket], s.questions[x.question], s.numbers[x.number] = x, x, x
}

func (s *calls) remove(x *sent) {
	delete(s.tickets, x.ticket)
	delete(s.questions, x.question)
	delete(s.numbers, x.number)
	x.stop()
}

// failAll answers every open call with an error.
func (s *calls) failAll(c *kernel.Ctx, err error) {
	for _, x := range s.tickets {
		c.Cancel(x.ticket)
		s.remove(x)
		x.question.Fail(err)
	}
}

// call sends one tools/call. The bytes of its arguments are spliced as they came.
func (a *actor) call(c *kernel.Ctx, m capability.Call) {
	q := c.Question()
	if q == nil {
		m.Bytes.Release()
		c.Refuse("message")
		return
	}
	refuse := func(scope string, cause error) {
		m.Bytes.Release()
		c.Refuse(scope)
		q.Fail(&capability.NotSent{Cause: cause})
	}
	if a.t.Status().State != Ready {
		refuse("not_ready", capability.ErrDetached)
		return
	}
	if open := len(a.calls.tickets); open >= a.t.limits.Calls {
		refuse("calls", &kernel.Overloaded{Scope: "calls of this server", Limit: int64(a.t.limits.Calls), Used: int64(open), Size: 1, RetryAfter: time.Second})
		return
	}
	left := m.Deadline.Sub(c.Now())
	if left <= 0 {
		refuse("timeout", capability.ErrTimeout)
		return
	}
	n := a.next()
	ticket, err := a.askCall(c, n, m.Tool, m.Arguments, m.Bytes)
	if err != nil {
		if errors.Is(err, ErrGone) {
			err = errGone
		}
		refuse("carrier", err)
		return
	}
	x := &sent{ticket: ticket, question: q, number: n, patience: left, limit: m.Limit, progress: m.Progress}
	x.stop = c.After(left, callOver{ticket})
	a.calls.add(x)
}

// result passes a call's answer on, with the lease that pays for it.
func (a *actor) result(c *kernel.Ctx, m kernel.Answer) {
	x := a.calls.tickets[m.Ticket]
	if x == nil {
		m.Lease.Release()
		return
	}
	a.calls.remove(x)
	raw, err := a.inner(m)
	if err == nil {
		err = m.Lease.Move(c.Account())
	}
	if err != nil {
		m.Lease.Release()
		x.question.Fail(a.fault(m.Err, err))
		return
	}
	x.question.Answer(capability.Result{Raw: raw}, m.Lease)
}

// fault is what a desk is told for the error of a call. outer is the error of the
// outer request, nil when that was answered.
func (a *actor) fault(outer, err error) error {
	var fault *jsonrpc.Error
	if errors.As(outer, &fault) && acp.BindingFailure(a.codec, fault) {
		switch fault.Code { // the first two say that no server has seen the call
		case acp.CodeServerLimit:
			return &capability.NotSent{Cause: &kernel.Overloaded{Scope: "calls of this server", RetryAfter: time.Second}}
		case acp.CodeServerUnavailable:
			return &capability.NotSent{Cause: fmt.Errorf("%w: error %d", capability.ErrDetached, fault.Code)}
		case acp.CodeServerFailed: // that of its server, which may have begun
			return fmt.Errorf("%w: error %d", capability.ErrDetached, fault.Code)
		}
	}
	if errors.Is(err, ErrGone) {
		return errGone
	}
	return err
}

// cancelled tells the client to stop a call that nobody waits for.
func (a *actor) cancelled(c *kernel.Ctx, q *kernel.Question) {
	if x := a.calls.questions[q]; x != nil {
		a.calls.remove(x)
		c.Cancel(x.ticket)
	}
}

// timeout ends a call whose deadline passed.
func (a *actor) timeout(c *kernel.Ctx, ticket kernel.Ticket) {
	if x := a.calls.tickets[ticket]; x != nil {
		a.calls.remove(x)
		c.Cancel(ticket)
		c.Refuse("timeout")
		x.question.Fail(capability.ErrTimeout)
	}
}

// inbound takes a notification of the client.
func (a *actor) inbound(c *kernel.Ctx, m Inbound) {
	defer m.Bytes.Release()
	switch m.Message.Method {
	case mcp.MethodListChanged:
		if a.t.Status().State != Ready {
			a.again = a.listing != nil
			return
		}
		if err := a.list(c); err != nil {
			c.Refuse("list")
		}
	case mcp.MethodProgress:
		a.progress(c, m.Message)
	default:
		c.Refuse("inbound")
	}
}

// progress is a sign of life of a call: it moves its deadline, up to its limit.
func (a *actor) progress(c *kernel.Ctx, in acp.Inbound) {
	x := a.progressed(in)
	if x == nil {
		c.Refuse("progress")
		return
	}
	x.stop()
	x.stop = c.After(extended(c.Now(), x.patience, x.limit).Sub(c.Now()), callOver{x.ticket})
	if x.progress != nil {
		x.progress(in.Params)
	}
}

// progressed finds the call that a progress belongs to, by its token, and in
// generation C by the request id as well.
func (a *actor) progressed(in acp.Inbound) *sent {
	token, ok := mcp.ParseProgress(in.Params)
	if !ok {
		return nil
	}
	n, ok := token.Int()
	if !ok || n < 0 {
		return nil
	}
	x := a.calls.numbers[uint64(n)]
	if x == nil || in.Stateless && in.RequestID != a.requestID(x.number) {
		return nil
	}
	return x
}
