package session

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"fmt"
	"slices"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// served is one declared server of the session.
type served struct {
	planned
	tunnel *tunnel.Tunnel // nil when none was opened
	ref    kernel.Ref     // of its generation; zero once it has ended for good
	client Client         // that carries it
}

// underway is a tunnel from its spawning to its end, whether its server is still declared or not. What it listed is paid for by
// the session's account: when both end at once, the desk may never have heard of it.
type underway struct {
	tunnel *tunnel.Tunnel
	owed   *kernel.Obligation
}

// live tells whether its tunnel may still serve.
func (s *served) live() bool { return s.tunnel != nil && !s.ref.IsZero() }

// same tells whether a declaration asks for what this tunnel is.
func (s *served) same(p planned) bool {
	return s.live() && s.ID == p.ID && s.Name == p.Name && s.Form == p.Form
}

// maxDeclared bounds the names that a session remembers for its desk, which knows no more of them.
const maxDeclared = 1024

// declaredBytes is what one declaration, or a remembered name, costs besides its text.
const declaredBytes = 256

// bytes is what is kept of a declaration.
func (p *planned) bytes() int {
	return len(p.Name) + len(p.ID) + len(p.reason) + cap(p.Tools) + declaredBytes
}

// declaration is what a client has said of its servers, judged and paid for. nil = it has said nothing: what its connection carries goes on.
type declaration struct {
	plans []planned
	lease *kernel.Lease
}

// afford judges a declaration and has the session's account pay for it before anything is done: for what is kept of it as long as it counts, of
// the one that it replaces, and of all names. The error is the account's; then nothing has changed.
func (x *session) afford(p *Params) (*declaration, error) {
	if p.Servers == nil {
		return nil, nil
	}
	d := &declaration{plans: plan(p.Declared, p.attach, x.grants().Server)}
	n := x.declaredNames()
	for i := range d.plans {
		one := &d.plans[i]
		if one.state != stateConnecting { // nobody will list them
			one.Tools = nil
		}
		n += one.bytes() + len(one.Name) + declaredBytes
	}
	for _, one := range x.servers { // some are told as withdrawn
		n += one.bytes()
	}
	var err error
	if d.lease, err = x.c.Account().Acquire(int64(n)); err != nil {
		x.c.Refuse("session_bytes")
		return nil, err
	}
	for i := range d.plans {
		d.plans[i].Tools = bytes.Clone(d.plans[i].Tools) // the frame is not kept alive for it
	}
	return d, nil
}

// declaredNames is what the names cost that the session remembers.
func (x *session) declaredNames() (n int) {
	for _, name := range x.declared {
		n += len(name) + declaredBytes
	}
	return n
}

// declare makes the client's declarations the session's servers. A live tunnel of this very connection that is declared
// again stays as it is; one that is not declared any more is withdrawn; the rest is opened. Nobody waits for anybody.
func (x *session) declare(client Client, d *declaration, same bool) {
	if d == nil {
		return
	}
	plans := d.plans
	names := make([]string, 0, len(plans))
	for _, one := range plans {
		names = append(names, one.Name)
	}
	for _, name := range names {
		if !slices.Contains(x.declared, name) && len(x.declared) < maxDeclared {
			x.declared = append(x.declared, name)
		}
	}
	_ = x.desk.Signal(capability.Declared{Names: names}) // a desk that has just ended is told again when it is back
	former := x.servers
	x.servers = make([]*served, 0, len(plans))
	kept := make(map[*served]bool)
	for _, one := range plans {
		next := &served{planned: one}
		if one.state == stateConnecting {
			for _, old := range former {
				if same && old.client == client && old.same(one) {
					next, kept[old] = old, true
				}
			}
		}
		x.servers = append(x.servers, next)
	}
	rest := slices.DeleteFunc(former, func(old *served) bool { return kept[old] })
	for _, one := range x.servers {
		if one.state == stateConnecting && one.tunnel == nil {
			rest = x.place(one, client, rest)
		}
	}
	for _, old := range rest {
		if same && old.tunnel != nil && old.state != stateWithdrawn {
			old.state = stateWithdrawn
			x.servers = append(x.servers, old)
		}
		x.endTunnel(old, tunnel.ErrWithdrawn)
	}
	for _, one := range x.servers {
		if one.state == stateConnecting && one.tunnel == nil {
			x.openTunnel(one, client)
		}
	}
	x.payDeclared(d.lease)
	x.showServers() // the client reads it in the answer to its request
}

// payDeclared puts that lease in the place of the former declaration's, with what is kept now.
func (x *session) payDeclared(lease *kernel.Lease) {
	n := x.declaredNames()
	for _, one := range x.servers {
		n += one.bytes()
	}
	lease.Shrink(int64(n))
	if x.paid != nil {
		x.paid.Discharge()
		x.paidLease.Release()
	}
	x.paidLease = lease
	x.paid = x.c.Own("declared servers", func(context.Context, error) { lease.Release() })
}

func (x *session) grants() *capability.Grants {
	if x.s.cfg.Desk.Grants != nil {
		return x.s.cfg.Desk.Grants
	}
	return capability.DefaultGrants()
}

// place decides a newcomer's claim to its id and name against the tunnels that the session has, of any connection: it
// yields, or ends them. left is what the newcomer does not stand for.
func (x *session) place(one *served, client Client, holders []*served) (left []*served) {
	claim := tunnel.Claim{Name: one.Name, ID: one.ID, Rank: tunnel.Rank{Connection: client.Rank(), Attach: one.attach}}
	verdict := tunnel.Decide(claims(holders), claim, gone(client))
	if verdict.StandDown {
		one.state, one.reason, one.Tools = stateSuperseded, tunnel.ErrStoodDown.Error(), nil
		return holders
	}
	for i, old := range holders {
		evicted := slices.Contains(verdict.Evict, i)
		if evicted {
			x.endTunnel(old, tunnel.ErrEvicted)
		}
		if !evicted || old.ID != one.ID { // what is not declared any more is reported
			left = append(left, old)
		}
	}
	return left
}

