package connection

import (
	"sync"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
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
)

// openRequest is one request of the client that is not answered yet.
type openRequest struct {
	id      jsonrpc.ID
	class   class
	session string
	to      kernel.Ref // who answers it; when that actor ends, the connection does
	lease   *kernel.Lease
}

// ledger is the connection's book of who is owed what: the client's open requests, our own open requests, the sessions that
// the connection owns, the tunnels bound to it. All methods are safe from any goroutine and none blocks.
type ledger struct {
	mu       sync.Mutex
	requests map[uint64]*openRequest
	lastReq  uint64
	prompts  int
	openings int
	sessions map[string]kernel.Ref
	bound    map[string]kernel.Ref
	asks     map[uint64]*ask
	inner    map[string]*ask // by the inner request id of generation C
	lastAsk  uint64
	connects int
	gone     bool
}

func newLedger() *ledger {
	return &ledger{
		requests: map[uint64]*openRequest{}, sessions: map[string]kernel.Ref{}, bound: map[string]kernel.Ref{},
		asks: map[uint64]*ask{}, inner: map[string]*ask{},
	}
}

// enter notes a request of the client, and gives it the number under which it is answered.
func (l *ledger) enter(r *openRequest) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastReq++
	l.requests[l.lastReq] = r
	l.count(r, 1)
	return l.lastReq
}

func (l *ledger) count(r *openRequest, by int) {
	switch r.class {
	case prompt:
		l.prompts += by
	case opening:
		l.openings += by
	case other:
	}
}

// settle takes a request out of the book: whoever gets it answers it. The second gets nil.
func (l *ledger) settle(req uint64) *openRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.requests[req]
	if r != nil {
		delete(l.requests, req)
		l.count(r, -1)
	}
	return r
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

// promptOf finds the open prompt with the client's id.
func (l *ledger) promptOf(id jsonrpc.ID) (req uint64, to kernel.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, r := range l.requests {
		if r.class == prompt && r.id.Key() == id.Key() {
			return n, r.to
		}
	}
	return 0, kernel.Ref{}
}

// inFlight counts prompts, and sessions owned or being opened.
func (l *ledger) inFlight() (prompts, sessions int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prompts, len(l.sessions) + l.openings
}

// grant, lose and owner keep the sessions of the connection.
func (l *ledger) grant(id string, to kernel.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone {
		l.sessions[id] = to
	}
}

func (l *ledger) lose(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, id)
}

// owner is where requests for a session of this connection go: to its living generation.
func (l *ledger) owner(id string) (kernel.Ref, bool) {
	l.mu.Lock()
	ref, ok := l.sessions[id]
	l.mu.Unlock()
	return ref.Current(), ok
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

func (l *ledger) unbind(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.bound, id)
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

// close ends the book: nothing is granted or bound any more. It returns what was.
func (l *ledger) close() (sessions []kernel.Ref, asks []*ask) {
	l.mu.Lock()
	l.gone = true
	granted, asked, open := l.sessions, l.asks, l.requests
	l.sessions, l.asks, l.requests = map[string]kernel.Ref{}, map[uint64]*ask{}, map[uint64]*openRequest{}
	clear(l.inner)
	clear(l.bound)
	l.prompts, l.openings, l.connects = 0, 0, 0
	l.mu.Unlock()
	for _, ref := range granted {
		sessions = append(sessions, ref.Current())
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
