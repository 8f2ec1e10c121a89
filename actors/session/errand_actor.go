package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

func (s *Sessions) errandSpec(n int, e errand) kernel.Spec {
	return kernel.Spec{
		Name: fmt.Sprintf("errand-%d", n), Kind: "errand", Restart: kernel.Temporary, Scope: "session_bytes", Limit: s.cfg.SessionBytes,
		New: func() kernel.Behavior { return &errandActor{errand: e, s: s} },
	}
}

// Start implements kernel.Starter.
func (a *errandActor) Start(c *kernel.Ctx) error {
	done, held := a.done, a.held
	a.owed = c.Own("answer", func(_ context.Context, cause error) {
		held.Release()
		done(nil, nil, wireError(cause))
	})
	a.asks = make(map[kernel.Ticket]jsonrpc.ID)
	if a.client != nil {
		a.caps = acp.ParseClientCapabilities(a.client.Capabilities())
		c.Watch(a.client.Ref())
	}
	c.Attr("method", a.method)
	ticket, err := c.Request(c.Parent(), claimErrand{c.Self()})
	a.place = ticket
	return err
}

// Receive implements kernel.Behavior.
func (a *errandActor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case kernel.Answer:
		return a.answered(c, m)
	case agent.Ready:
		return a.ready(c, m)
	case agent.Called:
		a.called(c, m)
	case agent.Noted:
		a.noted(c, m)
	case agent.Update:
		m.Held.Release()
		m.Credit.Done()
		c.Refuse("agent_update") // it has no session
	case kernel.Exited:
		if m.Ref == a.agent {
			return a.finish(nil, nil, wireError(m.Cause))
		}
	case kernel.Down: // the client is gone: nobody waits
		return a.finish(nil, nil, jsonrpc.CancelledError())
	case callBack:
		return a.finish(nil, nil, jsonrpc.CancelledError())
	case errandTimer:
		return a.finish(nil, nil, jsonrpc.InternalError(jsonrpc.ReasonAgentTimeout, "the agent did not answer within agent.start_timeout"))
	}
	return nil
}

// finish gives the outcome and ends the actor, and with it the process.
func (a *errandActor) finish(result []byte, lease *kernel.Lease, bad *jsonrpc.Error) error {
	if a.owed.Discharge() {
		a.held.Release()
		a.done(result, lease, bad)
	} else {
		lease.Release()
	}
	return kernel.ErrDone
}

func (a *errandActor) answered(c *kernel.Ctx, m kernel.Answer) error {
	switch m.Ticket {
	case a.place:
		m.Lease.Release()
		if m.Err != nil {
			return a.finish(nil, nil, wireError(m.Err))
		}
		return a.spawn(c)
	case a.answer:
		if m.Err != nil {
			m.Lease.Release()
			return a.finish(nil, nil, wireError(m.Err))
		}
		r, _ := m.Msg.(agent.Reply)
		return a.finish(r.Result, m.Lease, nil)
	}
	a.fromClient(c, m)
	return nil
}

func (a *errandActor) spawn(c *kernel.Ctx) error {
	cfg := a.s.cfg.Agent
	cfg.Dir = a.s.cfg.Workdir
	if a.client != nil {
		cfg.Client = a.client.Capabilities()
	}
	spec := a.s.agentSpec(cfg, c.Self(), "agent")
	inner, s := spec.New, a.s
	spec.New = func() kernel.Behavior { return &incarnation{Behavior: inner(), s: s} }
	ref, err := c.Spawn(spec)
	if err != nil {
		return a.finish(nil, nil, wireError(err))
	}
	a.agent = ref
	return nil
}

