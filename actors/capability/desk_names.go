package capability

import (
	"slices"

	"github.com/acpod/acpod/runtime/kernel"
)

// nameAll gives names to all that is listed, and has none. Those of configured servers come first: of two new tools of one name theirs keeps
// it. A session takes over what other sessions were given alike, as far as that changes nothing that it was given before.
func (d *desk) nameAll(c *kernel.Ctx, v *View) {
	before, named := d.names, true
	var lists []*List
	if n := d.cfg.Roster.size(); n > 0 {
		lists = make([]*List, n)
		for i := range lists {
			lists[i] = v.list(i)
		}
		if !slices.Equal(d.lists, lists) && !d.adopt(c, lists, d.names) && !d.forget(c, lists) {
			if named = d.extend(c, before, d.cfg.Roster.offered(lists)); named {
				d.lists = lists
			}
		}
		d.pinConfigured(lists)
	}
	named = d.extend(c, before, v.offered()) && named
	if !named || len(d.names.name) >= d.limits.Names {
		v.crowded = d.names.without(d.cfg.Roster.offered(lists), v.offered())
	}
}

// adopt takes the names that sessions begin with, and reports whether that was possible: these leave to each tool of this session the name that
// it has, and to each name its meaning. was is what the session was given.
func (d *desk) adopt(c *kernel.Ctx, lists []*List, was names) bool {
	account := c.Kernel().Account()
	if d.bill.free {
		account = nil
	}
	base, err := d.cfg.Roster.base(account, lists)
	if err != nil {
		c.Refuse("names")
		return false
	}
	next, ok := was.rebased(&base.names)
	if !ok || !d.renamed(c, next) {
		if account != nil {
			d.cfg.Roster.leave(base)
		}
		return false
	}
	if account != nil {
		d.cfg.Roster.leave(d.base)
		d.base = base
	}
	d.lists = lists
	return true
}

// forget has the desk of anonymous callers, which is as old as the pod, give up the names of tools that are gone where they leave no room for
// others. A session keeps them: its agent may remember what they meant. It reports whether all is named then.
func (d *desk) forget(c *kernel.Ctx, lists []*List) bool {
	if !d.bill.free {
		return false
	}
	offered := d.cfg.Roster.offered(lists)
	if _, whole := d.names.extendSince(d.names, offered, d.limits.Names); whole {
		return false
	}
	kept := d.names.among(offered)
	if d.adopt(c, lists, kept) {
		return true
	}
	d.names = kept
	return false
}

// extend gives names to what is offered and has none, to as much as a session may name; false when there is no room on its account.
func (d *desk) extend(c *kernel.Ctx, before names, offered []binding) bool {
	next, whole := d.names.extendSince(before, offered, d.limits.Names)
	if !whole {
		c.Refuse("names")
	}
	return next.count() == d.names.count() || d.renamed(c, next)
}

// renamed takes another book of names, when it can be paid for.
func (d *desk) renamed(c *kernel.Ctx, next names) bool {
	if len(next.name) > d.limits.Names || !d.bill.pay(c.Account(), next.bytes()+d.pinning.own.bytes(), len(d.declared), len(d.keys.order)) {
		c.Refuse("names")
		return false
	}
	d.names = next
	return true
}

// remembered is what names and pins cost that the session pays for.
func (d *desk) remembered() int64 { return d.names.bytes() + d.pinning.own.bytes() }

// nameFor gives names to listed tools that published this one, and reports whether any were given. Once all tools are named as they
// come, it names all.
func (d *desk) nameFor(c *kernel.Ctx, name string) bool {
	before := d.names.count()
	if d.naming {
		if d.view.unnamedLists() {
			d.republish(c)
		}
		return d.names.count() > before
	}
	meant := d.view.candidates(name)
	other := func(b binding) bool { return !slices.Contains(meant, b.tool) }
	lists := make([]*List, d.cfg.Roster.size())
	for i := range lists {
		lists[i] = d.view.list(i)
	}
	offered := slices.DeleteFunc(append(d.cfg.Roster.offered(lists), d.view.offered()...), other)
	if len(offered) == 0 || !d.extend(c, d.names, offered) || d.names.count() == before {
		return false
	}
	d.pinConfigured(lists)
	d.republish(c)
	return true
}

// use takes a qualified name for the tool that it was used for before names were given. False: there is no room to remember that.
func (d *desk) use(c *kernel.Ctx, name string, b binding) bool {
	if !d.renamed(c, d.names.use(name, b)) {
		return false
	}
	if i, ok := d.cfg.Roster.at(b.server); ok && b.configured && d.pinning.pins != nil {
		d.cfg.Roster.admit(d.pinning.pins, i, d.view.list(i))
	}
	d.republish(c)
	return true
}

// noRoomForNames is the refusal of a call whose name cannot be remembered.
func noRoomForNames(a *kernel.Account) *Refusal {
	return overloaded(&kernel.Overloaded{Scope: a.Scope(), Limit: a.Limit(), Used: a.Used(), Size: nameBytes})
}

// pinConfigured has the pins remember what configured servers list.
func (d *desk) pinConfigured(lists []*List) {
	if d.pinning.pins == nil {
		return
	}
	for i, l := range lists {
		d.cfg.Roster.admit(d.pinning.pins, i, l)
	}
}

// pinDeclared has the pins remember what the session's own servers list and the policy grants, once for each list. A list from a
// declaration pins nothing: it is a promise of the client, not what its server says.
func (d *desk) pinDeclared(c *kernel.Ctx, v *View) {
	if d.pinning.pins == nil {
		return
	}
	now := make(map[*List]struct{}, len(v.servers))
	for name, s := range v.servers {
		l := s.list()
		if l == nil || l.Early {
			continue
		}
		if _, known := d.pinned[l]; !known {
			var tools []*Tool
			for _, t := range l.All() {
				if v.grants.Tool(name, t.Name) {
					tools = append(tools, t)
				}
			}
			if own := d.pinning.own; own != nil && !d.bill.pay(c.Account(), d.names.bytes()+own.cost(name, tools), len(d.declared), len(d.keys.order)) {
				c.Refuse("pins")
				continue
			}
			d.pinning.admit(name, tools)
		}
		now[l] = struct{}{}
	}
	d.pinned = now
}
