package capability

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// binding is one tool of one server: what a name means.
type binding struct{ server, tool string }

// qualified is the name by which a tool is always accepted.
func (b binding) qualified() string { return b.server + "." + b.tool }

// names is the book of names of a session. A name once given keeps its meaning
// and a tool its name until the session ends, also when the tool is no longer
// listed: whoever comes later is the one that gets qualified.
type names struct {
	meaning map[string]binding
	name    map[binding]string
}

// extend gives names to the tools of offered that have none. It does not change
// n; the result shares nothing mutable with it. The result is the same for every
// order of offered.
//
// Among newcomers that published the same name, the keeper keeps it: the server
// whose declared name equals the part before the first dot, else the
// lexicographically smallest server. All others, and every newcomer whose
// published name was given before or is another tool's qualified name, get
// <server>.<published>, then .2, .3 … until it is unique. A qualified name never
// takes one that some server published.
func (n names) extend(offered []binding) names {
	fresh := make([]binding, 0, len(offered))
	published := make(map[string][]binding, len(offered))
	qualified := make(map[string]binding, len(offered))
	for _, b := range offered {
		if len(published[b.tool]) > 0 && slices.Contains(published[b.tool], b) {
			continue
		}
		published[b.tool] = append(published[b.tool], b)
		qualified[b.qualified()] = b
		if _, named := n.name[b]; !named {
			fresh = append(fresh, b)
		}
	}
	if len(fresh) == 0 {
		return n
	}
	slices.SortFunc(fresh, func(a, b binding) int {
		return cmp.Or(cmp.Compare(a.tool, b.tool), cmp.Compare(a.server, b.server))
	})
	out := names{meaning: maps.Clone(n.meaning), name: maps.Clone(n.name)}
	if out.meaning == nil {
		out.meaning, out.name = map[string]binding{}, map[binding]string{}
	}
	give := func(name string, b binding) { out.meaning[name], out.name[b] = b, name }

	var rest []binding
	for _, b := range fresh {
		_, taken := out.meaning[b.tool]
		other, reserved := qualified[b.tool]
		if taken || reserved && other != b || keeper(published[b.tool]) != b {
			rest = append(rest, b)
			continue
		}
		give(b.tool, b)
	}
	for _, b := range rest {
		name := b.qualified()
		for i := 2; ; i++ {
			_, taken := out.meaning[name]
			if _, isPublished := published[name]; !taken && !isPublished {
				break
			}
			name = b.qualified() + "." + strconv.Itoa(i)
		}
		give(name, b)
	}
	return out
}

// keeper is who keeps a published name that all of them published.
func keeper(publishers []binding) binding {
	best := publishers[0]
	prefix, _, _ := strings.Cut(best.tool, ".")
	for _, b := range publishers {
		if b.server == prefix {
			return b
		}
		if b.server < best.server {
			best = b
		}
	}
	return best
}

// find says what a name means: a name that was given, else the qualified form
// of a tool that has another one. Given names win, for they were shown.
func (n names) find(name string) (binding, bool) {
	if b, ok := n.meaning[name]; ok {
		return b, true
	}
	server, tool, ok := strings.Cut(name, ".")
	if !ok {
		return binding{}, false
	}
	b := binding{server: server, tool: tool}
	_, named := n.name[b]
	return b, named
}
