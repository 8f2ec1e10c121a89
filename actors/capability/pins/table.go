package pins

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
)

// Bounds of the table. What is in it outlives everybody whom an account could charge, so the bound is one on memory: the pins of the operator's servers
// and those of clients have half of [Bytes] each, and neither takes from the other.
const (
	Bytes       = 16 << 20 // of memory, of all pins
	ClientTools = 2000     // pinned for one client

	pinBytes   = 384 // a pin in its map, beside its name
	heldBytes  = 256 // the definition that is held
	shelfBytes = 640 // a server, and its scope when it is the only one
)

// key is one tool of one owner.
type key struct {
	owner capability.PinOwner
	tool  string
}

// pin is what is known of a tool. Immutable.
type pin struct {
	digest capability.Digest
	sum    [32]byte // of digest
	pinned bool     // false: its pin may have been lost, and only held says what it is
	at     int64    // Unix seconds
	noted  int64    // when the file was last told, or is about to be, that it is held
	held   *held
}

// held is a definition that is not the pinned one. Immutable.
type held struct {
	digest capability.Digest
	sum    [32]byte
	at     int64
}

func (p *pin) bytes(tool string) int64 {
	n := pinBytes + int64(len(tool))
	if p.held != nil {
		n += heldBytes
	}
	return n
}

// shelf is the pins of one server of one scope.
type shelf struct {
	tools atomic.Pointer[map[string]*pin] // never nil
	full  atomic.Bool                     // some tool found no room for its pin
	scope *scope
}

func (s *shelf) get(tool string) *pin { return (*s.tools.Load())[tool] }

// scope is one client, or the operator.
type scope struct {
	name    string
	shelves map[string]*shelf // by server
	pins    int
	bytes   int64
	used    atomic.Int64 // Unix seconds
	told    int64        // what the file says of used
}

// key is whom the scope belongs to among clients: the part of its name before the dash.
func (s *scope) key() string {
	k, _, _ := strings.Cut(s.name, "-")
	return k
}

// table is what is known.
type table struct {
	shelves [shards]atomic.Pointer[map[capability.PinOwner]*shelf] // each an immutable map; nil = empty
	doubt   atomic.Bool                                            // pins were lost
	crowded atomic.Bool                                            // a server of the operator's found no room for any pin
	limit   int64                                                  // bytes of the operator's pins, and of the clients'
	held    atomic.Int64
	pins    atomic.Int64

	mu     sync.Mutex // orders who changes it
	scopes map[string]*scope
	bytes  [2]int64 // of the operator's pins, of the clients'
	dirty  dirty
}

// dirty is what the file does not say yet. It holds no more than the table does, save for drops, which are counted.
type dirty struct {
	tools  map[key]string   // → op
	later  map[key]string   // the same, of tools that change all the time
	since  int64            // when the first of later was put there, Unix seconds
	news   map[key]struct{} // held, and nobody was told
	scopes map[string]struct{}
	drops  []string
	whole  bool // the file is to be written anew
}

func newDirty() dirty {
	return dirty{tools: map[key]string{}, later: map[key]string{}, news: map[key]struct{}{}, scopes: map[string]struct{}{}}
}

// none reports that the file says all.
func (d *dirty) none() bool {
	return len(d.tools) == 0 && len(d.scopes) == 0 && len(d.drops) == 0 && !d.whole
}

// forget takes a tool out: there is nothing to write of it any more.
func (d *dirty) forget(k key) {
	delete(d.tools, k)
	delete(d.later, k)
	delete(d.news, k)
}

// mark has a tool written, soon or, of one that was marked a moment ago, some seconds later. opSet says more than opPin.
func (d *dirty) mark(k key, op string, soon bool, now int64) {
	if d.tools[k] == opSet || d.later[k] == opSet {
		op = opSet
	}
	if _, waits := d.tools[k]; soon || waits {
		delete(d.later, k)
		d.tools[k] = op
		return
	}
	if len(d.later) == 0 {
		d.since = now
	}
	d.later[k] = op
}

// has reports that the file does not say yet what is known of a tool.
func (d *dirty) has(k key) bool {
	_, soon := d.tools[k]
	_, later := d.later[k]
	return soon || later
}

// mostDrops are remembered one by one; past them the file is written anew, which says the same.
const mostDrops = 1024

func newTable(limit int64) *table {
	return &table{limit: limit, scopes: map[string]*scope{}, dirty: newDirty()}
}

// shards is how many maps the table of shelves is cut into, so that a new client copies one of them and not all.
const shards = 64

func shard(owner capability.PinOwner) int {
	h := uint32(2166136261)
	for _, s := range [...]string{owner.Scope, owner.Server} {
		for i := max(0, len(s)-8); i < len(s); i++ {
			h = (h ^ uint32(s[i])) * 16777619
		}
	}
	return int(h % shards)
}

func (t *table) find(owner capability.PinOwner) *shelf {
	if m := t.shelves[shard(owner)].Load(); m != nil {
		return (*m)[owner]
	}
	return nil
}

// place puts a shelf there, or takes it away when it is nil. Called with the lock.
func (t *table) place(owner capability.PinOwner, s *shelf) {
	at := &t.shelves[shard(owner)]
	next := map[capability.PinOwner]*shelf{}
	if m := at.Load(); m != nil {
		next = maps.Clone(*m)
	}
	if s == nil {
		delete(next, owner)
	} else {
		next[owner] = s
	}
	at.Store(&next)
}

func side(scope string) int {
	if scope == "" {
		return 0
	}
	return 1
}

