package capability

import (
	"maps"
	"slices"
	"strings"

	"github.com/acpod/acpod/runtime/kernel"
)

// served is one declared name and the sources that serve it or are about to.
type served struct {
	provider string
	sources  []Source // in the order of their attachment
	last     *List    // listed last by whatever source
	failed   string   // why the source that went last had failed
}

// choose is who serves: the latest source that is ready, else the latest that is
// connecting, else the latest that failed.
func (s *served) choose() Source {
	var best Source
	rank := func(x Source) int {
		if x == nil {
			return -1
		}
		switch x.Tools().State {
		case Ready:
			return 3
		case Connecting:
			return 2
		case Failed:
			return 1
		}
		return 0
	}
	for _, x := range s.sources {
		if rank(x) >= rank(best) {
			best = x
		}
	}
	return best
}

// declare remembers a name that the session's client has declared, within the bound
// on how many a session may have in its life. A name beyond it is unknown.
func (d *desk) declare(c *kernel.Ctx, name string) bool {
	if _, known := d.declared[name]; !known {
		if len(d.declared) >= d.limits.Servers || !d.bill.pay(c.Account(), d.bill.names, len(d.declared)+1, len(d.keys.order)) {
			c.Refuse("servers")
			return false
		}
		name = strings.Clone(name) // not the frame that it came in
	}
	d.declared[name] = struct{}{}
	return true
}

func (d *desk) attach(c *kernel.Ctx, src Source) {
	if !d.declare(c, src.Server()) {
		return
	}
	s := d.servers[src.Server()]
	if s == nil {
		s = &served{provider: src.Provider()}
		d.servers[src.Server()] = s
	}
	if !slices.Contains(s.sources, src) {
		s.sources = append(s.sources, src)
	}
	d.publish(c)
}

func (d *desk) detach(c *kernel.Ctx, src Source) {
	s := d.servers[src.Server()]
	if s == nil {
		src.Tools().List.Release()
		return
	}
	s.sources = slices.DeleteFunc(s.sources, func(x Source) bool { return x == src })
	s.failed = reasonOf(src)
	list := src.Tools().List
	if next := s.choose(); list != nil && (next == nil || next.Tools().List == nil) {
		s.keep(list)
	} else if list != s.last {
		list.Release()
	}
	d.publish(c)
}

// keep remembers what was listed last. A list that it takes the place of is
// freed, unless a source still has it.
func (s *served) keep(l *List) {
	if s.last == l {
		return
	}
	if old := s.last; old != nil && !slices.ContainsFunc(s.sources, func(x Source) bool { return x.Tools().List == old }) {
		old.Release()
	}
	s.last = l
}

// publish computes the view anew and lets go on whoever waited for it.
func (d *desk) publish(c *kernel.Ctx) {
	if d.republish(c) {
		d.resume(c)
	}
}

// republish computes the view anew. It gives
// names to what is offered now and has none, once names are given at all. False: this desk was abandoned.
func (d *desk) republish(c *kernel.Ctx) bool {
	v := &View{grants: d.cfg.Grants, pageBytes: min(d.limits.PageBytes, d.limits.ResultBytes), starts: starts{d.cfg.Ledger, d.cfg.Owner, d.cfg.Roster},
		declared: maps.Clone(d.declared), servers: make(map[string]server, len(d.servers)), roster: d.cfg.Roster, instances: maps.Clone(d.instances), pinning: d.pinning, redact: d.cfg.Redact}
	for name, s := range d.servers {
		out := server{provider: s.provider, source: s.choose(), attached: slices.Clone(s.sources), failed: s.failed}
		if out.source != nil {
			t := out.source.Tools()
			out.settled = t.State != Connecting
			out.named = t.List != nil && t.List.Early
			if t.List != nil {
				s.keep(t.List)
			}
		}
		out.last = s.last
		v.servers[name] = out
	}
	if d.naming {
		d.nameAll(c, v)
	}
	d.pinDeclared(c, v)
	v.names, v.lists, v.naming = d.names, d.lists, d.naming
	if !d.cfg.View.CompareAndSwap(d.view, v) { // this desk was abandoned, and a successor has published
		c.Refuse("abandoned")
		return false
	}
	d.view = v
	c.Attr("capabilities", len(v.Catalog()))
	return true
}

// offered are the tools that the session's own servers list and the policy grants.
func (v *View) offered() []binding {
	var offered []binding
	for name, s := range v.servers {
		for _, tool := range s.list().All() {
			if v.grants.Tool(name, tool.Name) {
				offered = append(offered, binding{place{server: name}, tool.Name})
			}
		}
	}
	return offered
}

// resume lets go on whoever waited for servers to settle.
func (d *desk) resume(c *kernel.Ctx) {
	for id, s := range d.settling {
		if d.isSettled(s) {
			d.settleOver(c, id)
		}
	}
	for _, k := range d.open() {
		if k.phase == waiting && len(k.need) == 0 && d.calls[k.id] == k {
			d.resolve(c, k, false)
		}
	}
}

// restore takes over the servers and names of the generation before.
func (d *desk) restore(before *View) {
	maps.Copy(d.declared, before.declared)
	d.names, d.naming, d.lists = before.names, before.naming, before.lists
	if before.pinning.own != nil {
		d.pinning.own = before.pinning.own
	}
	for name, s := range before.servers {
		d.servers[name] = &served{provider: s.provider, sources: slices.Clone(s.attached), last: s.last, failed: s.failed}
	}
}

// releaseLists gives back the bytes of all lists that this desk has kept.
func (d *desk) releaseLists() {
	for _, s := range d.servers {
		s.last.Release()
		for _, x := range s.sources {
			x.Tools().List.Release()
		}
	}
}
