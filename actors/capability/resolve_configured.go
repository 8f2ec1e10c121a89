package capability

import "strings"

// resolveUnnamed looks for a name in the lists while nothing is named yet, or where there was no room to name all. A qualified name means what it
// says whoever else there is, so it waits for nobody; before there are names it is taken from then on. Plain names wait for all servers that may have
// them.
func (v *View) resolveUnnamed(name string, waited bool) (r Resolution, done bool) {
	if v.naming && v.crowded == nil {
		return Resolution{}, false
	}
	var found []binding
	for server, tool := range splits(name) {
		if i, ok := v.roster.at(server); ok {
			if b, ok := v.configuredTool(i, tool); ok {
				found = append(found, b)
			}
		}
		if s, ok := v.servers[server]; ok {
			for _, published := range []string{name, tool} { // many publish their tools with their server before them
				if t, ok := s.list().Tool(published); ok && v.grants.Tool(server, t.Name) {
					found = append(found, binding{place{server: server}, t.Name})
					break
				}
			}
		}
	}
	switch {
	case len(found) != 1:
		return Resolution{}, false
	case v.naming:
		return v.resolveNamed(name, found[0], waited)
	}
	return Resolution{use: &found[0]}, true
}

// configuredTool finds a listed and allowed tool of the server at i, by its published name or by the form in which that is shown.
func (v *View) configuredTool(i int, tool string) (binding, bool) {
	src := v.roster.servers[i]
	for _, t := range v.candidates(tool) {
		if _, listed := v.list(i).Tool(t); listed && src.Allows(t) {
			return binding{place{true, src.Server()}, t}, true
		}
	}
	return binding{}, false
}

// candidates are the published names that are meant by one that a caller gave.
func (v *View) candidates(name string) []string {
	if tool, ok := unshown(name); ok && tool != name {
		return []string{tool, name}
	}
	return []string{name}
}

// resolveConfigured judges a name that no tool has which was named, as far as configured servers may have it. done is false when they have
// no say.
func (v *View) resolveConfigured(name string, waited bool, tried map[int]struct{}) (r Resolution, done bool) {
	if v.roster.size() == 0 {
		return Resolution{}, false
	}
	var named, wake []int // those whose name stands before it; those that have to list first
	filtered := -1        // one that is meant and does not offer it
	for server, tool := range splits(name) {
		i, ok := v.roster.at(server)
		switch {
		case !ok:
		case v.allows(i, tool):
			named = append(named, i)
		default:
			filtered = i
		}
	}
	prefix, _, dotted := strings.Cut(name, ".")
	_, declared := v.declared[prefix]
	declared = declared && dotted
	may := named
	if len(named) == 0 && filtered < 0 && !declared {
		for i := range v.roster.size() {
			if v.allows(i, name) {
				may = append(may, i)
			}
		}
	}
	for _, i := range may {
		if _, done := tried[i]; !done && !waited && (v.list(i) == nil || v.list(i) != v.named(i)) {
			wake = append(wake, i)
		}
	}
	switch {
	case len(wake) > 0:
		return Resolution{Wait: true, wake: wake, meant: len(named) > 0}, true
	case declared:
		return Resolution{}, false
	case len(named) > 0:
		src := v.source(named[0])
		r := Resolution{Refusal: absent(src), server: src.Server(), provider: src.Provider()}
		if v.list(named[0]) != nil {
			r.Refusal = &Refusal{Code: Unknown, Text: unknownText(name)}
		}
		return r, true
	case filtered >= 0:
		src := v.roster.servers[filtered]
		return Resolution{Refusal: &Refusal{Code: Unknown, Text: unknownText(name)}, server: src.Server(), provider: src.Provider(), filtered: true}, true
	}
	return Resolution{}, false
}

// allows reports that the filter of the server at i lets a tool pass that a caller named.
func (v *View) allows(i int, name string) bool {
	for _, t := range v.candidates(name) {
		if v.roster.servers[i].Allows(t) {
			return true
		}
	}
	return false
}
