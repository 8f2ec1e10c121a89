package mcpjson

import "strings"

// Allows is the tool_filter: whether a tool of that published name may be seen and called. It is a pure function of the file: what
// it does not allow needs no connection to be refused.
func (s *Server) Allows(tool string) bool {
	return (s.Include == nil || anyMatches(s.Include, tool)) && !anyMatches(s.Exclude, tool)
}

func anyMatches(patterns []string, name string) bool {
	for _, p := range patterns {
		if matches(p, name) {
			return true
		}
	}
	return false
}

// matches compares a whole name with a pattern in which only * is special: any number of any bytes. Case counts. It takes no more steps than
// the product of both lengths.
func matches(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part) // the earliest leaves the most for what follows
		if at < 0 {
			return false
		}
		name, rest = name[at+len(part):], more
	}
}
