package pins

import (
	"cmp"
	"maps"
	"slices"

	"github.com/acpod/acpod/actors/capability"
)

// scopeState is one scope at one moment.
type scopeState struct {
	name    string
	used    int64
	servers []serverState // by name
}

type serverState struct {
	owner capability.PinOwner
	tools map[string]*pin // of the table, which never changes it
}

// byUse is what is known, the scope that was used longest ago first.
func (t *table) byUse() []scopeState {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]scopeState, 0, len(t.scopes))
	for name, sc := range t.scopes {
		state := scopeState{name: name, used: sc.used.Load()}
		for _, server := range slices.Sorted(maps.Keys(sc.shelves)) {
			state.servers = append(state.servers, serverState{capability.PinOwner{Scope: name, Server: server}, *sc.shelves[server].tools.Load()})
		}
		list = append(list, state)
	}
	slices.SortFunc(list, func(a, b scopeState) int { return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.name, b.name)) })
	return list
}
