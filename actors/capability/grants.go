package capability

// Grant admits one server of clients and names what of it may be used.
type Grant struct {
	Name  string   // declared name of the server; "*" = every server
	Tools []string // as published; "*" = all; none = it is admitted and offers nothing
}

// Grants is the operator's policy for servers that clients declare: deny by
// default. A value is immutable and safe from any goroutine.
type Grants struct {
	servers map[string]*granted
}

type granted struct {
	all   bool
	tools map[string]struct{}
}

// anyServer is the entry that stands for every server.
const anyServer = "*"

// DefaultGrants is the policy of a config without [[mcp.acp_servers]]:
// katashiro with its five tools.
func DefaultGrants() *Grants {
	return NewGrants([]Grant{{Name: "katashiro", Tools: []string{
		"katashiro.read_dom", "katashiro.screenshot", "katashiro.navigate", "katashiro.click", "katashiro.type",
	}}})
}

// NewGrants is the policy of the given entries; none admits nobody. Entries of
// one name add up.
func NewGrants(list []Grant) *Grants {
	g := &Grants{servers: make(map[string]*granted, len(list))}
	for _, e := range list {
		s := g.servers[e.Name]
		if s == nil {
			s = &granted{tools: make(map[string]struct{}, len(e.Tools))}
			g.servers[e.Name] = s
		}
		for _, tool := range e.Tools {
			if tool == "*" {
				s.all = true
			}
			s.tools[tool] = struct{}{}
		}
	}
	return g
}

// Server reports whether a server of that name is admitted at all. One that is
// not must not be connected.
func (g *Grants) Server(name string) bool {
	return g.servers[name] != nil || g.servers[anyServer] != nil
}

// Tool reports whether the tool that the server published under that name may
// be seen and called.
func (g *Grants) Tool(server, published string) bool {
	return g.servers[server].has(published) || g.servers[anyServer].has(published)
}

func (s *granted) has(tool string) bool {
	if s == nil {
		return false
	}
	_, ok := s.tools[tool]
	return ok || s.all
}

// Count is how many tools of a list are offered to agents and how many the
// policy withholds.
func (g *Grants) Count(server string, l *List) (offered, withheld int) {
	for _, t := range l.All() {
		if g.Tool(server, t.Name) {
			offered++
		} else {
			withheld++
		}
	}
	return offered, withheld
}
