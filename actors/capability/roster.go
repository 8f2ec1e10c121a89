package capability

import (
	"slices"
	"sync"

	"github.com/acpod/acpod/runtime/kernel"
)

// Roster is the operator's servers as all desks of a pod share them: who they are, and the names that their tools are given in a session that
// has none yet. The pod makes one and hands it to all desks, so that a thousand sessions have one table and not a thousand.
// All methods are safe from any goroutine; the lock is held for as long as a table takes to be made.
type Roster struct {
	servers []Configured
	index   map[string]int

	mu       sync.Mutex
	latest   *baseNames
	admitted []*List // of each server: what was given to the pins last
}

// baseNames are the names that the tools of some lists are given where nothing was named before. The pod's
// account pays once for all sessions that have them.
type baseNames struct {
	lists  []*List
	names  names
	payers int
	lease  *kernel.Lease // while there are any
}

// NewRoster makes a roster; of equal names the first counts.
func NewRoster(servers []Configured) *Roster {
	r := &Roster{index: map[string]int{}}
	for _, s := range servers {
		if _, twice := r.index[s.Server()]; !twice {
			r.index[s.Server()] = len(r.servers)
			r.servers = append(r.servers, s)
		}
	}
	r.admitted = make([]*List, len(r.servers))
	return r
}

// size is how many servers there are. A nil roster has none.
func (r *Roster) size() int {
	if r == nil {
		return 0
	}
	return len(r.servers)
}

// at finds a server by its name.
func (r *Roster) at(server string) (int, bool) {
	if r == nil {
		return 0, false
	}
	i, ok := r.index[server]
	return i, ok
}

// base are the names for these lists, one of each server, nil where there is none. Whoever gets them gives them back by [Roster.leave].
// account is the pod's, nil for who does not pay; an error says that it had no room, and nothing is held then.
func (r *Roster) base(account *kernel.Account, lists []*List) (*baseNames, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.latest
	if b == nil || !slices.Equal(b.lists, lists) {
		b = &baseNames{lists: slices.Clone(lists), names: names{}.extend(r.offered(lists))}
		b.names.order = b.names.sorted()
	}
	if account != nil {
		if b.payers == 0 {
			lease, err := account.Acquire(b.names.bytes())
			if err != nil {
				return nil, err
			}
			b.lease = lease
		}
		b.payers++
	}
	r.latest = b
	return b, nil
}

// leave gives names back that were paid for.
func (r *Roster) leave(b *baseNames) {
	if b == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.payers--; b.payers == 0 {
		b.lease.Release()
		b.lease = nil
	}
}

// offered are the tools of these lists that their servers' filters allow.
func (r *Roster) offered(lists []*List) []binding {
	if r == nil {
		return nil
	}
	var offered []binding
	for i, s := range r.servers {
		for _, t := range lists[i].All() {
			if s.Allows(t.Name) {
				offered = append(offered, binding{place{true, s.Server()}, t.Name})
			}
		}
	}
	return offered
}

// admit has the pins remember a server's tools, once for each list.
func (r *Roster) admit(pins Pins, i int, l *List) {
	if l == nil || l.Early {
		return
	}
	r.mu.Lock()
	known := r.admitted[i] == l
	r.mu.Unlock()
	if known {
		return
	}
	var tools []*Tool
	for _, t := range l.All() {
		if r.servers[i].Allows(t.Name) {
			tools = append(tools, t)
		}
	}
	pins.Admit(PinOwner{Server: r.servers[i].Server()}, tools)
	r.mu.Lock() // only now: another desk that finds it known relies on the pins
	r.admitted[i] = l
	r.mu.Unlock()
}
