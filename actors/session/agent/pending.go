package agent

import (
	"sync"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// maxForgotten bounds the requests that the owner has forgotten and the agent has not answered: some agents never
	// answer what was cancelled.
	maxForgotten = 1024
	// maxCalled bounds the requests of the agent that wait for an answer.
	maxCalled = 256
)

// pending is the table of open requests in both directions. It belongs to the actor; the lock is between its cell,
// which enters requests, and its own reader, which settles them in the order of the wire.
type pending struct {
	mu        sync.Mutex
	last      int64
	open      map[int64]*kernel.Question // by our id; nil value = forgotten
	ids       map[uint64]int64           // question → our id
	forgotten int
	called    map[string]struct{} // requests of the agent, by the key of their id
	ended     error
}

func newPending() *pending {
	return &pending{
		last:   initializeID,
		open:   map[int64]*kernel.Question{},
		ids:    map[uint64]int64{},
		called: map[string]struct{}{},
	}
}

// enter gives a question its id on the wire; an error when the process has ended.
func (p *pending) enter(q *kernel.Question) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, p.ended
	}
	p.last++
	p.open[p.last] = q
	if q != nil {
		p.ids[q.ID()] = p.last
	}
	return p.last, nil
}

// settle takes the question that a response is for. known false: there is no such request, or it was answered.
// A nil question: nobody waits any more.
func (p *pending) settle(id int64) (q *kernel.Question, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, known = p.open[id]
	if !known {
		return nil, false
	}
	delete(p.open, id)
	if q == nil {
		p.forgotten--
		return nil, true
	}
	delete(p.ids, q.ID())
	return q, true
}

// forget ends the interest in a question; its response is awaited, and dropped.
func (p *pending) forget(q *kernel.Question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, known := p.ids[q.ID()]
	if !known {
		return
	}
	delete(p.ids, q.ID())
	if p.forgotten >= maxForgotten {
		delete(p.open, id)
		return
	}
	p.open[id] = nil
	p.forgotten++
}

// end fails all that is open, and all that will be asked.
func (p *pending) end(cause error) {
	p.mu.Lock()
	open := p.open
	p.open, p.ids, p.forgotten, p.ended = map[int64]*kernel.Question{}, map[uint64]int64{}, 0, cause
	p.mu.Unlock()
	for _, q := range open {
		if q != nil {
			q.Fail(cause)
		}
	}
}

// call enters a request of the agent. An error is the answer that it gets instead.
func (p *pending) call(id jsonrpc.ID) *jsonrpc.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.called[id.Key()]; open {
		return &jsonrpc.Error{Code: jsonrpc.InvalidRequest, Message: "a request with this id is open"}
	}
	if len(p.called) >= maxCalled {
		return &jsonrpc.Error{Code: jsonrpc.Internal, Message: "too many requests of the agent are open"}
	}
	p.called[id.Key()] = struct{}{}
	return nil
}

// answer takes a request of the agent out; false: it is not open.
func (p *pending) answer(id jsonrpc.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, open := p.called[id.Key()]
	delete(p.called, id.Key())
	return open
}
