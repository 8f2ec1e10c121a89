package connection

import (
	"sync"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// answerReserve is charged for each open request of the client, so that its answer, at least an error, always fits.
const answerReserve = kernel.AnswerBytes

// class groups the client's requests by the limit that counts them.
type class uint8

const (
	other   class = iota
	opening       // session/new, session/resume
	prompt
	passed // on to the agent
)

// openRequest is one request of the client that is not answered yet.
type openRequest struct {
	id      jsonrpc.ID
	class   class
	session string
	to      kernel.Ref // who answers it; when that actor ends, the connection does
	lease   *kernel.Lease
	slot    *admission.Slot // of an opening: the place of its session among those of the connection
}

// holding is a session that the connection owns.
type holding struct {
	to   kernel.Ref
	slot *admission.Slot // nil while a request that opens it anew has it
}

// ledger is the connection's book of who is owed what: the client's open requests, our own open requests, the sessions that
// the connection owns, the tunnels bound to it. All methods are safe from any goroutine and none blocks.
type ledger struct {
	mu       sync.Mutex
	requests map[uint64]*openRequest
	lastReq  uint64
	prompts  int
	sessions map[string]*holding
	bound    map[string]kernel.Ref
	asks     map[uint64]*ask
	inner    map[string]*ask // by the inner request id of generation C
	lastAsk  uint64
	connects int
	gone     bool
}

func newLedger() *ledger {
	return &ledger{
		requests: map[uint64]*openRequest{}, sessions: map[string]*holding{}, bound: map[string]kernel.Ref{},
		asks: map[uint64]*ask{}, inner: map[string]*ask{},
	}
}

// enter notes a request of the client, and gives it the number under which it is answered; ok is false once the book is closed.
func (l *ledger) enter(r *openRequest) (req uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return 0, false
	}
	l.lastReq++
	l.requests[l.lastReq] = r
	l.count(r, 1)
	return l.lastReq, true
}

func (l *ledger) count(r *openRequest, by int) {
	if r.class == prompt {
		l.prompts += by
	}
}

// settle takes a request out of the book: whoever gets it answers it. The second gets nil.
func (l *ledger) settle(req uint64) *openRequest {
	l.mu.Lock()
	r := l.requests[req]
	var left *admission.Slot
	if r != nil {
		delete(l.requests, req)
		l.count(r, -1)
		left = l.passOn(r.session, r.slot)
	}
	l.mu.Unlock()
	left.Release()
	return r
}

// borrow takes the slot of a session that the connection owns, for a request that opens it anew: so it is counted once however that
// request and an end of the session cross. owned is false when the request needs a slot of its own.
func (l *ledger) borrow(id string) (slot *admission.Slot, owned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.sessions[id]
	if h == nil {
		return nil, false
	}
	slot, h.slot = h.slot, nil
	return slot, true
}

// handBack is for a slot of a request that never came into the book.
func (l *ledger) handBack(id string, slot *admission.Slot) {
	l.mu.Lock()
	slot = l.passOn(id, slot)
	l.mu.Unlock()
	slot.Release()
}

// reserve gives an open request the slot that it came with.
func (l *ledger) reserve(req uint64, slot *admission.Slot) {
	l.mu.Lock()
	if r := l.requests[req]; r != nil && r.slot == nil {
		r.slot, slot = slot, nil
	}
	l.mu.Unlock()
	slot.Release()
}

// opened notes which session an open request has got.
func (l *ledger) opened(req uint64, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.requests[req]; r != nil && r.class == opening {
		r.session = id
	}
}

// passOn finds who needs a session's slot that a request or the session itself has left: the session, when it is owned, or another
// request that opens it. What it returns nobody needs. Called with the lock.
func (l *ledger) passOn(id string, slot *admission.Slot) (left *admission.Slot) {
	if slot == nil || id == "" {
		return slot
	}
	if h := l.sessions[id]; h != nil && h.slot == nil {
		h.slot = slot
		return nil
	}
	for _, r := range l.requests {
		if r.class == opening && r.session == id && r.slot == nil {
			r.slot = slot
			return nil
		}
	}
	return slot
}

