package ledger

import (
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// Requests are those that one socket has sent to the pod: each is answered once, or its socket ends.
type Requests struct {
	book *invariant.Book
	name string // of the socket, for the report

	mu   sync.Mutex
	open map[string]sent
	done map[string]struct{}
}

type sent struct {
	method string
	at     time.Time
	bound  time.Duration
}

// NewRequests makes the ledger of one socket.
func NewRequests(book *invariant.Book, name string) *Requests {
	return &Requests{book: book, name: name, open: map[string]sent{}, done: map[string]struct{}{}}
}

// Send enters a request before it is written; the answer is due within bound.
func (r *Requests) Send(id, method string, now time.Time, bound time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[id] = sent{method, now, bound}
}

// Answer enters an answer of the pod and reports whether a request was open for it.
func (r *Requests) Answer(id string) bool {
	r.mu.Lock()
	_, open := r.open[id]
	_, done := r.done[id]
	delete(r.open, id)
	if open {
		r.done[id] = struct{}{}
	}
	r.mu.Unlock()
	switch {
	case open:
		r.book.Exercise(invariant.AnsweredOnce)
	case done:
		r.book.Break(invariant.AnsweredOnce, []string{r.name}, "%s: request %s was answered twice", r.name, id)
	default:
		r.book.Break(invariant.AnsweredOnce, []string{r.name}, "%s: an answer to request %s, which was not made", r.name, id)
	}
	return open
}

// Check breaks the promise for each request that is overdue, once.
func (r *Requests) Check(now time.Time) {
	r.mu.Lock()
	late := map[string]sent{}
	for id, s := range r.open {
		if now.Sub(s.at) > s.bound {
			late[id] = s
			delete(r.open, id)
			r.done[id] = struct{}{}
		}
	}
	r.mu.Unlock()
	for id, s := range late {
		r.book.Break(invariant.AnsweredOnce, []string{r.name}, "%s: %s (%s) is not answered after %s, and the socket lives", r.name, s.method, id, s.bound)
	}
}

// Close is for the end of the socket, which answers all that is open, and gives how many that were.
func (r *Requests) Close() int {
	r.mu.Lock()
	n := len(r.open)
	clear(r.open)
	r.mu.Unlock()
	r.book.ExerciseN(invariant.AnsweredOnce, int64(n))
	return n
}

// Open is how many requests wait for their answer.
func (r *Requests) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// Asked are the requests that the pod has sent on one socket: an id is not used again while its request is open.
type Asked struct {
	book *invariant.Book
	name string

	mu   sync.Mutex
	open map[string]string
}

// NewAsked makes the ledger of one socket.
func NewAsked(book *invariant.Book, name string) *Asked {
	return &Asked{book: book, name: name, open: map[string]string{}}
}

// Ask enters a request of the pod.
func (a *Asked) Ask(id, method string) {
	a.mu.Lock()
	former, twice := a.open[id]
	a.open[id] = method
	a.mu.Unlock()
	if twice {
		a.book.Break(invariant.AnsweredOnce, []string{a.name}, "%s: the pod asks %s with the id %s of its open %s", a.name, method, id, former)
	}
}

// Reply enters our answer.
func (a *Asked) Reply(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}
