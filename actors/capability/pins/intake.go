package pins

import (
	"strings"

	"github.com/acpod/acpod/actors/capability"
)

// intake takes lines of the file into the table. The file is the last word on all that it says; what it does not say yet stays as it
// is known.
type intake struct {
	table *table
	open  *edit            // of the owner of the line before
	told  map[key]struct{} // when the file is read anew: of which tools it speaks
}

// fresh begins a file from its first line.
func (in *intake) fresh() { in.table.doubt.Store(false) }

// line takes in one.
func (in *intake) line(text []byte) error {
	r, err := parse(text)
	if err != nil {
		return err
	}
	t := in.table
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{capability.PinOwner{Scope: r.Scope, Server: r.Server}, r.Tool}
	switch r.Op {
	case opDoubt:
		t.doubt.Store(true)
	case opTrust:
		in.publishLocked()
		t.doubt.Store(false)
		t.trust()
	case opUsed:
		if sc := t.scopes[r.Scope]; sc != nil {
			sc.told = r.At.Unix()
			sc.used.Store(max(sc.used.Load(), sc.told))
		}
	case opDrop:
		in.publishLocked()
		if sc := t.scopes[r.Scope]; sc != nil {
			t.drop(sc)
		}
	case opForget:
		if e := in.edit(k.owner, r.At.Unix()); e != nil {
			t.dirty.forget(k)
			e.put(k.tool, nil)
			e.s.full.Store(false)
			t.crowded.Store(false)
		}
	default:
		return in.tool(k, r)
	}
	return nil
}

// tool takes in what a line says of a tool. Called with the lock.
func (in *intake) tool(k key, r record) error {
	next, err := r.entry()
	if err != nil {
		return err
	}
	first := false // word of this file on it
	if in.told != nil {
		_, told := in.told[k]
		first = !told
		in.told[k] = struct{}{}
	}
	t := in.table
	e := in.edit(k.owner, r.At.Unix())
	if e == nil {
		t.crowded.Store(true)
		return nil
	}
	if was := e.get(k.tool); was != nil && r.Op == opPin && was.pinned && !first && !t.dirty.has(k) {
		kept := *was // it was pinned before that line
		kept.held = next.held
		next = &kept
	}
	t.dirty.forget(k)
	if !e.put(k.tool, next) {
		e.s.full.Store(true)
	}
	return nil
}

// edit is the change of an owner's tools that is under way. Called with the lock.
func (in *intake) edit(owner capability.PinOwner, now int64) *edit {
	if in.open != nil && in.open.owner == owner && in.table.find(owner) == in.open.s {
		return in.open
	}
	in.publishLocked()
	s := in.table.shelf(owner, now)
	if s == nil {
		return nil
	}
	owner.Scope, owner.Server = strings.Clone(owner.Scope), strings.Clone(owner.Server)
	in.open = in.table.edit(owner, s)
	return in.open
}

func (in *intake) publishLocked() {
	if in.open != nil {
		in.open.publish()
		in.open = nil
	}
}

func (in *intake) publish() {
	in.table.mu.Lock()
	defer in.table.mu.Unlock()
	in.publishLocked()
}

// missing forgets what a file that was read anew does not speak of: somebody had it forgotten. What was never written stays.
func (in *intake) missing() {
	if in.told == nil {
		return
	}
	t := in.table
	t.mu.Lock()
	defer t.mu.Unlock()
	in.publishLocked()
	t.everyShelf(func(owner capability.PinOwner, s *shelf) {
		e := t.edit(owner, s)
		for tool := range *s.tools.Load() {
			k := key{e.owner, tool}
			if _, told := in.told[k]; !told && !t.dirty.has(k) {
				e.put(tool, nil)
			}
		}
		e.publish()
	})
}

// trust takes what was held for want of a readable pin for what is pinned. Called with the lock.
func (t *table) trust() {
	t.everyShelf(func(owner capability.PinOwner, s *shelf) {
		e := t.edit(owner, s)
		for tool, p := range *s.tools.Load() {
			if !p.pinned && p.held != nil {
				e.put(tool, &pin{digest: p.held.digest, sum: p.held.sum, pinned: true, at: p.held.at})
				t.dirty.forget(key{e.owner, tool})
			}
		}
		e.publish()
	})
}

// everyShelf visits all of them. Called with the lock.
func (t *table) everyShelf(visit func(capability.PinOwner, *shelf)) {
	for _, sc := range t.scopes {
		for server, s := range sc.shelves {
			visit(capability.PinOwner{Scope: sc.name, Server: server}, s)
		}
	}
}
