package httplink

import (
	"context"
	"errors"
	"slices"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// exchange is one message on its way, and for a request its answer's way back.
type exchange struct {
	id      jsonrpc.ID // zero: nothing is answered
	method  string
	headers [][2]string // of the modern era, of this message
	body    *payload
	ctx     context.Context // ends at the deadline, by a cancellation, and with the link
	cancel  context.CancelCauseFunc
	ends    *exchange // of a cancellation: what it cancels

	// Under the link's mu.
	begun   bool // it has left the queue
	posting bool // a goroutine sees to its end
}

// table is what is under way: the link's, under its mu.
type table struct {
	pending   map[string]*exchange // requests that have not ended, by the key of their id
	requests  []*exchange          // that wait for a place, in their order
	control   []*exchange
	nRequests int // places taken
	nControl  int
	held      bool // notifications/initialized is on its way: what was said after it waits
}

func newTable() table { return table{pending: map[string]*exchange{}} }

// errCancelled ends a request whose cancellation was sent.
var errCancelled = errors.New("the request was cancelled")

// Send implements [link.Link].
func (l *httpLink) Send(m link.Message) error {
	if err := l.admit(m); err != nil {
		m.Held.Release()
		return err
	}
	return nil
}

func (l *httpLink) admit(m link.Message) error {
	if err := checkMirrored(m.Headers); err != nil {
		return unsent(err)
	}
	modern := l.where().modern
	var cancels string
	if m.Method == mcp.MethodCancelled {
		cancels = cancelledKey(m)
	}
	if modern {
		if err := modernize(&m, l.options.Build); err != nil {
			return unsent(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ex := &exchange{id: m.ID, method: m.Method, headers: m.Headers}
	if modern {
		ex.headers = append(standardHeaders(m), m.Headers...)
	}
	switch {
	case !l.up:
		return errDown
	case cancels != "":
		if ex.ends = l.pending[cancels]; ex.ends != nil && (modern || !ex.ends.begun) {
			l.give(ex.ends, errCancelled) // there is nobody to tell, or the closed stream tells it
			m.Held.Release()
			return nil
		}
		if modern {
			m.Held.Release()
			return nil
		}
	}
	return l.enqueue(ex, m)
}

// enqueue lets a message wait for a place, or takes one. The link is locked.
func (l *httpLink) enqueue(ex *exchange, m link.Message) error {
	queue := &l.control
	if !m.ID.IsZero() || m.Method == mcp.MethodInitialized {
		queue = &l.requests
	}
	if len(*queue) >= maxQueue {
		return unsent(&kernel.Overloaded{Scope: "provider_requests", Limit: maxQueue, Used: int64(len(*queue)), Size: 1, RetryAfter: retryAfter})
	}
	ex.body = newPayload(m)
	ctx, cancel := context.WithCancelCause(l.ctx)
	ex.ctx, ex.cancel = ctx, cancel
	if !m.ID.IsZero() {
		key := m.ID.Key()
		if l.pending[key] != nil {
			cancel(nil)
			return unsent(errors.New("two requests in flight have the same id"))
		}
		if !m.Deadline.IsZero() {
			timed, stop := context.WithDeadline(ctx, m.Deadline)
			ex.ctx, ex.cancel = timed, func(cause error) { cancel(cause); stop() }
		}
		l.pending[key] = ex
		context.AfterFunc(ex.ctx, func() { l.expire(ex) })
	}
	*queue = append(*queue, ex)
	l.pump()
	return nil
}

// pump begins what has a place. The link is locked.
func (l *httpLink) pump() {
	if !l.up || !l.open || l.ctx.Err() != nil {
		return
	}
	for len(l.control) > 0 && l.nControl < maxControl {
		l.nControl++
		l.begin(&l.control, func() { l.nControl-- })
	}
	for len(l.requests) > 0 && l.nRequests < maxRequests && !l.held {
		l.nRequests++
		initialized := l.requests[0].method == mcp.MethodInitialized
		l.held = initialized
		l.begin(&l.requests, func() {
			l.nRequests--
			l.held = l.held && !initialized
		})
	}
}

func (l *httpLink) begin(queue *[]*exchange, free func()) {
	ex := (*queue)[0]
	*queue = slices.Delete(*queue, 0, 1)
	ex.begun, ex.posting = true, true
	l.running.Go(func() {
		l.carry(ex)
		l.mu.Lock()
		defer l.mu.Unlock()
		free()
		l.pump()
	})
}

// take ends a request in the table: who gets true tells its end, and nobody else does.
func (l *httpLink) take(ex *exchange) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(ex)
}

func (l *httpLink) takeLocked(ex *exchange) bool {
	key := ex.id.Key()
	if ex.id.IsZero() || l.pending[key] != ex {
		return false
	}
	delete(l.pending, key)
	return true
}

// fail tells that a request gets no answer, unless it had one.
func (l *httpLink) fail(ex *exchange, err error) {
	if l.take(ex) {
		l.to.Failed(ex.id, err)
	}
	ex.body.release()
	ex.cancel(err)
}

// give fails a request from a turn that must not wait. The link is locked and up.
func (l *httpLink) give(ex *exchange, why error) {
	if ex.posting {
		ex.cancel(why) // its goroutine tells
		return
	}
	if !ex.begun {
		l.requests = slices.DeleteFunc(l.requests, func(x *exchange) bool { return x == ex })
		why = unsent(why)
	}
	if l.takeLocked(ex) {
		l.running.Go(func() {
			l.to.Failed(ex.id, why)
			ex.body.release()
			ex.cancel(why)
		})
	}
}

// expire is told when a request's context has ended. One that a goroutine carries is left to that.
func (l *httpLink) expire(ex *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		l.give(ex, ended(ex.ctx))
	}
}

// failAll tells the end of all that no goroutine carries. What is carried ends with the context.
func (l *httpLink) failAll(why error) {
	l.mu.Lock()
	var left []*exchange
	for _, ex := range l.pending {
		if !ex.posting {
			left = append(left, ex)
		}
	}
	left = append(left, l.control...)
	for _, ex := range l.requests {
		if ex.id.IsZero() {
			left = append(left, ex)
		}
	}
	l.control, l.requests = nil, nil
	l.mu.Unlock()
	for _, ex := range left {
		if err := error(&CutError{why}); ex.begun {
			l.fail(ex, err)
		} else {
			l.fail(ex, unsent(err))
		}
	}
}

// cancelledKey is the key of the request that a notifications/cancelled names, "" when it names none.
func cancelledKey(m link.Message) string {
	f, fault := jsonrpc.Scan(whole(m))
	if fault != nil {
		return ""
	}
	id, ok := mcp.ParseCancelled(f.Params)
	if !ok {
		return ""
	}
	return id.Key()
}

// whole is a small message in one piece.
func whole(m link.Message) []byte { return slices.Concat(m.Head, m.Body, m.Tail) }

// ended is why a context has.
func ended(ctx context.Context) error {
	if why := context.Cause(ctx); !errors.Is(why, context.DeadlineExceeded) {
		return why
	}
	return errDeadline
}
