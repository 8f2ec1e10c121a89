package connection

import (
	"errors"
	"sync"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// refusalLimit frames refused within refusalWindow end a connection: a peer that goes on although it is told no.
	refusalLimit  = 64
	refusalWindow = 10 * time.Second
)

// refusals is the budget of frames that are answered -32700, -32600 or -32000, or dropped for size or load. The reader
// and the actor both spend from it, so it has a lock of its own.
type refusals struct {
	mu    sync.Mutex
	at    [refusalLimit]time.Time
	next  int
	count int64
}

// spend counts one refusal and reports whether it was the one that ends the connection: the 64th within 10 s.
func (r *refusals) spend(now time.Time) (spent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[r.next] = now
	r.next = (r.next + 1) % refusalLimit
	r.count++
	oldest := r.at[r.next]
	return r.count >= refusalLimit && now.Sub(oldest) < refusalWindow
}

// total is the number of refusals in the connection's life.
func (r *refusals) total() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// refuse has the tree count an error of the pod's own, and takes from the budget what counts against it. An error of the
// agent passes as it came and is no refusal of ours.
func (cl *client) refuse(e *jsonrpc.Error) {
	if e.Raw() != nil {
		return
	}
	if scope := scopeOf(e); scope != "" {
		cl.self.CountRefusal(scope)
	}
	switch e.Code {
	case jsonrpc.CodeParse, jsonrpc.InvalidRequest, jsonrpc.Overload:
		cl.spend()
	}
}

// scopeOf is the name under which an error is counted: of a limit its key, of anything else what is wrong. It is empty for
// what is no refusal: a cancellation, and the failures that are seen where they happen.
func scopeOf(e *jsonrpc.Error) string {
	switch e.Code {
	case jsonrpc.CodeParse:
		return "not_json"
	case jsonrpc.InvalidRequest:
		return "invalid_request"
	case jsonrpc.MethodNotFound:
		return "unknown_method"
	case jsonrpc.InvalidParams:
		return "invalid_params"
	case jsonrpc.NotInitialized:
		return "not_initialized"
	case jsonrpc.Busy:
		return e.Reason()
	case jsonrpc.Overload:
		if data, ok := e.Data.(jsonrpc.OverloadData); ok {
			return data.Scope
		}
		return "overload"
	}
	return ""
}

// drop counts a frame that found no room: under the scope of what was full. Nobody is answered.
func (cl *client) drop(why error) {
	scope := "frame_dropped"
	if full, ok := errors.AsType[*kernel.Overloaded](why); ok {
		scope = full.Scope
	}
	cl.self.CountRefusal(scope)
	cl.spend()
}

// spend takes one refusal from the budget; the one too many ends the connection.
func (cl *client) spend() {
	if cl.refused.spend(time.Now()) {
		cl.self.Stop(&Exit{Reason: TooManyRefusals})
	}
}
