package capability

import (
	"maps"
	"slices"
	"strconv"
)

// View is what a desk has published: which servers are attached, which name
// means which tool. It is an immutable snapshot that is read without a turn of
// the desk. The catalog is computed at each read from the servers' lists and the
// policy of that moment; the view decides names only.
type View struct {
	grants   *Grants
	declared map[string]struct{}
	servers  map[string]server // that the session's client declared
	names    names
	// roster are the configured servers, and instances those of them of which the session has one of its own.
	roster    *Roster
	instances map[int]instance
	// lists are what the configured servers had listed when their tools were named; nil before anybody asked for names.
	lists []*List
	// crowded counts the tools that are listed and have no name, because there was no room for it.
	crowded map[place]int
	// naming: each tool is named when it is seen. With configured servers that begins with the first search, so that of two new tools
	// of one name the configured one keeps it, whichever was there first.
	naming  bool
	pinning pinning
	// pageBytes bounds the text of one page of a search.
	pageBytes int64
	starts    starts
	redact    func([]byte) []byte
}

// server is one declared name and who serves it.
type server struct {
	provider string
	source   Source   // who serves it or is about to; nil when nobody is attached
	attached []Source // all of them, for the desk's next generation
	settled  bool     // the source's state had been seen by the desk and was not connecting
	named    bool     // its early list had been seen by the desk, and has names
	last     *List    // what was listed last, by whatever source
	failed   string   // why the source before failed, when nobody is attached
}

// emptyView is that of a caller whose desk has not published.
var emptyView = &View{grants: NewGrants(nil)}

// Availability of a capability, as a search shows it.
type Availability string

const (
	Available   Availability = "ready"
	Unreachable Availability = "detached"
	LoginNeeded Availability = "needs_login"
)

// Capability is one entry of a catalog.
type Capability struct {
	Name         string // shown to agents
	Provider     string
	Server       string
	Tool         *Tool
	Availability Availability
	source       Source
	at           int // of a configured one, in the roster
	configured   bool
}

func (c Capability) place() place { return place{c.configured, c.Server} }

// state is the source's of this moment.
func (s server) state() State {
	if s.source == nil {
		return Detached
	}
	return s.source.Tools().State
}

// list is what the server offers at this moment: the list of its source, or
// what was listed before it.
func (s server) list() *List {
	if s.source != nil {
		if l := s.source.Tools().List; l != nil {
			return l
		}
	}
	return s.last
}

// early reports that the server is connecting and has tools from its declaration.
func (s server) early() bool {
	if s.source == nil {
		return false
	}
	l := s.source.Tools().List
	return l != nil && l.Early
}

// capability is the entry for a tool, when it is listed and granted at this moment. What is held back has one, too; changed says why.
func (v *View) capability(name string, b binding) (c Capability, changed []string, ok bool) {
	if b.configured {
		c, ok = v.configuredCapability(name, b)
	} else {
		c, ok = v.declaredCapability(name, b)
	}
	if !ok {
		return Capability{}, nil, false
	}
	return c, v.pinning.changed(b.place, c.Tool), true
}

func (v *View) declaredCapability(name string, b binding) (Capability, bool) {
	s, ok := v.servers[b.server]
	if !ok || !v.grants.Tool(b.server, b.tool) {
		return Capability{}, false
	}
	tool, ok := s.list().Tool(b.tool)
	if !ok {
		return Capability{}, false
	}
	c := Capability{Name: name, Provider: s.provider, Server: b.server, Tool: tool, Availability: Unreachable, source: s.source}
	if state := s.state(); state == Ready || state == Connecting && s.early() {
		c.Availability = Available
	}
	return c, true
}

// Catalog is everything that the caller may see at this moment, by name.
func (v *View) Catalog() []Capability {
	list, _ := v.catalog()
	return list
}

