package session

import (
	"bytes"
	"errors"
	"slices"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// onAsked is a request of the agent that the client answers: files, terminals, elicitation, the agent's own extensions. What the
// client that is there did not declare is not asked of it.
func (x *session) onAsked(m agent.Called) {
	defer func() { m.Held.Release() }()
	refuse := func(scope string, bad *jsonrpc.Error) {
		x.c.Refuse(scope)
		x.respond(agent.Respond{ID: m.ID, Err: bad})
	}
	switch {
	case !x.caps.serves.Serves(m.Method, m.Params):
		refuse("agent_request", jsonrpc.UnknownMethod(m.Method))
		return
	case x.client == nil:
		refuse("agent_request", clientGone())
		return
	case len(x.asks) == maxAsks:
		refuse("requests_in_flight", jsonrpc.InternalError(jsonrpc.ReasonInternal, "too many requests of this agent are open: wait for their answers"))
		return
	}
	params, soon, bad := x.forClient(m)
	if bad != nil {
		refuse("agent_request", bad)
		return
	}
	copied, err := x.c.Account().Acquire(int64(len(params) + itemBytes))
	if err != nil {
		refuse("session_bytes", wireError(err))
		return
	}
	a := &ask{id: m.ID, method: m.Method, params: params, copied: copied}
	a.timeout = x.c.After(x.s.cfg.CallMax, askOverdue{a})
	x.asks = append(x.asks, a)
	if !soon {
		x.relay(a)
	} else if err := x.call(a, ""); err != nil {
		x.drop(a)
		refuse("agent_request", wireError(err))
	}
}

// forClient is the params of a request as the client has to get them: the session by the client's id, and a request of the
// client by its own. soon: it is not about the session, and what is said in that may be waiting for it.
func (x *session) forClient(m agent.Called) (params []byte, soon bool, bad *jsonrpc.Error) {
	o, err := jsonrpc.ParseObject(m.Params)
	if err == nil {
		err = o.Unique("sessionId", "requestId")
	}
	switch {
	case m.Method[0] == '_' && !jsonrpc.IsObject(m.Params): // none, or an array: it names no session
		return bytes.Clone(m.Params), x.opening != nil, nil
	case err != nil:
		return nil, false, jsonrpc.BadParams("params: %v", err)
	case o.Has("sessionId"):
		if x.foreign(m.From, o) {
			return nil, false, jsonrpc.BadParams("this is not the session that you were given")
		}
		return o.Set("sessionId", jsonrpc.AppendString(nil, x.id)), false, nil
	case m.Method == acp.MethodElicitation:
		id, ok := x.requestOf(o)
		if !ok {
			return nil, false, jsonrpc.BadParams("requestId is of no open request")
		}
		return o.Set("requestId", id.Raw()), true, nil
	case m.Method[0] != '_':
		return nil, false, jsonrpc.BadParams("sessionId is required")
	}
	return slices.Clone(o.Raw()), x.opening != nil, nil
}

// requestOf finds the client's id of its request that the agent calls by requestId: of one that is passed on, of the prompt, or
// of the one that opens the session.
func (x *session) requestOf(params jsonrpc.Object) (jsonrpc.ID, bool) {
	raw, _ := params.Get("requestId")
	wire, ok := jsonrpc.Int(raw)
	if !ok {
		return jsonrpc.ID{}, false
	}
	asker := x.opening
	if x.prompt.wire.Is(wire) {
		asker = x.prompt.asker
	}
	for _, f := range x.forwards {
		if f.wire.Is(wire) {
			asker = f.asker
		}
	}
	if asker == nil {
		return jsonrpc.ID{}, false
	}
	return asker.client.RequestID(asker.req)
}

// answerAsked passes the client's answer on, to the byte.
func (x *session) answerAsked(a *ask, m kernel.Answer) {
	defer x.drop(a)
	if m.Err == nil {
		if raw, ok := replyOf(m.Msg); ok {
			x.respond(agent.Respond{ID: a.id, Result: raw, Held: m.Lease})
			return
		}
	}
	m.Lease.Release()
	var theirs *jsonrpc.Error
	if !errors.As(m.Err, &theirs) {
		theirs = clientGone()
	}
	x.respond(agent.Respond{ID: a.id, Err: theirs})
}
