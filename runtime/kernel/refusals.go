package kernel

import (
	"sync"
	"sync/atomic"
)

// MaxRefusals bounds the pairs of kind and scope that a kernel counts apart. Both are words of the code, so this is never reached
// unless somebody makes one of what a peer chose; then what is over it is counted as kind and scope [OtherRefusals].
const MaxRefusals = 512

// OtherRefusals is the kind and the scope of refusals beyond [MaxRefusals].
const OtherRefusals = "other"

// Refusal is one sort of refusal, counted over all generations that have ever lived.
type Refusal struct {
	Kind, Scope string
	Count       int64
}

// refusals is the part of the kernel's book that outlives those who refused: it only grows. The counts are handed out, so
// that each cell counts without a lock of the kernel's once it knows its own.
type refusals struct {
	mu     sync.Mutex
	counts map[refusalKey]*atomic.Int64
}

type refusalKey struct{ kind, scope string }

// of finds or makes the count of a pair, and tells under which scope it runs.
func (r *refusals) of(kind, scope string) (string, *atomic.Int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := refusalKey{kind, scope}
	n := r.counts[at]
	if n == nil && len(r.counts) >= MaxRefusals {
		at = refusalKey{OtherRefusals, OtherRefusals}
		n = r.counts[at]
	}
	if n == nil {
		if r.counts == nil {
			r.counts = map[refusalKey]*atomic.Int64{}
		}
		n = &atomic.Int64{}
		r.counts[at] = n
	}
	return at.scope, n
}

// Refusals is what all actors have refused so far, of living and of ended generations; no count in it ever falls. From any goroutine.
func (k *Kernel) Refusals() []Refusal {
	k.refusals.mu.Lock()
	defer k.refusals.mu.Unlock()
	out := make([]Refusal, 0, len(k.refusals.counts))
	for at, n := range k.refusals.counts {
		out = append(out, Refusal{at.kind, at.scope, n.Load()})
	}
	return out
}

// refused counts what one generation refused, for the tree, and knows where the kernel counts the same.
type refused struct {
	own   int64
	total *atomic.Int64
}

func (c *cell) refuse(scope string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.refused[scope]
	if n == nil {
		name, total := c.k.refusals.of(c.slot.spec.Kind, scope)
		if n = c.refused[name]; n == nil {
			n = &refused{total: total}
		}
		if c.refused == nil {
			c.refused = map[string]*refused{}
		}
		c.refused[name] = n
	}
	n.own++
	n.total.Add(1)
}

// refusedSoFar is what the tree shows. Under c.mu.
func (c *cell) refusedSoFar() map[string]int64 {
	if c.refused == nil {
		return nil
	}
	out := make(map[string]int64, len(c.refused))
	for scope, n := range c.refused {
		out[scope] = n.own
	}
	return out
}
