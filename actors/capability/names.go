package capability

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// names is the book of names of a session. A name once given keeps its meaning
// and a tool its name until the session ends, also when the tool is no longer
// listed: whoever comes later is the one that gets qualified. A value never changes.
type names struct {
	base    *names // what many sessions were given alike, see [Roster]; nil = nothing
	meaning map[string]binding
	name    map[binding]string
	// also are further names that are taken, and accepted: qualified forms of tools whose published names cannot be shown, and names
	// that were used before any was given.
	also map[string]binding
	// order are the names that were given, sorted, where many readers go through them; else nil.
	order []string
}

// given is what a name means that was given.
func (n names) given(name string) (binding, bool) {
	if b, ok := n.meaning[name]; ok {
		return b, true
	}
	if n.base != nil {
		return n.base.given(name)
	}
	return binding{}, false
}

// of is the name that a tool was given.
func (n names) of(b binding) (string, bool) {
	if name, ok := n.name[b]; ok {
		return name, true
	}
	if n.base != nil {
		return n.base.of(b)
	}
	return "", false
}

func (n names) alias(name string) (binding, bool) {
	if b, ok := n.also[name]; ok {
		return b, true
	}
	if n.base != nil {
		return n.base.alias(name)
	}
	return binding{}, false
}

// count is how many names were given.
func (n names) count() int {
	if n.base != nil {
		return len(n.name) + n.base.count()
	}
	return len(n.name)
}

// all yields each tool that has a name, by name.
func (n names) all(yield func(name string, b binding)) {
	own, base := n.sorted(), []string(nil)
	if n.base != nil {
		base = n.base.sorted()
	}
	for len(own) > 0 || len(base) > 0 {
		if len(base) == 0 || len(own) > 0 && own[0] < base[0] {
			yield(own[0], n.meaning[own[0]])
			own = own[1:]
		} else {
			yield(base[0], n.base.meaning[base[0]])
			base = base[1:]
		}
	}
}

// sorted are the names that were given, save those of the base.
func (n names) sorted() []string {
	if n.order != nil {
		return n.order
	}
	return slices.Sorted(maps.Keys(n.meaning))
}

// extend gives names to the tools of offered that have none. It does not change
// n; the result shares nothing mutable with it. The result is the same for every
// order of offered.
//
// Among newcomers that published the same name, the keeper keeps it: a configured server before
// one that the client declared; of these the server whose declared name equals the part before the first dot, else the
// lexicographically smallest. All others, and every newcomer whose
// published name was given before or is another tool's qualified name, get
// <server>.<published>, then .2, .3 … until it is unique. A qualified name never
// takes one that some server published, or by which a tool that was named before is accepted.
// All of these are names as they are [shown].
func (n names) extend(offered []binding) names {
	out, _ := n.extendSince(n, offered, math.MaxInt)
	return out
}

