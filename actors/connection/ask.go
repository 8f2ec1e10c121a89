package connection

import (
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// askBytes is charged for each open request of ours, besides its frame: for its place in the ledger.
const askBytes = 512

// ask is one request of ours to the client that is not answered yet. It is made by whoever asks; from then on only the
// actor and the ledger touch it.
type ask struct {
	id        uint64
	stream    string
	connect   bool // counts against limits.establishes_per_connection
	requestID string
	asker     kernel.Ref
	account   *kernel.Account // pays for the answer
	cancel    func(jsonrpc.ID) []acp.Notification
	arrived   func([]byte) *tunnel.Farewell
	reply     chan error // of a disconnect, which nobody asks through the kernel; one slot
	lease     *kernel.Lease

	question  *kernel.Question // once the actor has got it
	abandoned bool             // nobody waits; it is kept for the sake of arrived
}

// carried brings the question of an ask to the actor, on the data lane.
type carried struct{ id uint64 }

// settled follows its carried in the same lane. The kernel takes a question that is cancelled in the queue out of it
// without a word; an ask whose carried did not come before its settled was cancelled like that.
type settled struct{ id uint64 }

// lostAnswer tells the actor, on the control lane, that an answer came and could not be taken, or that the request was taken
// out of its queue. The ask is out of the ledger already.
type lostAnswer struct {
	ask *ask
	err error
}

// enterAsk gives an ask its id. The error is *kernel.Overloaded when too many connects are in flight, or tunnel.ErrGone.
func (l *ledger) enterAsk(a *ask, maxConnects int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gone:
		return tunnel.ErrGone
	case a.connect && l.connects >= maxConnects:
		return &kernel.Overloaded{Scope: "establishes_per_connection", Limit: int64(maxConnects), Used: int64(l.connects), Size: 1, RetryAfter: readAgain}
	}
	l.lastAsk++
	a.id = l.lastAsk
	l.asks[a.id] = a
	if a.connect {
		l.connects++
	}
	if a.requestID != "" {
		l.inner[a.requestID] = a
	}
	return nil
}

// takeAsk takes an ask out of the ledger, nil when it is not there: whoever gets it ends its life.
func (l *ledger) takeAsk(id uint64) *ask {
	l.mu.Lock()
	a := l.asks[id]
	if a != nil {
		delete(l.asks, id)
		l.forget(a)
	}
	l.mu.Unlock()
	if a != nil {
		a.lease.Release()
	}
	return a
}

// peekAsk finds an ask and leaves it where it is.
func (l *ledger) peekAsk(id uint64) *ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asks[id]
}

// retire keeps an ask that nobody waits for only for the answer that may still come.
func (l *ledger) retire(a *ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.abandoned {
		l.forget(a)
		a.abandoned = true
	}
}

// forget takes an ask out of the counts. Under the lock.
func (l *ledger) forget(a *ask) {
	if a.abandoned {
		return
	}
	if a.connect {
		l.connects--
	}
	if a.requestID != "" && l.inner[a.requestID] == a {
		delete(l.inner, a.requestID)
	}
}

// isBound tells whether a tunnel is bound to that connection id.
func (l *ledger) isBound(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.bound[id]
	return ok
}

// isConnect tells the methods that open an MCP connection.
func isConnect(method string) bool {
	return method == acp.MethodMCPConnect || method == acp.MethodMCPConnect0
}

// maxErrorBytes is the largest error of a client that is handed on whole; it leaves room in the reserve of an answer.
const maxErrorBytes = kernel.AnswerBytes - 512

// errorOf reads the client's error. It is a copy, because errors travel without a lease: one that does not fit an answer's
// reserve keeps its code and the beginning of its message.
func errorOf(raw []byte) (err *jsonrpc.Error, whole bool) {
	if len(raw) <= maxErrorBytes {
		return jsonrpc.ParseError(append([]byte(nil), raw...)), true
	}
	e := jsonrpc.ParseError(raw)
	message := e.Message
	if len(message) > 512 {
		message = message[:512]
	}
	return &jsonrpc.Error{Code: e.Code, Message: string([]byte(message))}, false
}
