package connection

import (
	"errors"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// inbound is one scanned frame with its lease and its slot, until somebody takes them.
type inbound struct {
	jsonrpc.Frame
	lease *kernel.Lease
	slot  *admission.Slot // of a request that opens a session …
	opens string          // … which it names, when it is known already
}

// give moves the lease to the account of whoever gets the frame.
func (f *inbound) give(to kernel.Ref) (*kernel.Lease, error) {
	if to.IsZero() {
		return nil, kernel.ErrStopped
	}
	if err := f.lease.Move(to.Account()); err != nil {
		return nil, err
	}
	lease := f.lease
	f.lease = nil
	return lease, nil
}

// dispatch judges one frame; the order of the checks is jsonrpc.ScanLimit's, and sends it on its way.
func (a *conn) dispatch(c *kernel.Ctx, raw *inFrame) {
	f := &inbound{lease: raw.bytes}
	defer func() { f.lease.Release(); a.client.book.handBack(f.opens, f.slot) }()
	var fault *jsonrpc.Fault
	if f.Frame, fault = jsonrpc.ScanLimit(raw.data, int(a.cfg.RequestBytes)); fault != nil {
		a.faulty(c, fault)
		return
	}
	switch f.Kind {
	case jsonrpc.Response:
		if a.answered(c, f.Frame, f.lease) {
			f.lease = nil
		}
	case jsonrpc.Notification:
		a.notified(c, f)
	case jsonrpc.Request:
		a.requested(c, f)
	case jsonrpc.Invalid:
	}
}

func (a *conn) faulty(c *kernel.Ctx, fault *jsonrpc.Fault) {
	switch {
	case !fault.Silent():
		a.client.deny(fault.ID, fault.Err())
	case fault.Code == jsonrpc.Overload: // dropped for its size
		a.client.refuse(fault.Err())
	default:
		c.Refuse("invalid_dropped")
	}
}

// requested dispatches a request. Everything but initialize needs one first; what nobody knows is told so at any time, which
// some clients use as a ping.
func (a *conn) requested(c *kernel.Ctx, f *inbound) {
	switch f.Method {
	case acp.MethodInitialize:
		a.initialize(c, f.Frame)
		return
	case acp.MethodSessionCancel:
		a.client.deny(f.ID, &jsonrpc.Error{Code: jsonrpc.InvalidRequest, Message: "session/cancel is a notification: send it without an id"})
		return
	}
	serve := a.server(f.Method)
	if serve == nil && a.passes(f) {
		serve = a.forward
	}
	if serve == nil {
		if acp.IsInbound(f.Method) {
			c.Refuse("inbound_request") // sampling, roots, elicitation: they reach nobody
		}
		a.client.deny(f.ID, jsonrpc.UnknownMethod(f.Method))
		return
	}
	if a.client.hello.Load() == nil {
		a.client.deny(f.ID, jsonrpc.NotInitializedError(f.Method))
		return
	}
	serve(c, f)
}

func (a *conn) server(method string) func(*kernel.Ctx, *inbound) {
	switch method {
	case acp.MethodSessionNew:
		return a.newSession
	case acp.MethodSessionResume:
		return a.resumeSession
	case acp.MethodSessionLoad, acp.MethodSessionFork, acp.MethodSessionDelete:
		return a.offered(method)
	case acp.MethodSessionPrompt:
		return a.prompted
	case acp.MethodSessionList:
		return a.listSessions
	case acp.MethodSessionClose:
		return a.closeSession
	case acp.MethodSessionSetMode, acp.MethodSessionSetOpt:
		return a.forward
	case acp.MethodAuthenticate, acp.MethodLogout:
		return a.askAgent
	}
	return nil
}

func capped(scope string, used, limit int) *jsonrpc.Error {
	if used < limit {
		return nil
	}
	return jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: scope, Limit: int64(limit), Used: int64(used), Size: 1, RetryAfter: readAgain})
}

// prompted checks initialized, prompts in flight, the id, and whether it is ours, in this order; busy and the content are the session's to check.
func (a *conn) prompted(c *kernel.Ctx, f *inbound) {
	prompts := a.client.book.inFlight()
	bad := capped("prompts_per_connection", prompts, a.cfg.PromptsPerConnection)
	var id string
	var to kernel.Ref
	if bad == nil {
		id, to, bad = a.addressed(f)
	}
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, prompt, id, to, func(req uint64, held *kernel.Lease) kernel.Msg {
		return session.Prompt{Client: a.client, Req: req, Params: f.Params, Held: held}
	})
}

// addressed reads which session a request is about, which has to be one of ours.
func (a *conn) addressed(f *inbound) (id string, to kernel.Ref, bad *jsonrpc.Error) {
	if id, bad = acp.ParseSessionID(f.Params); bad == nil {
		to, bad = a.owned(id)
	}
	return id, to, bad
}

func (a *conn) closeSession(c *kernel.Ctx, f *inbound) {
	id, to, bad := a.addressed(f)
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, other, id, to, func(req uint64, held *kernel.Lease) kernel.Msg {
		held.Release()
		return session.Close{Client: a.client, Req: req}
	})
}

// passes tells whether a frame with a method that the pod does not know is for a session's agent, which may know it.
func (a *conn) passes(f *inbound) bool {
	if a.client.hello.Load() == nil || acp.Reserved(f.Method) || acp.OfClient(f.Method) {
		return false
	}
	_, bad := acp.ParseSessionID(f.Params)
	return bad == nil
}