// shelf finds or makes that of an owner; nil when there is no room for it. Called with the lock.
func (t *table) shelf(owner capability.PinOwner, now int64) *shelf {
	if s := t.find(owner); s != nil {
		return s
	}
	// What it is kept by must not keep the frame alive that it came in.
	owner.Scope, owner.Server = strings.Clone(owner.Scope), strings.Clone(owner.Server)
	sc := t.scopes[owner.Scope]
	if sc == nil {
		sc = &scope{name: owner.Scope, shelves: map[string]*shelf{}}
		sc.used.Store(now)
		t.scopes[owner.Scope] = sc
	}
	s := &shelf{scope: sc}
	empty := map[string]*pin{}
	s.tools.Store(&empty)
	cost := shelfBytes + int64(len(owner.Scope)+len(owner.Server))
	if !t.room(sc, cost) {
		if len(sc.shelves) == 0 {
			delete(t.scopes, owner.Scope)
		}
		return nil
	}
	sc.bytes += cost
	t.bytes[side(owner.Scope)] += cost
	sc.shelves[owner.Server] = s
	t.place(owner, s)
	return s
}

// room makes room for more of a scope; false when there is none. Called with the lock.
func (t *table) room(sc *scope, more int64) bool {
	at := side(sc.name)
	for t.bytes[at]+more > t.limit {
		if at == 0 || !t.evict(sc) {
			return false
		}
	}
	return true
}

// evict forgets the scope that was used longest ago, of the key that has the most, so that whoever makes up clients
// displaces their own. It spares the one given. Called with the lock.
func (t *table) evict(spare *scope) bool {
	byKey := map[string]int64{}
	for name, sc := range t.scopes {
		if name != "" && sc != spare {
			byKey[sc.key()] += sc.bytes
		}
	}
	var victim *scope
	for name, sc := range t.scopes {
		if name == "" || sc == spare {
			continue
		}
		if victim == nil {
			victim = sc
			continue
		}
		if a, b := byKey[sc.key()], byKey[victim.key()]; a > b || a == b && (sc.used.Load() < victim.used.Load() || sc.used.Load() == victim.used.Load() && sc.name < victim.name) {
			victim = sc
		}
	}
	if victim == nil {
		return false
	}
	t.drop(victim)
	if t.dirty.drops = append(t.dirty.drops, victim.name); len(t.dirty.drops) > mostDrops {
		t.dirty.drops, t.dirty.whole = nil, true
	}
	return true
}

// drop forgets a scope. Called with the lock.
func (t *table) drop(sc *scope) {
	for server, s := range sc.shelves {
		owner := capability.PinOwner{Scope: sc.name, Server: server}
		for tool, p := range *s.tools.Load() {
			t.dirty.forget(key{owner, tool})
			t.count(p, -1)
		}
		t.place(owner, nil)
	}
	t.bytes[side(sc.name)] -= sc.bytes
	delete(t.scopes, sc.name)
	delete(t.dirty.scopes, sc.name)
}

func (t *table) count(p *pin, n int64) {
	t.pins.Add(n)
	if p.held != nil {
		t.held.Add(n)
	}
}

// due has what waited long enough written. It returns what is held and nobody was told of yet, and whether there is nothing to write.
func (t *table) due(now int64, all bool) (news map[key]struct{}, clean bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.dirty
	if len(d.later) > 0 && (all || now-d.since >= restlessEvery) {
		maps.Copy(d.tools, d.later)
		clear(d.later)
	}
	if len(d.news) > 0 {
		news, d.news = d.news, map[key]struct{}{}
	}
	return news, d.none()
}

// take is what has to be written; from now on somebody is about to.
func (t *table) take() dirty {
	t.mu.Lock()
	defer t.mu.Unlock()
	work := t.dirty
	t.dirty = newDirty()
	t.dirty.later, t.dirty.since, t.dirty.news = work.later, work.since, work.news
	return work
}

// rewrite has all of it written.
func (t *table) rewrite() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty.whole = true
}

// edit is a change of one shelf that is published in one step. Called with the lock, from begin to publish.
type edit struct {
	t     *table
	s     *shelf
	owner capability.PinOwner
	tools map[string]*pin // nil: unchanged
}

func (t *table) edit(owner capability.PinOwner, s *shelf) *edit {
	return &edit{t: t, s: s, owner: owner}
}

func (e *edit) get(tool string) *pin {
	if e.tools != nil {
		return e.tools[tool]
	}
	return e.s.get(tool)
}

// put replaces what is known of a tool, nil forgets it; false when there is no room.
func (e *edit) put(tool string, p *pin) bool {
	before := e.get(tool)
	var more int64
	if p != nil {
		more += p.bytes(tool)
	}
	if before != nil {
		more -= before.bytes(tool)
	}
	sc := e.s.scope
	if before == nil && sc.name != "" && sc.pins >= ClientTools || more > 0 && !e.t.room(sc, more) {
		return false
	}
	if e.tools == nil {
		e.tools = maps.Clone(*e.s.tools.Load())
	}
	if before != nil {
		sc.pins--
		e.t.count(before, -1)
	}
	if p == nil {
		delete(e.tools, tool)
	} else {
		if before == nil {
			tool = strings.Clone(tool)
		}
		sc.pins++
		e.t.count(p, 1)
		e.tools[tool] = p
	}
	sc.bytes += more
	e.t.bytes[side(sc.name)] += more
	return true
}

func (e *edit) publish() {
	if e.tools != nil {
		e.s.tools.Store(&e.tools)
	}
}

// changes names what is held of a tool.
func (p *pin) changes() []string {
	switch {
	case p.held == nil:
		return nil
	case !p.pinned:
		return []string{capability.PinUnreadable}
	case p.digest.Version != p.held.digest.Version:
		return []string{capability.PinNewer}
	}
	return p.held.digest.Changes(p.digest)
}
