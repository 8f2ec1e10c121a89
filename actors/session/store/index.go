package store

import (
	"cmp"
	"slices"

	"github.com/acpod/acpod/actors/session"
)

// index knows of each record what a list, a sweep and the bounds need, so that none of them reads the folder. Its user has the
// lock.
type index struct {
	most   bounds
	byName map[name]*entry
	byKey  map[string]*keyring
	held   int
	idle   bounds // what is not held, together
}

// bounds are of records that nobody holds.
type bounds struct {
	records      int
	memory, disk int64
}

func (b bounds) within(most bounds) bool {
	return b.records <= most.records && b.memory <= most.memory && b.disk <= most.disk
}

// entry is one record.
type entry struct {
	name       name
	shelf      *shelf
	at         int   // its place there
	updated    int64 // in nanoseconds since 1970
	generation uint64
	memory     int64
	disk       int64
	held       bool             // by this pod
	elsewhere  bool             // by another that lives, when it was last looked at: no bound removes it
	kept       *session.Durable // in memory only
}

// keyring is all records of one key.
type keyring struct {
	name    string
	idle    int
	clients map[[32]byte]*shelf
}

// shelf is those of one client; the zero client's are those of all that gave no secret.
type shelf struct {
	key     *keyring
	client  [32]byte
	entries []*entry
}

func newIndex(o Options) *index {
	return &index{most: bounds{o.Records, o.Memory, o.Disk}, byName: map[name]*entry{}, byKey: map[string]*keyring{}}
}

// put enters what is known of a record now, in place of what was.
func (x *index) put(e entry, key string, client [32]byte) {
	x.remove(e.name)
	ring := x.byKey[key]
	if ring == nil {
		ring = &keyring{name: key, clients: map[[32]byte]*shelf{}}
		x.byKey[key] = ring
	}
	s := ring.clients[client]
	if s == nil {
		s = &shelf{key: ring, client: client}
		ring.clients[client] = s
	}
	e.shelf, e.at = s, len(s.entries)
	s.entries = append(s.entries, &e)
	x.byName[e.name] = &e
	x.count(&e, 1)
}

func (x *index) count(e *entry, by int) {
	switch {
	case e.held:
		x.held += by
	case !e.elsewhere:
		x.idle.records += by
		x.idle.memory += int64(by) * e.memory
		x.idle.disk += int64(by) * e.disk
		e.shelf.key.idle += by
	}
}

func (x *index) remove(n name) {
	e := x.byName[n]
	if e == nil {
		return
	}
	x.count(e, -1)
	delete(x.byName, n)
	s := e.shelf
	last := len(s.entries) - 1
	s.entries[e.at] = s.entries[last]
	s.entries[e.at].at = e.at
	s.entries[last] = nil
	s.entries = s.entries[:last]
	if last > 0 {
		return
	}
	delete(s.key.clients, s.client)
	if len(s.key.clients) == 0 {
		delete(x.byKey, s.key.name)
	}
}

// mark says who has a record.
func (x *index) mark(n name, held, elsewhere bool) {
	if e := x.byName[n]; e != nil {
		x.count(e, -1)
		e.held, e.elsewhere = held, elsewhere
		x.count(e, 1)
	}
}

// holds tells whether this pod has the record, in that generation.
func (x *index) holds(n name, generation uint64) bool {
	e := x.byName[n]
	return e != nil && e.held && e.generation == generation
}

// list are the records of a key and client, the latest first.
func (x *index) list(key string, client [32]byte) []name {
	ring := x.byKey[key]
	if ring == nil || ring.clients[client] == nil {
		return nil
	}
	entries := slices.Clone(ring.clients[client].entries)
	slices.SortFunc(entries, func(a, b *entry) int { return -byAge(a, b) })
	return names(entries)
}

// stale are those that this pod does not hold and that were last changed before then.
func (x *index) stale(before int64) []name {
	var found []*entry
	for _, e := range x.byName {
		if !e.held && e.updated < before {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, byAge)
	return names(found)
}

// excess are the records that have to go, a few more than must, so that it is not asked at each record: again and again the oldest of
// the key that has most.
func (x *index) excess() []name {
	if x.idle.within(x.most) {
		return nil
	}
	least := bounds{x.most.records - x.most.records/64, x.most.memory - x.most.memory/64, x.most.disk - x.most.disk/64}
	left, counts, queues := x.idle, map[*keyring]int{}, map[*keyring][]*entry{}
	for _, ring := range x.byKey {
		counts[ring] = ring.idle
	}
	var gone []*entry
	for !left.within(least) {
		var most *keyring
		for ring, n := range counts {
			if n > 0 && (most == nil || n > counts[most] || n == counts[most] && ring.name < most.name) {
				most = ring
			}
		}
		if most == nil {
			break
		}
		if queues[most] == nil {
			queues[most] = most.oldest()
		}
		e := queues[most][0]
		queues[most] = queues[most][1:]
		counts[most]--
		left = bounds{left.records - 1, left.memory - e.memory, left.disk - e.disk}
		gone = append(gone, e)
	}
	return names(gone)
}

// oldest are a key's records that nobody holds, the oldest first.
func (k *keyring) oldest() []*entry {
	var idle []*entry
	for _, s := range k.clients {
		for _, e := range s.entries {
			if !e.held && !e.elsewhere {
				idle = append(idle, e)
			}
		}
	}
	slices.SortFunc(idle, byAge)
	return idle
}

func byAge(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.updated, b.updated), slices.Compare(a.name[:], b.name[:]))
}

func names(entries []*entry) []name {
	list := make([]name, len(entries))
	for i, e := range entries {
		list[i] = e.name
	}
	return list
}