// catalog is Catalog, and what is held back.
func (v *View) catalog() ([]Capability, map[place]*heldBack) {
	list := make([]Capability, 0, v.names.count())
	var held map[place]*heldBack
	v.names.all(func(name string, b binding) {
		c, changed, ok := v.capability(name, b)
		switch {
		case !ok:
		case changed == nil:
			list = append(list, c)
		default:
			if held == nil {
				held = map[place]*heldBack{}
			}
			if held[b.place] == nil {
				held[b.place] = &heldBack{}
			}
			held[b.place].add(changed)
		}
	})
	return list, held
}

// Pending names the granted and the configured servers that are connecting, sorted. A configured one that has failed before is
// unavailable until it is there.
func (v *View) Pending() []string {
	list := v.pendingDeclared()
	for i := range v.roster.size() {
		if t := v.tools(i); t.State == Connecting && t.Reason == "" && v.list(i) == nil {
			list = append(list, v.roster.servers[i].Server())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// pendingDeclared names those that the client declared.
func (v *View) pendingDeclared() []string {
	var list []string
	for name, s := range v.servers {
		if v.pending(name, s) {
			list = append(list, name)
		}
	}
	return list
}

// pending reports a granted server whose first list is still to come, as the
// desk knows it: a list that the desk has not yet named is not there yet.
func (v *View) pending(name string, s server) bool {
	return s.source != nil && !s.settled && v.grants.Server(name)
}

// Unsettled reports that a search should ask the desk first: a granted server is connecting
// and nothing of it is listed from its declaration; or a configured one has a list that was not named, or none.
func (v *View) Unsettled() bool { return v.unsettledDeclared() || v.unsettledConfigured() }

func (v *View) unsettledDeclared() bool {
	for name, s := range v.servers {
		if v.pending(name, s) && !s.named {
			return true
		}
	}
	return false
}

// Unavailable is a provider of which nothing can be listed, and why.
type Unavailable struct {
	Provider string
	Error    string
}

// Unavailable lists the servers of which nothing can be listed or called, and those of which something is held back, sorted by server.
func (v *View) Unavailable() []Unavailable {
	_, held := v.catalog()
	return v.unavailable(held)
}

func (v *View) unavailable(held map[place]*heldBack) []Unavailable {
	list := v.unavailableConfigured(held)
	for _, name := range slices.Sorted(maps.Keys(v.servers)) {
		s := v.servers[name]
		if h := held[place{server: name}]; h != nil {
			list = append(list, Unavailable{Provider: s.provider, Error: name + ": " + h.text(v.pinning, place{server: name})})
		}
		if n := v.crowded[place{server: name}]; n > 0 {
			list = append(list, Unavailable{Provider: s.provider, Error: name + ": " + noRoomToName(n)})
		}
		if !v.grants.Server(name) || v.pending(name, s) {
			continue
		}
		if s.list() != nil {
			if left := s.missing(); left != "" {
				list = append(list, Unavailable{Provider: s.provider, Error: name + ": " + left})
			}
			continue
		}
		why := "is not connected"
		reason := s.failed
		if s.source != nil {
			reason = reasonOf(s.source)
		}
		if reason != "" {
			why = "failed: " + reason
		}
		list = append(list, Unavailable{Provider: s.provider, Error: name + " " + why})
	}
	return list
}

// missing is what of the tools of a server that is there its list does not have, "" when it is whole.
func (s server) missing() string {
	if s.source == nil {
		return ""
	}
	if t := s.source.Tools(); t.State == Ready {
		return oneLine(t.Reason)
	}
	return ""
}

// noRoomToName says that so many tools of a server cannot be shown.
func noRoomToName(tools int) string {
	return strconv.Itoa(tools) + " of its tools are not shown: there is no room for more names; they can be called as <server>.<tool>, and a new session has room"
}

// reasonOf is why a source failed, empty when it did not.
func reasonOf(src Source) string {
	if t := src.Tools(); t.State == Failed {
		return t.Reason
	}
	return ""
}