func (a *errandActor) ready(c *kernel.Ctx, m agent.Ready) error {
	if m.From != a.agent {
		return nil
	}
	if a.offered != nil && !a.offered(m.Info) {
		return a.finish(nil, nil, jsonrpc.UnknownMethod(a.method))
	}
	m.Credits.Open() // nobody reads what it says beside its answer
	ticket, err := c.Request(a.agent, agent.Request{Method: a.method, Params: a.params, Wire: &a.wire})
	if err != nil {
		return a.finish(nil, nil, wireError(err))
	}
	a.answer = ticket
	timeout := a.s.cfg.Agent.StartTimeout
	if timeout <= 0 {
		timeout = agent.DefaultStartTimeout
	}
	c.After(timeout, errandTimer{})
	return nil
}

// called is a request of the agent: a login may have to ask the user something.
func (a *errandActor) called(c *kernel.Ctx, m agent.Called) {
	defer m.Held.Release()
	params, bad := a.forClient(m)
	if bad == nil {
		ticket, err := a.client.Call(c, "", m.Method, params)
		if err == nil {
			a.asks[ticket] = m.ID
			return
		}
		bad = wireError(err)
	}
	c.Refuse("agent_request")
	_ = c.Tell(a.agent, agent.Respond{ID: m.ID, Err: bad}) // an agent that takes nothing is overdue in a moment
}

func (a *errandActor) forClient(m agent.Called) ([]byte, *jsonrpc.Error) {
	switch {
	case a.client == nil, !a.caps.Serves(m.Method, m.Params), len(a.asks) == maxAsks:
		return nil, jsonrpc.UnknownMethod(m.Method)
	case m.Method[0] == '_' && !jsonrpc.IsObject(m.Params):
		return bytes.Clone(m.Params), nil
	}
	o, err := jsonrpc.ParseObject(m.Params)
	if err != nil || o.Has("sessionId") || o.Unique("requestId") != nil {
		return nil, jsonrpc.BadParams("there is no session here")
	}
	raw, named := o.Get("requestId")
	if wire, _ := jsonrpc.Int(raw); named && a.wire.Is(wire) {
		if id, ok := a.client.RequestID(a.req); ok {
			return o.Set("requestId", id.Raw()), nil
		}
	}
	return bytes.Clone(o.Raw()), nil
}

// fromClient is the client's answer to such a request.
func (a *errandActor) fromClient(c *kernel.Ctx, m kernel.Answer) {
	id, ok := a.asks[m.Ticket]
	if !ok {
		m.Lease.Release()
		return
	}
	delete(a.asks, m.Ticket)
	if raw, ok := replyOf(m.Msg); ok && m.Err == nil {
		_ = c.Tell(a.agent, agent.Respond{ID: id, Result: raw, Held: m.Lease})
		return
	}
	m.Lease.Release()
	var theirs *jsonrpc.Error
	if !errors.As(m.Err, &theirs) {
		theirs = clientGone()
	}
	_ = c.Tell(a.agent, agent.Respond{ID: id, Err: theirs})
}

// noted is a notification of the agent: the client gets it, unless it would speak in the pod's place.
func (a *errandActor) noted(c *kernel.Ctx, m agent.Noted) {
	defer m.Credit.Done()
	defer m.Held.Release()
	o, _ := jsonrpc.ParseObject(m.Params)
	switch {
	case m.Method == acp.MethodCancelRequest:
		if id, ok := acp.ParseCancelRequest(m.Params); ok {
			a.withdraw(c, id)
		}
	case a.client == nil, acp.Reserved(m.Method), o.Has("sessionId"), m.Method == acp.MethodElicitationDone && !a.caps.URL:
		c.Refuse("agent_notification")
	default:
		if a.client.Notify("", m.Method, m.Params) != nil {
			c.Refuse("agent_notification")
		}
	}
}

func (a *errandActor) withdraw(c *kernel.Ctx, id jsonrpc.ID) {
	for ticket, other := range a.asks {
		if other.Key() == id.Key() {
			delete(a.asks, ticket)
			c.Cancel(ticket)
			_ = c.Tell(a.agent, agent.Respond{ID: id, Err: jsonrpc.CancelledError()})
			return
		}
	}
}
