package admission

import (
	"slices"

	"github.com/acpod/acpod/runtime/kernel"
)

// Slot is what was admitted: one slot of each claim, until it is given back. It belongs to whoever holds it and may be handed
// on. A nil Slot holds nothing.
type Slot struct {
	desk *Desk

	// Guarded by the desk's lock.
	held       []Claim
	group      *Group
	prev, next *Slot // of the group
}

// Admit reserves a slot for every claim, or none: then the error is *kernel.Overloaded with the first limit that is reached, and
// counted there. It never waits.
func (d *Desk) Admit(claims ...Claim) (*Slot, error) { return d.root.Admit(claims...) }

// Fits tells whether Admit would, now. It reserves and counts nothing: it is for who could make room first.
func (d *Desk) Fits(claims ...Claim) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return decide(nil, claims) == nil
}

// Release gives everything back that the slot still holds. The second time it does nothing.
func (s *Slot) Release() {
	if s == nil {
		return
	}
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	s.end()
}

// end is Release with the lock.
func (s *Slot) end() {
	strike(s.held)
	s.held = nil
	s.group.remove(s)
}

// Give gives back what the slot holds of one limit and keeps the rest. It reports whether there was any.
func (s *Slot) Give(l *Limit) bool {
	if s == nil {
		return false
	}
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	i := slices.IndexFunc(s.held, func(c Claim) bool { return c.limit == l })
	if i < 0 {
		return false
	}
	strike(s.held[i : i+1])
	s.held = slices.Delete(s.held, i, i+1)
	return true
}

// Yield admits a newcomer in exchange for what this slot holds, in one step: the slot is left with keep, and the newcomer has
// its claims. When that does not fit nothing changes and ok is false; it is no refusal yet, and not counted.
func (s *Slot) Yield(keep []Claim, claims ...Claim) (newcomer *Slot, ok bool) {
	if s == nil {
		return nil, false
	}
	d := s.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(s.held) == 0 || decide(s.held, slices.Concat(keep, claims)) != nil {
		return nil, false
	}
	strike(s.held)
	book(keep)
	s.held = slices.Clone(keep)
	return s.group.add(claims), true
}

// Group is slots that end together, at the latest: those of one generation of an actor.
type Group struct {
	desk *Desk

	// Guarded by the desk's lock.
	first  *Slot
	closed bool
}

// Group makes an empty group.
func (d *Desk) Group() *Group { return &Group{desk: d} }

// Admit is Desk.Admit for a slot of the group. After Close it is refused with kernel.ErrStopped.
func (g *Group) Admit(claims ...Claim) (*Slot, error) {
	g.desk.mu.Lock()
	defer g.desk.mu.Unlock()
	if g.closed {
		return nil, kernel.ErrStopped
	}
	if full := decide(nil, claims); full != nil {
		l := full.limit
		l.refused++
		return nil, &kernel.Overloaded{Scope: l.scope, Limit: int64(l.max), Used: int64(full.used()), Size: 1, RetryAfter: l.retry}
	}
	return g.add(claims), nil
}

// Close gives back whatever slots of the group are left. It may be called from anywhere, more than once.
func (g *Group) Close() {
	g.desk.mu.Lock()
	defer g.desk.mu.Unlock()
	g.closed = true
	for g.first != nil {
		g.first.end()
	}
}

// add makes a slot of claims that fit. Called with the lock.
func (g *Group) add(claims []Claim) *Slot {
	s := &Slot{desk: g.desk, held: slices.Clone(claims), group: g, next: g.first}
	if g.first != nil {
		g.first.prev = s
	}
	g.first = s
	book(claims)
	return s
}

// remove takes a slot out of the list, if it still stands there. Called with the lock.
func (g *Group) remove(s *Slot) {
	if s.prev == nil && g.first != s {
		return
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		g.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}
