package capability

import (
	"maps"
	"slices"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// settler is somebody who waits for servers, for at most [SettleTimeout].
type settler struct {
	question *kernel.Question
	need     map[int]struct{} // configured servers that it waits for
	declared bool             // it waits for those of the session's client, too
	names    []string         // what it wants to be named; nil = everything
}

// settle answers when the last connecting server has settled, and each configured one that has no list has listed or said why not: at once
// where there is nothing to wait for.
func (d *desk) settle(c *kernel.Ctx) {
	d.await(c, settler{need: d.patient(d.discover(c, d.unlisted(nil))), declared: true})
}

// waitedInVain remembers for which servers a search has waited its whole time: no other one waits for the same attempt again.
func (d *desk) waitedInVain(question uint64) {
	s := d.settling[question]
	if s == nil || len(s.need) == 0 {
		return
	}
	if d.slow == nil {
		d.slow = map[int]*Toolset{}
	}
	for i := range s.need {
		d.slow[i] = d.view.tools(i)
	}
}

// patient is what of these servers is worth a wait.
func (d *desk) patient(need map[int]struct{}) map[int]struct{} {
	maps.DeleteFunc(need, func(i int, _ struct{}) bool { return d.slow[i] != nil && d.slow[i] == d.view.tools(i) })
	return need
}

// prepare is settle for a few names: only servers that may have them are asked to list.
func (d *desk) prepare(c *kernel.Ctx, m Prepare) {
	s := settler{need: map[int]struct{}{}, names: m.Names}
	for _, name := range m.Names {
		r := d.view.resolve(name, false, nil)
		for i := range d.discover(c, d.unlisted(append([]int{}, r.wake...))) {
			s.need[i] = struct{}{}
		}
		s.declared = s.declared || r.Wait && len(r.wake) == 0
	}
	d.await(c, s)
}

// await answers the question at hand when what it waits for has settled.
func (d *desk) await(c *kernel.Ctx, s settler) {
	q := c.Question()
	if q == nil {
		return
	}
	s.question = q
	d.settling[q.ID()] = &s
	if d.isSettled(&s) {
		d.settleOver(c, q.ID())
		return
	}
	c.After(SettleTimeout, settleOver{q.ID()})
}

func (d *desk) isSettled(s *settler) bool {
	return len(s.need) == 0 && !(s.declared && d.view.unsettledDeclared())
}

// settleOver ends a wait: what is listed now gets its names.
func (d *desk) settleOver(c *kernel.Ctx, question uint64) {
	s := d.settling[question]
	if s == nil {
		return
	}
	delete(d.settling, question)
	for _, name := range s.names {
		d.nameFor(c, name)
	}
	if s.names == nil && (!d.naming || d.view.unnamedLists()) {
		d.naming = true
		d.publish(c)
	}
	s.question.Answer(Settled{}, nil)
}

// unlisted are the configured servers without a list, of those given; nil = of all.
func (d *desk) unlisted(of []int) []int {
	if of == nil {
		for i := range d.cfg.Roster.size() {
			of = append(of, i)
		}
	}
	return slices.DeleteFunc(slices.Clone(of), func(i int) bool { return d.view.list(i) != nil })
}

// discover has servers list, and returns those that will answer.
func (d *desk) discover(c *kernel.Ctx, servers []int) map[int]struct{} {
	need := map[int]struct{}{}
	for _, i := range servers {
		if _, asked := d.finding[i]; !asked && !d.ask(c, i) {
			continue
		}
		need[i] = struct{}{}
	}
	return need
}

// ask has one server list. False: no answer will come.
func (d *desk) ask(c *kernel.Ctx, i int) bool {
	src, err := d.own(c, i)
	if err != nil {
		return false
	}
	ticket, err := src.Discover(c)
	if err != nil {
		c.Refuse("discover")
		return false
	}
	if d.finding == nil {
		d.finding, d.found = map[int]kernel.Ticket{}, map[kernel.Ticket]int{}
	}
	d.finding[i], d.found[ticket] = ticket, i
	return true
}

// discovered lets those go on that waited for that server, when it was the last that they waited for.
func (d *desk) discovered(c *kernel.Ctx, ticket kernel.Ticket, i int) {
	delete(d.finding, i)
	delete(d.found, ticket)
	for id, s := range d.settling {
		if _, waits := s.need[i]; waits {
			if delete(s.need, i); d.isSettled(s) {
				d.settleOver(c, id)
			}
		}
	}
	for _, k := range d.open() {
		if _, waits := k.need[i]; waits && k.phase == waiting && d.calls[k.id] == k {
			if delete(k.need, i); len(k.need) == 0 {
				d.nameFor(c, k.request.Name)
				d.resolve(c, k, false)
			}
		}
	}
}

// wake has servers list that may have a call's name, and reports that the call waits for them. Each is tried once.
func (d *desk) wake(c *kernel.Ctx, k *call, r Resolution) bool {
	if k.tried == nil {
		k.tried = map[int]struct{}{}
	}
	for _, i := range r.wake {
		k.tried[i] = struct{}{}
	}
	k.need = d.discover(c, d.unlisted(r.wake))
	if !r.meant { // it may have that name or not
		k.need = d.patient(k.need)
	}
	return len(k.need) > 0
}

// own is who serves a configured server for this session. Of an isolated one the session's own is started the first time.
func (d *desk) own(c *kernel.Ctx, i int) (Configured, error) {
	shared := d.cfg.Roster.servers[i]
	isolated, ok := shared.(Isolated)
	if !ok {
		return shared, nil
	}
	if have, ok := d.instances[i]; ok {
		return have.source, nil
	}
	source, spec := isolated.Instance(d.cfg.Tag)
	ref, err := c.Spawn(spec)
	if err != nil {
		c.Refuse("instance")
		c.Log().Warn("a session's own server could not be started", "server", jsonrpc.Show(shared.Server()), "error", err)
		return nil, err
	}
	if bound, ok := source.(Bound); ok {
		bound.Bind(ref)
	}
	if d.instances == nil {
		d.instances = map[int]instance{}
	}
	d.instances[i] = instance{source, ref}
	d.republish(c) // and no more: whose call this is for has not said yet what it waits for
	return source, nil
}

// server is who takes a call.
func (d *desk) server(c *kernel.Ctx, of Capability) (Source, error) {
	if of.configured {
		return d.own(c, of.at)
	}
	return of.source, nil
}

// exited forgets a server of the session's own that does not come back: the next use starts another.
func (d *desk) exited(c *kernel.Ctx, m kernel.Exited) {
	for i, own := range d.instances {
		if own.ref == m.Ref && m.Next.IsZero() {
			delete(d.instances, i)
			d.publish(c)
			return
		}
	}
}

// restarted follows one that came back.
func (d *desk) restarted(_ *kernel.Ctx, m kernel.Restarted) {
	for i, own := range d.instances {
		if own.ref == m.Old {
			d.instances[i] = instance{own.source, m.New}
		}
	}
}
