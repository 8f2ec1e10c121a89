package capability

// rebased is a book in which many sessions' names stand in place of the same ones of this session, and of those that it has not given. False:
// it would change what a name means, or how a tool is called, that this session was shown.
func (n names) rebased(base *names) (names, bool) {
	out := names{base: base}
	keep := func(name string, b binding) bool {
		if has, ok := base.of(b); ok {
			return has == name
		}
		if base.taken(name, b) {
			return false
		}
		if out.meaning == nil {
			out.meaning, out.name = map[string]binding{}, map[binding]string{}
		}
		out.meaning[name], out.name[b] = b, name
		return true
	}
	alias := func(name string, b binding) bool {
		if other, given := base.given(name); given {
			return other == b
		}
		if other, used := base.alias(name); used {
			return other == b
		}
		if out.also == nil {
			out.also = map[string]binding{}
		}
		out.also[name] = b
		return true
	}
	for book := &n; book != nil; book = book.base {
		for name, b := range book.meaning {
			if !keep(name, b) {
				return names{}, false
			}
		}
		for name, b := range book.also {
			if !alias(name, b) {
				return names{}, false
			}
		}
	}
	for name, b := range base.meaning { // whoever is new takes nothing by which a tool of before is accepted
		if _, old := n.of(b); !old && n.accepts(name, b) {
			return names{}, false
		}
	}
	for name, b := range base.also {
		if n.accepts(name, b) {
			return names{}, false
		}
	}
	return out, true
}

// among are the names of these tools.
func (n names) among(offered []binding) names {
	out := names{meaning: map[string]binding{}, name: map[binding]string{}}
	for _, b := range offered {
		if name, named := n.of(b); named {
			out.meaning[name], out.name[b] = b, name
		}
	}
	return out
}

// without counts the tools that have no name, by their server.
func (n names) without(offers ...[]binding) map[place]int {
	var missing map[place]int
	for _, offered := range offers {
		for _, b := range offered {
			if _, named := n.of(b); !named {
				if missing == nil {
					missing = map[place]int{}
				}
				missing[b.place]++
			}
		}
	}
	return missing
}