// extendSince is extend as the second step of one: what was named since is as new as what is offered. The book holds at most so many names of
// its own; false when that left some tools without.
func (n names) extendSince(before names, offered []binding, most int) (names, bool) {
	fresh := make([]binding, 0, len(offered))
	published := make(map[string][]binding, len(offered)) // by the name as it is shown
	qualified := make(map[string]binding, len(offered))
	for _, b := range offered {
		plain := shown(b.tool)
		if slices.Contains(published[plain], b) {
			continue
		}
		published[plain] = append(published[plain], b)
		form := b.qualified()
		if other, twice := qualified[form]; twice && other != b {
			b = binding{} // more than one tool has it: it is nobody's
		}
		qualified[form] = b
	}
	for _, list := range published {
		for _, b := range list {
			if _, named := n.of(b); !named {
				fresh = append(fresh, b)
			}
		}
	}
	if len(fresh) == 0 {
		return n, true
	}
	slices.SortFunc(fresh, func(a, b binding) int {
		return cmp.Or(cmp.Compare(a.tool, b.tool), cmp.Compare(a.server, b.server), firstTrue(a.configured, b.configured))
	})
	room := max(0, most-len(n.name))
	whole := len(fresh) <= room
	fresh = fresh[:min(room, len(fresh))]
	out := names{base: n.base, meaning: maps.Clone(n.meaning), name: maps.Clone(n.name), also: maps.Clone(n.also)}
	if out.meaning == nil {
		out.meaning, out.name = map[string]binding{}, map[binding]string{}
	}
	var rest []binding
	for _, b := range fresh {
		plain := shown(b.tool)
		other, reserved := qualified[plain]
		if out.taken(plain, b) || before.accepts(plain, b) || reserved && other != b || keeper(published[plain]) != b {
			rest = append(rest, b)
			continue
		}
		out.give(plain, b, before)
	}
	for _, b := range rest {
		name := b.qualified()
		for i := 2; ; i++ {
			_, isPublished := published[name]
			other, reserved := qualified[name]
			if !isPublished && !out.taken(name, b) && !before.accepts(name, b) && !(i > 2 && reserved && other != b) {
				break
			}
			name = shown(b.server + "." + b.tool + "." + strconv.Itoa(i))
		}
		out.give(name, b, before)
	}
	return out, whole
}

// taken reports that a name was given to, or used for, another tool.
func (n names) taken(name string, b binding) bool {
	if _, given := n.given(name); given {
		return true
	}
	other, used := n.alias(name)
	return used && other != b
}

// accepts reports that a name is, or was before there were two, a form of another tool than b.
func (n names) accepts(name string, b binding) bool {
	other := func(x binding) bool { return x != b }
	return slices.ContainsFunc(n.read(name), other)
}

// give enters a name into a book that is not yet published.
func (n *names) give(name string, b binding, before names) {
	n.meaning[name], n.name[b] = b, name
	if q := b.qualified(); q != b.server+"."+b.tool { // else it is read from its parts
		if _, known := n.alias(q); !known && !before.accepts(q, b) {
			if n.also == nil {
				n.also = map[string]binding{}
			}
			n.also[q] = b
		}
	}
}

// use remembers that a name was used for a tool before it was given one.
func (n names) use(name string, b binding) names {
	n.also = maps.Clone(n.also)
	if n.also == nil {
		n.also = map[string]binding{}
	}
	n.also[name] = b
	return n
}

// keeper is who keeps a published name that all of them published.
func keeper(publishers []binding) binding {
	prefix, _, _ := strings.Cut(publishers[0].tool, ".")
	return slices.MinFunc(publishers, func(a, b binding) int {
		return cmp.Or(firstTrue(a.configured, b.configured), firstTrue(a.server == prefix, b.server == prefix), cmp.Compare(a.server, b.server), cmp.Compare(a.tool, b.tool))
	})
}

// firstTrue orders what holds before what does not.
func firstTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// find says what a name means: a name that was given or used, else the published name of a tool that is shown in another form, else the
// qualified form of one, when it is that of one only. Given names win, for they were shown.
func (n names) find(name string) (binding, bool) {
	list := n.read(name)
	if len(list) != 1 {
		return binding{}, false
	}
	return list[0], true
}

// read is every tool that a name may mean: one that was given a meaning means that alone.
func (n names) read(name string) []binding {
	if b, ok := n.given(name); ok {
		return []binding{b}
	}
	if b, ok := n.alias(name); ok {
		return []binding{b}
	}
	if len(name) > longestAsked {
		return nil
	}
	if form := shown(name); form != name {
		if b, ok := n.given(form); ok && b.tool == name {
			return []binding{b}
		}
	}
	var list []binding
	for server, tool := range splits(name) {
		for _, configured := range []bool{true, false} {
			b := binding{place{configured, server}, tool}
			if _, named := n.of(b); named {
				list = append(list, b)
			}
		}
	}
	return list
}
