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
	d.await(c, settler{need: d.patient(d.discover(c, d.unlisted(nil), Searched)), declared: true})
}

// waitedInVain remembers for which servers a search has waited its whole time: no other one waits for them again before they are back.
func (d *desk) waitedInVain(question uint64) {
	if s := d.settling[question]; s != nil {
		for i := range s.need {
			d.isSlow(i)
		}
	}
}

func (d *desk) isSlow(i int) {
	if d.slow == nil {
		d.slow = map[int]*Toolset{}
	}
	d.slow[i] = d.view.tools(i)
}

// patient is what of these servers is worth a wait: no attempt that was waited for before, and none at a server that has not come back since.
func (d *desk) patient(need map[int]struct{}) map[int]struct{} {
	maps.DeleteFunc(need, func(i int, _ struct{}) bool {
		return d.slow[i] != nil && (d.slow[i] == d.view.tools(i) || d.failed(i))
	})
	return need
}

// prepare is settle for a few names: only servers that may have them are asked to list.
func (d *desk) prepare(c *kernel.Ctx, m Prepare) {
	s := settler{need: map[int]struct{}{}, names: m.Names}
	for _, name := range m.Names {
		r := d.view.resolve(name, false, nil)
		for i := range d.discover(c, d.unlisted(append([]int{}, r.wake...)), Searched) {
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
	if len(s.need) > 0 {
		c.After(RetryTimeout, retryOver{settle: q.ID()})
	}
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
func (d *desk) discover(c *kernel.Ctx, servers []int, want Want) map[int]struct{} {
	need := map[int]struct{}{}
	for _, i := range servers {
		if open, asked := d.finding[i]; asked && d.found[open].want >= want || d.ask(c, i, want) {
			need[i] = struct{}{}
		}
	}
	return need
}

// request is an open question to a server for its list.
type request struct {
	server int
	want   Want
}

// ask has one server list. False: no answer will come.
func (d *desk) ask(c *kernel.Ctx, i int, want Want) bool {
	src, err := d.own(c, i)
	if err != nil {
		return false
	}
	ticket, err := src.Discover(c, want)
	if err != nil {
		c.Refuse("discover")
		return false
	}
	if d.finding == nil {
		d.finding, d.found = map[int]kernel.Ticket{}, map[kernel.Ticket]request{}
	}
	d.finding[i], d.found[ticket] = ticket, request{i, want}
	return true
}

// discovered lets those go on that waited for that server, when it was the last that they waited for. What was done for a search may be less
// than what a call waits for.
func (d *desk) discovered(c *kernel.Ctx, ticket kernel.Ticket, r request) {
	delete(d.found, ticket)
	if d.finding[r.server] == ticket {
		delete(d.finding, r.server)
	}
	if d.view.list(r.server) != nil {
		delete(d.slow, r.server)
	}
	is := func(other int, _ struct{}) bool { return other == r.server }
	for id := range d.settling {
		d.settleWithout(c, id, is)
	}
	for _, k := range d.open() {
		if k.want <= r.want {
			d.goWithout(c, k, is)
		}
	}
}

// settleWithout lets a search go on that waits for no other servers.
func (d *desk) settleWithout(c *kernel.Ctx, question uint64, drop func(int, struct{}) bool) {
	s := d.settling[question]
	if s == nil || len(s.need) == 0 {
		return
	}
	if maps.DeleteFunc(s.need, drop); d.isSettled(s) {
		d.settleOver(c, question)
	}
}

// goWithout lets a call go on that waits for no other servers.
func (d *desk) goWithout(c *kernel.Ctx, k *call, drop func(int, struct{}) bool) {
	if k == nil || len(k.need) == 0 || k.phase != waiting || d.calls[k.id] != k {
		return
	}
	if maps.DeleteFunc(k.need, drop); len(k.need) == 0 {
		d.nameFor(c, k.request.Name)
		d.resolve(c, k, false)
	}
}

// retryOver lets go on who has waited long enough for servers that have failed before. They are tried on.
func (d *desk) retryOver(c *kernel.Ctx, m retryOver) {
	failed := func(i int, _ struct{}) bool {
		is := d.failed(i)
		if is {
			d.isSlow(i)
		}
		return is
	}
	d.settleWithout(c, m.settle, failed)
	d.goWithout(c, d.calls[m.call], failed)
}

// failed tells a server that has failed and is tried again from one that was not tried before.
func (d *desk) failed(i int) bool { return d.view.tools(i).Reason != "" }

// wake has servers list that may have a call's name, and reports that the call waits for them. Each is tried once.
func (d *desk) wake(c *kernel.Ctx, k *call, r Resolution) bool {
	if k.tried == nil {
		k.tried = map[int]struct{}{}
	}
	for _, i := range r.wake {
		k.tried[i] = struct{}{}
	}
	k.want = Guessed
	if r.meant {
		k.want = Meant
	}
	k.need = d.discover(c, d.unlisted(r.wake), k.want)
	if !r.meant { // it may have that name or not
		if k.need = d.patient(k.need); len(k.need) > 0 {
			c.After(RetryTimeout, retryOver{call: k.id})
		}
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