// forward passes a request on to the agent of its session.
func (a *conn) forward(c *kernel.Ctx, f *inbound) {
	id, to, bad := a.addressed(f)
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	a.hand(c, f, passed, id, to, func(req uint64, held *kernel.Lease) kernel.Msg {
		return session.Forward{Client: a.client, Req: req, Method: f.Method, Params: f.Params, Held: held}
	})
}

// inform passes a notification on to the agent of its session.
func (a *conn) inform(c *kernel.Ctx, f *inbound) {
	_, to, bad := a.addressed(f)
	if bad != nil {
		c.Refuse("ignored")
		return
	}
	held, err := f.give(to)
	if err == nil {
		err = to.Tell(session.Inform{Client: a.client, Method: f.Method, Params: f.Params, Held: held})
	}
	if err != nil && !errors.Is(err, kernel.ErrStopped) {
		a.client.drop(err)
	}
}

// askAgent is authenticate or logout.
func (a *conn) askAgent(c *kernel.Ctx, f *inbound) {
	a.hand(c, f, passed, "", a.sessions(), func(req uint64, held *kernel.Lease) kernel.Msg {
		return session.Ask{Client: a.client, Req: req, Method: f.Method, Params: f.Params, Held: held}
	})
}

func (a *conn) listSessions(c *kernel.Ctx, f *inbound) {
	a.hand(c, f, other, "", a.sessions(), func(req uint64, held *kernel.Lease) kernel.Msg {
		return session.List{Client: a.client, Req: req, Params: f.Params, Held: held}
	})
}

func (a *conn) owned(id string) (kernel.Ref, *jsonrpc.Error) {
	to, ok := a.client.book.owner(id)
	if !ok {
		return to, acp.UnknownSession(id)
	}
	return to, nil
}

// enter pays for and notes a request that somebody will answer. When there is no room it is refused here.
func (a *conn) enter(f jsonrpc.Frame, kind class, name string, to kernel.Ref) (req uint64, ok bool) {
	lease, err := a.client.account.Acquire(answerReserve)
	if err != nil {
		a.client.deny(f.ID, overloadOf(err))
		return 0, false
	}
	if req, ok = a.client.book.enter(&openRequest{id: f.ID, class: kind, session: name, to: to, lease: lease}); !ok {
		lease.Release() // this connection was abandoned, and nobody is answered any more
	}
	return req, ok
}

// hand gives a request to the actor that answers it. From here on it is answered exactly once: by that actor, or by us when
// it refuses the message or ends.
func (a *conn) hand(c *kernel.Ctx, f *inbound, kind class, name string, to kernel.Ref, make func(uint64, *kernel.Lease) kernel.Msg) {
	held, err := f.give(to)
	if err == nil {
		req, ok := a.enter(f.Frame, kind, name, to)
		if !ok {
			held.Release()
			return
		}
		a.client.book.reserve(req, f.slot)
		f.slot = nil
		if err = to.Tell(make(req, held)); err == nil {
			a.watch(c, to)
			return
		}
		if r := a.client.book.settle(req); r != nil {
			r.lease.Release()
		}
	}
	switch {
	case errors.Is(err, kernel.ErrStopped) && name != "" && kind != opening:
		a.client.deny(f.ID, acp.UnknownSession(name))
	default:
		a.client.deny(f.ID, overloadOf(err))
	}
}

// notified dispatches a notification. Methods that are only requests are ignored, and so is what nobody knows.
func (a *conn) notified(c *kernel.Ctx, f *inbound) {
	switch {
	case f.Method == acp.MethodSessionCancel:
		if id, bad := acp.ParseSessionID(f.Params); bad == nil {
			if to, owned := a.client.book.owner(id); owned {
				a.cancel(to, 0)
			}
		}
	case f.Method == acp.MethodCancelRequest:
		if id, ok := acp.ParseCancelRequest(f.Params); ok {
			if req, to := a.client.book.cancellable(id); req != 0 {
				a.cancel(to, req)
			}
		}
	case acp.IsInbound(f.Method):
		a.tunnelled(c, f)
	case a.passes(f):
		a.inform(c, f)
	default:
		c.Refuse("ignored")
	}
}

// cancel goes the way of the prompts, so that it finds the one before it. A full account does not keep it out: then it goes
// ahead of them.
func (a *conn) cancel(to kernel.Ref, req uint64) {
	m := session.Cancel{Client: a.client, Req: req}
	if err := to.Tell(m); err != nil && !errors.Is(err, kernel.ErrStopped) && to.Signal(m) != nil {
		a.client.drop(err)
	}
}

// tunnelled hands a notification of one of the client's servers to the tunnel that is bound to it.
func (a *conn) tunnelled(c *kernel.Ctx, f *inbound) {
	message, err := acp.ParseInbound(f.Method, f.Params)
	if err != nil {
		c.Refuse("inbound_malformed")
		return
	}
	to, bound := a.client.book.target(message.Target, message.RequestID)
	if !bound {
		c.Refuse("inbound_unbound")
		return
	}
	held, err := f.give(to)
	if err == nil {
		err = to.Tell(tunnel.Inbound{Message: message, Bytes: held})
	}
	if _, full := errors.AsType[*kernel.Overloaded](err); full && message.Method == mcp.MethodListChanged {
		// Its server says it once, and it carries nothing: it goes where there is still room for a word.
		err = to.Signal(tunnel.Inbound{Message: acp.Inbound{Method: mcp.MethodListChanged}})
	}
	if err != nil && !errors.Is(err, kernel.ErrStopped) {
		a.client.drop(err)
	}
}