// claims are what the session's tunnels hold. One that has ended, or whose connection has gone, ranks below all.
func claims(holders []*served) []tunnel.Claim {
	out := make([]tunnel.Claim, len(holders))
	for i, old := range holders {
		out[i] = tunnel.Claim{Name: old.Name, ID: old.ID}
		if old.live() && !gone(old.client) {
			out[i] = old.tunnel.Claim()
		}
	}
	return out
}

// openTunnel opens the tunnel of one server.
func (x *session) openTunnel(one *served, client Client) {
	t := tunnel.New(tunnel.Params{Declared: one.Declared, Carrier: client, Attach: one.attach, Session: x.id, Tag: acp.SessionTag(x.id),
		Desk: x.desk, Version: x.s.cfg.Version, Limits: x.s.cfg.Tunnel, Stats: x.s.cfg.TunnelStats})
	_ = x.desk.Signal(capability.Attach{Source: t})
	x.tunnelled++
	ref, err := x.c.Spawn(t.Spec(fmt.Sprintf("tunnel-%d", x.tunnelled)))
	if err != nil {
		one.state, one.reason, one.Tools = serverState(tunnel.Failed), "the session is ending", nil
		_ = x.desk.Signal(capability.Detach{Source: t})
		return
	}
	one.tunnel, one.ref, one.client = t, ref, client
	owed := x.c.Own("tools of "+ref.Name(), func(context.Context, error) {
		t.Close() // also when it was abandoned and is still in a turn
		t.Tools().List.Release()
	})
	x.tunnels[ref] = underway{tunnel: t, owed: owed}
}

// endTunnel stops a server's tunnel; its generation owes the mcp/disconnect. What it offered stays listed as detached. The desk
// hears of it from the tunnel, and lets go of it when it has ended.
func (x *session) endTunnel(one *served, cause error) {
	if !one.live() {
		return
	}
	x.c.Stop(one.ref, cause)
	one.ref = kernel.Ref{}
}

// endTaken stops all that the former owner carries for this session. Who took it over reads so at once: the tunnels' own word
// comes after the answer.
func (x *session) endTaken(former Client) {
	for _, one := range x.servers {
		if one.client == former && one.live() {
			x.endTunnel(one, tunnel.ErrTakenOver)
			one.state, one.reason = stateSuperseded, tunnel.ErrTakenOver.Error()
		}
	}
}

// deskExited tells the desk's next generation what it has to serve.
func (x *session) deskExited(m kernel.Exited) {
	x.desk = m.Next
	x.tools.facade(false) // its calls have ended with it
	_ = x.desk.Signal(capability.Declared{Names: x.declared})
	for _, one := range x.servers {
		if one.live() {
			_ = x.desk.Signal(capability.Attach{Source: one.tunnel})
		}
	}
}

// onTunnel is a tunnel's news of itself.
func (x *session) onTunnel(m tunnel.Changed) {
	for _, one := range x.servers {
		if one.tunnel == m.Tunnel {
			x.serversChanged()
			x.pinned()
			return
		}
	}
}

// tunnelExited is the end of a tunnel's generation: after a crash of our own code another follows.
func (x *session) tunnelExited(m kernel.Exited) {
	t, ok := x.tunnels[m.Ref]
	if !ok {
		return
	}
	delete(x.tunnels, m.Ref)
	if m.Next.IsZero() { // only now: nothing is listed by it any more
		t.tunnel.Close()
		_ = x.desk.Signal(capability.Detach{Source: t.tunnel})
		t.owed.Discharge()
	} else {
		x.tunnels[m.Next] = t
	}
	for _, one := range x.servers {
		if one.ref == m.Ref && one.live() {
			one.ref = m.Next
			x.serversChanged()
			return
		}
	}
}

// reports is what the client is told of its servers.
func (x *session) reports() []report {
	grants := x.grants()
	list := make([]report, 0, len(x.servers))
	for _, one := range x.servers {
		r := report{name: one.Name, id: one.ID, state: one.state, reason: one.reason}
		if one.tunnel != nil && one.state == stateConnecting {
			st := one.tunnel.Status()
			r.state, r.reason = serverState(st.State), st.Reason
			if tools := one.tunnel.Tools().List; tools != nil {
				r.listed = true
				r.offered, r.withheld = grants.Count(one.Name, tools)
			}
		}
		list = append(list, r)
	}
	return list
}

func (x *session) serversObject() jsontext.Value {
	return append(appendServers([]byte{'{'}, x.reports(), x.facadeNow()), '}')
}

// showServers shows them in the tree.
func (x *session) showServers() []report {
	reports := x.reports()
	shown := make([]string, len(reports))
	for i, r := range reports {
		shown[i] = r.name + " " + string(r.state)
	}
	x.c.Attr("servers", shown)
	return reports
}

// serversChanged tells the client, unless the answer that says it all is still to come.
func (x *session) serversChanged() {
	reports := x.showServers()
	if x.client == nil || x.opening != nil || x.over {
		return
	}
	x.notify(acp.MethodServers, append(appendServers([]byte{','}, reports, x.facadeNow()), '}'))
}

// replyOf is the result of a request to the client.
func replyOf(m kernel.Msg) ([]byte, bool) {
	r, ok := m.(tunnel.Reply)
	return r.Result, ok
}
