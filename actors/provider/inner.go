package provider

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// inner is one request of the pod's own whose answer is open. then gets the bytes of the result, which are there during the call only, or
// an error.
type inner struct {
	method  string
	session int   // of the connection
	unsent  error // why the link did not take it; nil = it did
	stop    func()
	then    func(c *kernel.Ctx, result []byte, err error)
}

// lastWord is how long the end of a link is waited for that takes nothing any more.
const lastWord = 2 * time.Second

// requestID is how a number of ours is written: as a string, so that no server takes it for a number of its own.
func requestID(n int64) jsonrpc.ID { return jsonrpc.StringID(strconv.FormatInt(n, 10)) }

// ask sends a request of the pod's own; patience 0 is for one that stays open. then runs once, unless the connection ends first.
func (a *actor) ask(c *kernel.Ctx, method string, params []byte, patience time.Duration, then func(c *kernel.Ctx, result []byte, err error)) {
	id := a.s.sequence.Add(1)
	frame := jsonrpc.AppendRequest(nil, requestID(id), method, params)
	m := link.Message{ID: requestID(id), Method: method, Head: frame}
	if patience > 0 {
		m.Deadline = c.Now().Add(patience + linkGrace)
	}
	x := &inner{method: method, session: a.conn.session, stop: func() {}, then: then}
	if err := a.send(c, m); err != nil {
		if !errors.Is(err, link.ErrUnsent) {
			then(c, nil, err)
			return
		}
		// A link that takes nothing is ending as a rule, and its end says why: a child that exits at once, say.
		x.unsent, patience = err, lastWord
	}
	if patience > 0 {
		x.stop = c.After(patience, innerOver{id})
	}
	a.inner[id] = x
}

// notify sends a notification.
func (a *actor) notify(c *kernel.Ctx, method string, params []byte) error {
	return a.send(c, link.Message{Method: method, Head: jsonrpc.AppendNotification(nil, method, params)})
}

// send pays for a short message of the pod's own until it was written.
func (a *actor) send(c *kernel.Ctx, m link.Message) error {
	held, err := c.Account().Acquire(int64(len(m.Head)))
	if err != nil {
		return err
	}
	m.Held = held
	return a.conn.link.Send(m)
}

// take takes a request of the pod's own out of the table.
func (a *actor) take(id int64) *inner {
	x := a.inner[id]
	if x != nil {
		delete(a.inner, id)
		x.stop()
	}
	return x
}

// innerOver ends a request whose answer did not come in time.
func (a *actor) innerOver(c *kernel.Ctx, id int64) {
	x := a.take(id)
	if x == nil {
		return
	}
	if x.unsent != nil {
		x.then(c, nil, x.unsent)
		return
	}
	c.Refuse("timeout")
	if x.method != mcp.MethodInitialize { // which may not be cancelled
		a.cancel(c, id, "no answer in time")
	}
	a.calls.suspect(suspect{id: id, at: c.Now()})
	x.then(c, nil, fmt.Errorf("no answer within its time: %w", context.DeadlineExceeded))
}

// cancel tells the server that the answer of a request is not awaited any more.
func (a *actor) cancel(c *kernel.Ctx, id int64, reason string) {
	params := jsonrpc.AppendString([]byte(`{"requestId":`), strconv.FormatInt(id, 10))
	params = jsonrpc.AppendString(append(params, `,"reason":`...), reason)
	if a.notify(c, mcp.MethodCancelled, append(params, '}')) != nil {
		c.Refuse("cancel")
	}
}

// response leads an answer to what it answers. Each one shows that the transport works.
func (a *actor) response(c *kernel.Ctx, m received) {
	id, ok := m.message.ID.Int()
	if x := a.take(id); ok && x != nil {
		a.well(c)
		var err error
		if m.message.Error != nil {
			err = jsonrpc.ParseError(m.message.Error)
		}
		x.then(c, m.message.Result, err)
		m.held.Release()
		return
	}
	k := a.calls.byID[id]
	switch {
	case ok && k != nil:
		a.well(c)
		a.result(c, k, m)
	case ok && a.calls.cleared(id):
		m.held.Release()
		c.Refuse("late_answer")
	default:
		m.held.Release()
		c.Refuse("unknown_answer")
	}
}

// well notes that the transport works.
func (a *actor) well(c *kernel.Ctx) {
	if open := !a.breaker.closed(); open || a.breaker.faults > 0 {
		a.breaker.success()
		if open {
			a.publish(c)
		}
	}
}

// notAnswered is the end of one request, of which the link says that it has no answer.
func (a *actor) notAnswered(c *kernel.Ctx, m notAnswered) {
	if !a.is(m.number) {
		return
	}
	id, ok := m.id.Int()
	if !ok {
		return
	}
	if x := a.take(id); x != nil {
		if errors.Is(m.err, link.ErrSessionLost) {
			a.renew(c, x.session)
		}
		x.then(c, nil, m.err)
		return
	}
	if k := a.calls.byID[id]; k != nil {
		a.unanswered(c, k, m.err)
	}
}

// isAnswer tells an error that the server answered with.
func isAnswer(err error) bool {
	var fault *jsonrpc.Error
	return errors.As(err, &fault)
}