// orphans are the requests that the given actor was to answer; none when it is the zero Ref.
func (l *ledger) orphans(of kernel.Ref) (reqs []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for req, r := range l.requests {
		if r.to == of {
			reqs = append(reqs, req)
		}
	}
	return reqs
}

// requestID is the client's id of an open request.
func (l *ledger) requestID(req uint64) (jsonrpc.ID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.requests[req]
	if r == nil {
		return jsonrpc.ID{}, false
	}
	return r.id, true
}

// cancellable finds the open request with the client's id that whoever has it can take back.
func (l *ledger) cancellable(id jsonrpc.ID) (req uint64, to kernel.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, r := range l.requests {
		if (r.class == prompt || r.class == passed) && r.id.Key() == id.Key() {
			return n, r.to
		}
	}
	return 0, kernel.Ref{}
}

// inFlight counts prompts.
func (l *ledger) inFlight() (prompts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prompts
}

// grant, lose and owner keep the sessions of the connection.
func (l *ledger) grant(id string, to kernel.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch h := l.sessions[id]; {
	case l.gone:
	case h != nil:
		h.to = to
	default:
		l.sessions[id] = &holding{to: to}
	}
}

func (l *ledger) lose(id string) {
	l.mu.Lock()
	var left *admission.Slot
	if h := l.sessions[id]; h != nil {
		delete(l.sessions, id)
		left = l.passOn(id, h.slot)
	}
	l.mu.Unlock()
	left.Release()
}

// owner is where requests for a session of this connection go: to its living generation.
func (l *ledger) owner(id string) (kernel.Ref, bool) {
	l.mu.Lock()
	h := l.sessions[id]
	var to kernel.Ref
	if h != nil {
		to = h.to
	}
	l.mu.Unlock()
	return to.Current(), h != nil
}

// bind, unbind and target keep the tunnels that take notifications of the client.
func (l *ledger) bind(id string, to kernel.Ref) error {
	if id == "" || len(id) > tunnel.MaxConnectionID {
		return tunnel.ErrBadID
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return tunnel.ErrGone
	}
	if _, taken := l.bound[id]; taken {
		return tunnel.ErrInUse
	}
	l.bound[id] = to
	return nil
}

// unbind reports false when the id is another's.
func (l *ledger) unbind(id string, to kernel.Ref) (free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, bound := l.bound[id]; bound && other != to {
		return false
	}
	delete(l.bound, id)
	return true
}

// target finds who gets a notification: by connection id, or by the inner request id of generation C while that is open.
func (l *ledger) target(connectionID, requestID string) (kernel.Ref, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if requestID != "" {
		if a := l.inner[requestID]; a != nil {
			return a.asker, true
		}
	}
	ref, ok := l.bound[connectionID]
	return ref, ok
}

// close ends the book: nothing is entered, granted or bound any more. It returns what was; a second time nothing.
func (l *ledger) close() (sessions []kernel.Ref, asks []*ask) {
	l.mu.Lock()
	l.gone = true
	granted, asked, open := l.sessions, l.asks, l.requests
	l.sessions, l.asks, l.requests = map[string]*holding{}, map[uint64]*ask{}, map[uint64]*openRequest{}
	clear(l.inner)
	clear(l.bound)
	l.prompts, l.connects = 0, 0
	l.mu.Unlock()
	for _, h := range granted {
		sessions = append(sessions, h.to.Current())
	}
	for _, a := range asked {
		a.lease.Release()
		asks = append(asks, a)
	}
	for _, r := range open {
		r.lease.Release()
	}
	return sessions, asks
}

// counts is for the tree.
func (l *ledger) counts() (sessions, requests, asks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions), len(l.requests), len(l.asks)
}
