package connection

import (
	"sync"
	"time"
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
