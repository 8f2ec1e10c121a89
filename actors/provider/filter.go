package provider

import "strings"

// filter is an operator's tool_filter. Only * is special and stands for any number of characters; a pattern is about the
// whole name and its case counts; what is excluded stays out, whatever includes it.
type filter struct {
	include []string // nil = all
	exclude []string
}

func (f filter) allows(tool string) bool {
	for _, pattern := range f.exclude {
		if matches(pattern, tool) {
			return false
		}
	}
	if f.include == nil {
		return true
	}
	for _, pattern := range f.include {
		if matches(pattern, tool) {
			return true
		}
	}
	return false
}

// matches compares a whole name with a pattern. Taking the first place where a part fits is enough, because a later star takes what
// is left over; so it costs at most one pass for each part.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return true
}
