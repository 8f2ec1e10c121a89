package capability

import "context"

// Direct says which of these names a caller may execute now, each as the capability that it means, under that very name; those that it may
// not see, that are held back or not listed, are left out. It waits for servers that may have them and have not listed yet, until ctx
// ends; with one that has ended it waits for nothing. An execution by the name takes the same way as any other.
func Direct(ctx context.Context, who Caller, names []string) []Capability {
	list, absent := who.view().direct(names)
	if who.view() == emptyView {
		absent = names
	}
	if len(absent) == 0 || ctx.Err() != nil {
		return list
	}
	p, err := who.Desk.Current().Ask(Prepare{absent})
	if err != nil {
		return list
	}
	defer p.Drop()
	_, _, _ = p.Wait(ctx) // what has come until then is shown
	list, _ = who.view().direct(names)
	return list
}

// Everything is all that a caller may see now, each capability under its own name, by name. It waits for servers that have not listed yet,
// until ctx ends.
func Everything(ctx context.Context, who Caller) []Capability {
	if view := who.view(); view == emptyView || view.Unsettled() {
		_ = settle(ctx, who.Desk) // what has come until then is shown
	}
	return who.view().Catalog()
}

// direct finds what these names mean, in their order; absent are those of which a server may still list the tool.
func (v *View) direct(names []string) (list []Capability, absent []string) {
	for _, name := range names {
		r := v.resolve(name, false, nil)
		if r.use != nil {
			r = Resolution{}
			r.Capability, r.Refusal = v.unnamed(name)
		}
		switch {
		case r.Wait, !v.naming && (r.Refusal != nil && r.Refusal.Code != PinChanged):
			absent = append(absent, name)
		case r.Refusal == nil:
			r.Capability.Name = name
			list = append(list, r.Capability)
		}
	}
	return list, absent
}

// unnamed is the capability that a qualified name means before names were given.
func (v *View) unnamed(name string) (Capability, *Refusal) {
	r, _ := v.resolveUnnamed(name, false)
	c, changed, ok := v.capability(name, *r.use)
	switch {
	case !ok:
		return Capability{}, &Refusal{Code: Unknown, Text: unknownText(name)}
	case changed != nil:
		return Capability{}, v.pinning.refusal(r.use.place, c.Tool, changed)
	}
	return c, nil
}
