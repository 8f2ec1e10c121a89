package admission

import (
	"sync"
	"time"
)

// Desk holds the limits and what is in use of them. All methods are safe from any goroutine; none blocks.
type Desk struct {
	mu     sync.Mutex
	limits []*Limit
	root   Group
}

// New makes a desk without limits.
func New() *Desk {
	d := &Desk{}
	d.root.desk = d
	return d
}

// Limit is a bound on how many there may be at once: in all, or of each (an address, a key).
type Limit struct {
	scope string
	max   int
	retry time.Duration

	// Guarded by the desk's lock.
	used                        int
	by                          map[string]int // in use of each; an entry lives while it is not zero
	admitted, released, refused int64
}

// Limit declares a limit. scope is the key under which it can be configured, and stands in refusals; max is the number of
// slots, 0 or less = no bound, and then nothing is counted; retry is what those who are refused are told. It is for whoever
// makes the room that the limit protects, once, before the first claim.
func (d *Desk) Limit(scope string, max int, retry time.Duration) *Limit {
	l := &Limit{scope: scope, max: max, retry: retry, by: map[string]int{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limits = append(d.limits, l)
	return l
}

// Scope is the limit's name.
func (l *Limit) Scope() string { return l.scope }

// Claim asks for one slot of a limit that is one for all.
func (l *Limit) Claim() Claim { return Claim{limit: l} }

// Of asks for one slot of a limit that each has of its own.
func (l *Limit) Of(whose string) Claim { return Claim{limit: l, of: whose} }

// Claim is one slot of one limit, wanted or held. The zero Claim asks for nothing.
type Claim struct {
	limit *Limit
	of    string
}

func (c Claim) counts() bool { return c.limit != nil && c.limit.max > 0 }

// used is what is in use of the claim's own counter. Called with the lock.
func (c Claim) used() int { return c.limit.by[c.of] }

// Count is what a desk says of one limit.
type Count struct {
	Scope              string
	Max                int   // 0 = off: nothing is counted
	Used               int   // slots held now, of all together
	Admitted, Released int64 // slots since the start; Used is the difference
	Refused            int64 // claims refused in this limit's name
}

// Counts lists all limits, in the order in which they were declared.
func (d *Desk) Counts() []Count {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := make([]Count, len(d.limits))
	for i, l := range d.limits {
		counts[i] = Count{Scope: l.scope, Max: max(l.max, 0), Used: l.used, Admitted: l.admitted, Released: l.released, Refused: l.refused}
	}
	return counts
}

// Used is how many slots of a limit are held, of all together.
func (d *Desk) Used(l *Limit) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.used
}
