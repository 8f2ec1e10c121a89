package connection

import (
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// offered serves what the agent has to do its part of: nil when it does not offer that.
func (a *conn) offered(method string) func(*kernel.Ctx, *inbound) {
	info, _ := a.offers.Now()
	switch {
	case info == nil:
	case method == acp.MethodSessionLoad && info.LoadSession:
		return a.loadSession
	case method == acp.MethodSessionFork && info.Session.Fork:
		return a.forkSession
	case method == acp.MethodSessionDelete && info.Session.Delete:
		return a.deleteSession
	}
	return nil
}

// newSession checks initialized, schema, sessions, servers, in this order; what is left is the supervisor's.
func (a *conn) newSession(c *kernel.Ctx, f *inbound) {
	p, bad := session.ParseNew(f.Params, a.client.hello.Load().servers)
	if bad == nil {
		bad = a.roomForSession(f)
	}
	if bad == nil {
		bad = p.CheckServers(a.cfg.ServersPerSession)
	}
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, opening, "", a.sessions(), func(req uint64, held *kernel.Lease) kernel.Msg {
		return session.Open{Client: a.client, Req: req, Params: p, Held: held}
	})
}

// resumeSession brings a session to this connection.
func (a *conn) resumeSession(c *kernel.Ctx, f *inbound) {
	a.bring(c, f, func(req uint64, p *session.Params, held *kernel.Lease) kernel.Msg {
		return session.Resume{Client: a.client, Req: req, Params: p, Held: held}
	})
}

// loadSession does, and has the agent show all that was said in it.
func (a *conn) loadSession(c *kernel.Ctx, f *inbound) {
	a.bring(c, f, func(req uint64, p *session.Params, held *kernel.Lease) kernel.Msg {
		return session.Load{Client: a.client, Req: req, Params: p, Held: held}
	})
}

// bring checks initialized, schema, servers, the shape of the id, sessions, in this order.
func (a *conn) bring(c *kernel.Ctx, f *inbound, message func(uint64, *session.Params, *kernel.Lease) kernel.Msg) {
	p, bad := a.parseKnown(f)
	if bad == nil {
		var owned bool
		f.opens = p.SessionID
		if f.slot, owned = a.client.book.borrow(p.SessionID); !owned {
			bad = a.roomForSession(f)
		}
	}
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, opening, p.SessionID, a.sessions(), func(req uint64, held *kernel.Lease) kernel.Msg { return message(req, p, held) })
}

// forkSession checks initialized, schema, servers, the shape of the id, sessions, in this order. The session that it opens is another one.
func (a *conn) forkSession(c *kernel.Ctx, f *inbound) {
	p, bad := a.parseKnown(f)
	if bad == nil {
		bad = a.roomForSession(f)
	}
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, opening, "", a.sessions(), func(req uint64, held *kernel.Lease) kernel.Msg {
		return session.Fork{Client: a.client, Req: req, Params: p, Held: held}
	})
}

// parseKnown reads the params of a request that opens something by a session that there is.
func (a *conn) parseKnown(f *inbound) (*session.Params, *jsonrpc.Error) {
	p, bad := session.ParseResume(f.Params)
	if bad == nil {
		bad = p.CheckServers(a.cfg.ServersPerSession)
	}
	if bad == nil && !session.ValidID(p.SessionID) {
		bad = acp.UnknownSession(p.SessionID)
	}
	return p, bad
}

// deleteSession checks initialized and the shape of the id. It need not be a session of this connection.
func (a *conn) deleteSession(c *kernel.Ctx, f *inbound) {
	id, bad := acp.ParseSessionID(f.Params)
	if bad == nil && !session.ValidID(id) {
		bad = acp.UnknownSession(id)
	}
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, other, "", a.sessions(), func(req uint64, held *kernel.Lease) kernel.Msg {
		held.Release()
		return session.Delete{Client: a.client, Req: req, Session: id}
	})
}

// roomForSession reserves the place of a session among those of the connection, before anything is done for it.
func (a *conn) roomForSession(f *inbound) (bad *jsonrpc.Error) {
	var err error
	if f.slot, err = a.seat.owned.Admit(a.seat.entrance.sessions.Of(a.seat.name)); err != nil {
		return overloadOf(err)
	}
	return nil
}
