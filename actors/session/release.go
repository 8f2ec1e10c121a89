package session

import (
	"context"
	"errors"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// releaseAnswer answers a request whose session ended before it did.
func releaseAnswer(id string, client Client, req uint64) func(context.Context, error) {
	return func(_ context.Context, cause error) {
		client.Respond(id, req, nil, nil, ended(cause))
	}
}

// ended is what the end of a session means to a request that was open.
func ended(cause error) *jsonrpc.Error {
	if errors.Is(cause, kernel.ErrShutdown) {
		return jsonrpc.Draining(0)
	}
	return jsonrpc.InternalError(jsonrpc.ReasonInternal, "the session ended before it could answer: resume it or open another")
}

// wireError is what a client is told of a failure of its agent or of the pod. An agent's own error passes as it came; its
// stderr stays in the pod's log.
func wireError(err error) *jsonrpc.Error {
	var (
		theirs   *jsonrpc.Error
		exited   *agent.Exited
		start    *agent.StartError
		long     *agent.LineTooLong
		overload *kernel.Overloaded
	)
	switch {
	case errors.As(err, &start):
		if start.Err == nil {
			return jsonrpc.InternalError(jsonrpc.ReasonAgentTimeout, "the agent did not start in time: the pod's log says more")
		}
		return jsonrpc.InternalError(jsonrpc.ReasonAgentExited, "the agent did not start: the pod's log says why")
	case errors.As(err, &exited):
		plain := *exited
		plain.Stderr = ""
		return jsonrpc.InternalError(jsonrpc.ReasonAgentExited, plain.Error())
	case errors.As(err, &theirs):
		return theirs
	case errors.As(err, &long):
		return jsonrpc.InternalError(jsonrpc.ReasonInternal, long.Error())
	case errors.As(err, &overload):
		return overloaded(overload)
	case errors.Is(err, errNewTimeout):
		return jsonrpc.InternalError(jsonrpc.ReasonAgentTimeout, err.Error())
	case errors.Is(err, kernel.ErrShutdown):
		return jsonrpc.Draining(0)
	case errors.Is(err, errNoSession), errors.Is(err, errSameSession), errors.Is(err, errNoReason), errors.Is(err, tunnel.ErrGone):
		return jsonrpc.InternalError(jsonrpc.ReasonInternal, err.Error())
	}
	return jsonrpc.InternalError(jsonrpc.ReasonAgentExited, "the agent is gone")
}

func overloaded(o *kernel.Overloaded) *jsonrpc.Error {
	return jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: o.Scope, Limit: o.Limit, Used: o.Used, Size: o.Size, RetryAfter: o.RetryAfter})
}

// What an agent may make of the question that opens its session, beside its own errors: each is told in an openError.
var (
	errNoSession   = errors.New("no object with one sessionId: check that agent.command speaks ACP version 1")
	errSameSession = errors.New("the id of the session that was to be copied: it has no copy, and to delete one would delete both; check that the agent's session/fork opens another")
	errNewTimeout  = errors.New("nothing within agent.new_timeout")
)

// errNoReason is a prompt's result that does not say how the turn ended.
var errNoReason = errors.New("the agent's answer to session/prompt is no object with a stopReason that is a string: check that agent.command speaks ACP version 1")

// openError is why a question that opens a conversation came to nothing, with its name.
type openError struct {
	asked question
	err   error
}

func (e *openError) Error() string {
	return "the agent's answer to " + e.asked.method() + " is " + e.err.Error()
}

func (e *openError) Unwrap() error { return e.err }
