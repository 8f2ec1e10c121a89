package mcpjson

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Parse is [Read] of files that were read already.
func Parse(texts []Text) Set {
	r := reader{entries: map[string]*entry{}, set: Set{IdleTTL: DefaultIdleTTL, MaxConnected: DefaultMaxConnected}}
	for _, t := range texts {
		r.layer(t)
	}
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		switch e := r.entries[name]; {
		case e.bad:
		case e.disabled:
			r.set.Disabled = append(r.set.Disabled, e.server)
		case len(r.set.Servers) >= MaxServers:
			r.problem(Problem{File: e.server.File, Line: e.server.Line, Server: name, Text: fmt.Sprintf("is left out: %d servers are the most", MaxServers)})
		default:
			r.set.Servers = append(r.set.Servers, e.server)
		}
	}
	if r.more > 0 {
		r.set.Problems = append(r.set.Problems, Problem{File: texts[len(texts)-1].Path, Text: fmt.Sprintf("and %d more", r.more)})
	}
	return r.set
}

// entry is what the last layer that names a server says of it.
type entry struct {
	server   Server
	disabled bool
	bad      bool
}

// reader puts layers together.
type reader struct {
	set     Set
	entries map[string]*entry
	more    int // problems that are not remembered

	path string // of the layer that is being read
	text []byte
}

func (r *reader) problem(p Problem) {
	if len(r.set.Problems) >= MaxProblems {
		r.more++
		return
	}
	r.set.Problems = append(r.set.Problems, p)
}

// line is where an offset of the layer stands.
func (r *reader) line(offset int) int {
	line, _ := place(r.text, offset)
	return line
}

// wrong is a problem of the top level of a layer.
func (r *reader) wrong(offset int, warning bool, format string, args ...any) {
	r.problem(Problem{File: r.path, Line: r.line(offset), Text: fmt.Sprintf(format, args...), Warning: warning})
}

func (r *reader) layer(t Text) {
	if t.Err != nil {
		r.problem(Problem{File: t.Path, Text: "cannot be read: " + t.Err.Error() + "; the file is skipped"})
		return
	}
	if len(t.Text) > MaxFileBytes {
		r.problem(Problem{File: t.Path, Text: fmt.Sprintf("has more than %d bytes; the file is skipped", MaxFileBytes)})
		return
	}
	r.path, r.text = t.Path, t.Text
	top, bad := parseText(t.Text)
	if bad != nil {
		line, column := place(t.Text, bad.offset)
		r.problem(Problem{File: t.Path, Line: line, Column: column, Text: bad.text + "; the file is skipped"})
		return
	}
	if top.kind != '{' {
		line, column := place(t.Text, top.offset)
		r.problem(Problem{File: t.Path, Line: line, Column: column, Text: top.what() + " stands where an object with mcpServers has to; the file is skipped"})
		return
	}
	r.top(top)
}

// top reads the settings that stand beside the servers, and the servers.
func (r *reader) top(top node) {
	seen := map[string]bool{}
	for _, m := range top.members {
		known := true
		switch m.name {
		case "mcpServers", "servers":
			r.servers(m)
		case "roots":
			r.roots(m)
		case "idle_ttl_secs":
			if d, err := m.value.seconds(0, maxIdleTTL); err != "" {
				r.wrong(m.offset, false, "idle_ttl_secs %s; what it was before counts", err)
			} else {
				r.set.IdleTTL = d
			}
		case "max_concurrent_servers":
			if n, err := m.value.whole(1, maxConnected); err != "" {
				r.wrong(m.offset, false, "max_concurrent_servers %s; what it was before counts", err)
			} else {
				r.set.MaxConnected = n
			}
		default:
			known = false
			if !isRemark(m.name) {
				r.wrong(m.offset, true, "%s is not known here and has no effect%s", jsonrpc.Show(m.name), meant(m.name, topKeys))
			}
		}
		if known && seen[m.name] {
			r.wrong(m.offset, true, "%s stands twice; both count, the later wins", m.name)
		}
		seen[m.name] = true
	}
}

func (r *reader) roots(m member) {
	list, err := m.value.strings(MaxRoots)
	if err != "" {
		r.wrong(m.offset, false, "roots %s; it is left out", err)
		return
	}
	for _, root := range list {
		if root == "" || slices.Contains(r.set.Roots, root) {
			continue
		}
		if len(r.set.Roots) >= MaxRoots {
			r.wrong(m.offset, false, "roots: %d are the most; the rest is left out", MaxRoots)
			return
		}
		r.set.Roots = append(r.set.Roots, root)
		r.set.rootAt = append(r.set.rootAt, Problem{File: r.path, Line: r.line(m.offset)})
	}
}

func (r *reader) servers(m member) {
	if m.value.kind != '{' {
		r.wrong(m.value.offset, false, "%s is %s and has to be an object, a server a member", m.name, m.value.what())
		return
	}
	first := map[string]int{}
	for _, m := range m.value.members {
		line := r.line(m.offset)
		wrong := func(format string, args ...any) {
			r.problem(Problem{File: r.path, Line: line, Server: m.name, Text: fmt.Sprintf(format, args...)})
		}
		if !isName(m.name) {
			r.problem(Problem{File: r.path, Line: line, Text: fmt.Sprintf("the server %s is left out: a name is 1 to %d letters, digits, - or _", jsonrpc.Show(m.name), maxNameBytes)})
			continue
		}
		if before, twice := first[m.name]; twice {
			// Whichever was used, somebody would believe that it is the other.
			wrong("is left out: it stands in line %d as well; keep one", before)
			r.entries[m.name] = &entry{bad: true}
			continue
		}
		first[m.name] = line
		r.entries[m.name] = r.entry(m)
	}
}

// isName says whether s may name a server.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

// isRemark tells members that are there for people and their editors.
func isRemark(name string) bool {
	return strings.HasPrefix(name, "$") || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "//") || name == "description"
}

var topKeys = []string{"mcpServers", "roots", "idle_ttl_secs", "max_concurrent_servers"}

// meant guesses what a key was to be: one that differs in case, dashes and underscores only, or another program's word for it.
func meant(name string, known []string) string {
	for _, k := range known {
		if folded(k) == folded(name) {
			return "; " + k + " is meant?"
		}
	}
	if k, ok := elsewhere[folded(name)]; ok && slices.Contains(known, k) {
		return "; here it is " + k
	}
	return ""
}

// elsewhere is what other programs call our keys, folded.
var elsewhere = map[string]string{
	"timeout": "request_timeout_secs", "requesttimeout": "request_timeout_secs", "calltimeout": "request_timeout_secs", "tooltimeoutsec": "request_timeout_secs",
	"workingdirectory": "cwd", "dir": "cwd", "loglevel": "log_level",
	"includetools": "tool_filter", "excludetools": "tool_filter", "disabledtools": "tool_filter", "enabledtools": "tool_filter",
	"allowedtools": "tool_filter", "blockedtools": "tool_filter", "tools": "tool_filter", "toolallowlist": "tool_filter", "toolfilters": "tool_filter",
}

// folded leaves of a key what people remember of it.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-':
			return -1
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
}
