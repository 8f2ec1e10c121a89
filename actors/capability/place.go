package capability

import "strings"

// place is where a server stands: among those that the session's client declared, or in the operator's mcp.json. A name may stand in
// both; then they are two servers.
type place struct {
	configured bool
	server     string // declared name
}

// inLedger is what a place is called in the [Ledger]. No client can declare the name of a configured one: a slash is no part of a name.
func (p place) inLedger() string {
	if p.configured {
		return "/" + p.server
	}
	return p.server
}

// binding is one tool of one server: what a name means.
type binding struct {
	place
	tool string // as published
}

// qualified is the name by which a tool is always accepted, as it is shown.
func (b binding) qualified() string {
	if name := b.server + "." + shown(b.tool); plainName(name) {
		return name
	}
	return shown(b.server + "." + b.tool)
}

// splits are the ways in which a name may be read as <server>.<tool>: one where no server's name has a dot.
func splits(name string) func(yield func(server, tool string) bool) {
	return func(yield func(server, tool string) bool) {
		if len(name) > longestAsked {
			return
		}
		for at := 0; ; at++ {
			dot := strings.IndexByte(name[at:], '.')
			if dot < 0 {
				return
			}
			at += dot
			if !yield(name[:at], name[at+1:]) {
				return
			}
		}
	}
}
