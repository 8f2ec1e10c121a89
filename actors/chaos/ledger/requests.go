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
	open map[string][]sent // an id that is used twice is owed two answers
	done map[string]struct{}
}

type sent struct {
	method string
	at     time.Time
	bound  time.Duration
}

// NewRequests makes the ledger of one socket.
func NewRequests(book *invariant.Book, name string) *Requests {
	return &Requests{book: book, name: name, open: map[string][]sent{}, done: map[string]struct{}{}}
}

// Send enters a request before it is written; the answer is due within bound.
func (r *Requests) Send(id, method string, now time.Time, bound time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[id] = append(r.open[id], sent{method, now, bound})
}

// Answer enters an answer of the pod and reports whether a request was open for it.
func (r *Requests) Answer(id string) bool {
	r.mu.Lock()
	waiting := r.open[id]
	open := len(waiting) > 0
	_, done := r.done[id]
	if open {
		r.take(id, waiting[1:])
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

// take leaves the rest open; called with the lock.
func (r *Requests) take(id string, rest []sent) {
	r.done[id] = struct{}{}
	if len(rest) == 0 {
		delete(r.open, id)
		return
	}
	r.open[id] = rest
}

// Check breaks the promise for each request that is overdue, once.
func (r *Requests) Check(now time.Time) {
	r.mu.Lock()
	late := map[string]sent{}
	for id, waiting := range r.open {
		if s := waiting[0]; now.Sub(s.at) > s.bound {
			late[id] = s
			r.take(id, waiting[1:])
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
	n := 0
	for _, waiting := range r.open {
		n += len(waiting)
	}
	clear(r.open)
	r.mu.Unlock()
	r.book.ExerciseN(invariant.AnsweredOnce, int64(n))
	return n
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

// Open is how many requests of that method wait for our answer.
func (a *Asked) Open(method string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, open := range a.open {
		if open == method {
			n++
		}
	}
	return n
}

// Reply enters our answer.
func (a *Asked) Reply(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}
