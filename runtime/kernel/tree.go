package kernel

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Node is one actor as data.
type Node struct {
	Path, Name, Kind string
	Gen              uint64
	State            string // starting, running, stopping or abandoned
	Since            time.Time
	Queue            QueueStat
	Account          AccountStat
	Doing            *Doing
	Owes             []Owed
	Refused          map[string]int64
	Restarts         int
	Attrs            map[string]any
	Kids             int // how many children it has, also where Children are left out
	Children         []Node
}

// QueueStat is what waits in a mailbox, both lanes.
type QueueStat struct {
	N       int
	Bytes   int64     // of what waits
	Oldest  time.Time // zero when nothing waits
	Control int64     // the part of Bytes that is in the control reserve, not on the account
	Turn    int64     // charged to the account for the message in turn
	Answers int64     // charged to the account for answers to come
}

// AccountStat is the account that an actor's mailbox is charged to.
type AccountStat struct {
	Used, Limit int64
	Scope       string
}

// Doing is the turn or hook that runs now: the type of the message, or Start, or Stop.
type Doing struct {
	Type  string
	Since time.Time
}

// Owed is an obligation in the book.
type Owed struct {
	Name  string
	Since time.Time
}

// Tree is the whole tree as it is now, from any goroutine and without a turn of any actor. It locks one actor at a time: what
// moves while it is read may show in both places or in none. The zero Node: there is no root, or it has ended.
func (k *Kernel) Tree() Node {
	var at []*Node // the way from the root to the last node, by depth
	var root Node
	k.Walk(func(n Node, depth int) bool {
		if depth == 0 {
			root = n
			at = []*Node{&root}
			return true
		}
		p := at[depth-1]
		if p.Children == nil {
			p.Children = make([]Node, 0, p.Kids)
		}
		p.Children = append(p.Children, n)
		at = append(at[:depth], &p.Children[len(p.Children)-1])
		return true
	})
	return root
}

// Walk shows the nodes of [Kernel.Tree] one by one, each before those below it, and holds no more of the tree than the way to the
// present one and the numbers of its siblings: so that a tree of any size can be written out. depth is 0 for the root. down tells
// whether what is below the node is wanted. Nodes have no Children here. visit may block; nothing is locked meanwhile, and what has
// ended by the time its turn comes is not visited.
func (k *Kernel) Walk(visit func(n Node, depth int) (down bool)) {
	k.mu.Lock()
	c := k.root
	gone := c == nil || c.life.phase == settled && !k.stuck(c) && len(c.life.left) == 0
	k.mu.Unlock()
	if !gone {
		k.walk(c, 0, visit)
	}
}

func (k *Kernel) walk(c *cell, depth int, visit func(Node, int) bool) {
	n, kids := k.node(c)
	if !visit(n, depth) {
		return
	}
	for _, gen := range kids {
		k.mu.Lock()
		kid := c.life.kids[gen]
		for _, left := range c.life.left {
			if left.gen == gen {
				kid = left
			}
		}
		k.mu.Unlock()
		if kid != nil {
			k.walk(kid, depth+1, visit)
		}
	}
}

// node is one actor as it is now, and the generations of its children in the order of their spawning.
func (k *Kernel) node(c *cell) (Node, []uint64) {
	n := Node{Path: c.path, Name: c.slot.spec.Name, Kind: c.slot.spec.Kind, Gen: c.gen}
	k.mu.Lock()
	l := &c.life
	n.State, n.Since, n.Restarts = k.state(c), l.since, c.slot.restarts
	for o := l.book.first; o != nil; o = o.next {
		n.Owes = append(n.Owes, Owed{o.name, o.since})
	}
	kids := generations(l)
	k.mu.Unlock()
	n.Kids = len(kids)
	n.Queue, n.Doing = c.mb.stat()
	n.Account = AccountStat{c.acct.Used(), c.acct.Limit(), c.acct.Scope()}
	c.mu.Lock()
	n.Attrs, n.Refused = maps.Clone(c.attrs), c.refusedSoFar()
	c.mu.Unlock()
	return n, kids
}

// generations lists all children of a life, those included that something is still stuck in. Under the lock.
func generations(l *life) []uint64 {
	if len(l.kids)+len(l.left) == 0 {
		return nil
	}
	kids := slices.AppendSeq(slices.Clone(l.left), maps.Values(l.kids))
	sortBySpawn(kids)
	out := make([]uint64, len(kids))
	for i, kid := range kids {
		out[i] = kid.gen
	}
	return out
}

// state names the phase. Under the lock.
func (k *Kernel) state(c *cell) string {
	l := &c.life
	switch {
	case l.abandoned, l.phase == settled:
		return "abandoned"
	case l.phase >= stopping:
		return "stopping"
	case l.phase == running:
		return "running"
	default:
		return "starting"
	}
}

func (m *mailbox) stat() (QueueStat, *Doing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := QueueStat{N: m.control.n + m.data.n, Bytes: m.bytes + m.reserve, Control: m.reserve, Answers: m.answers.Load()}
	for _, lane := range []*ring{&m.control, &m.data} {
		if it := lane.first(); it != nil && (q.Oldest.IsZero() || it.at < q.Oldest.UnixNano()) {
			q.Oldest = time.Unix(0, it.at)
		}
	}
	var d *Doing
	switch {
	case m.doing != "":
		d = &Doing{m.doing, m.since}
	case !m.since.IsZero():
		d = &Doing{fmt.Sprintf("%T", m.current.msg), m.since}
		switch m.current.kind { // the turn's bytes are not the queue's
		case told:
			q.Bytes -= m.current.cost
			q.Turn = m.current.cost
		case signaled:
			q.Bytes -= m.current.cost
			q.Control -= m.current.cost
		}
	}
	return q, d
}

// setDoing shows a hook as what the cell does.
func (m *mailbox) setDoing(what string) {
	m.mu.Lock()
	m.doing, m.since = what, time.Time{}
	if what != "" {
		m.since = m.c.k.clock.Now()
	}
	m.mu.Unlock()
}

func (c *cell) attr(key string, v any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == nil {
		delete(c.attrs, key)
		return
	}
	if c.attrs == nil {
		c.attrs = map[string]any{}
	}
	c.attrs[key] = shown(v)
}

func (c *cell) log() *slog.Logger {
	if l := c.logger.Load(); l != nil {
		return l
	}
	l := c.k.log.With("actor", c.path, "gen", c.gen)
	c.logger.Store(l)
	return l
}

func compare(a, b uint64) int { return cmp.Compare(a, b) }

func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }

// cellsInOrder sorts, because what follows from a map's order could not be replayed.
func cellsInOrder[V any](m map[*cell]V) []*cell {
	return slices.SortedFunc(maps.Keys(m), func(a, b *cell) int { return compare(a.gen, b.gen) })
}
