package jsonrpc

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"time"
)

// A Reason is what data.reason says of an error, so that a peer can act on it.
type Reason string

// The reasons of the contract.
const (
	ReasonBusy         Reason = "busy"          // Busy: a turn is running
	ReasonSuperseded   Reason = "superseded"    // Busy: a newer connection owns the session
	ReasonAgentExited  Reason = "agent_exited"  // Internal
	ReasonAgentTimeout Reason = "agent_timeout" // Internal
	ReasonNoAgent      Reason = "no_agent"      // Internal: agent.driver = "none"
	ReasonIdle         Reason = "idle"          // Internal: agent.turn_idle_timeout
	ReasonInternal     Reason = "internal"      // Internal: a fault of the pod's own
	ReasonCwd          Reason = "cwd"           // InvalidParams: cwd or additionalDirectories
)

// ReasonData is the data of an error with a reason.
type ReasonData struct {
	Reason Reason `json:"reason"`
}

// Scopes that are no key in [limits].
const (
	ScopeRequestBytes = "request_bytes"
	ScopeMaxSessions  = "max_sessions"
	ScopeDraining     = "draining"
)

// OverloadData is the data of every Overload error of the pod's own. Limit, Used
// and Size are in the scope's unit: bytes or a count.
type OverloadData struct {
	Scope      string        // the key in [limits], ScopeMaxSessions or ScopeDraining
	Limit      int64         // always told, save for ScopeDraining
	Used       int64         // what was in use when it was refused; always told, save for ScopeDraining
	Size       int64         // what was asked for; told when > 0
	RetryAfter time.Duration // told in whole milliseconds, rounded up, when > 0
}

// MarshalJSONTo writes the contract's shape.
func (d OverloadData) MarshalJSONTo(enc *jsontext.Encoder) error {
	wire := struct {
		Scope        string `json:"scope"`
		Limit        *int64 `json:"limit,omitzero"`
		Used         *int64 `json:"used,omitzero"`
		Size         int64  `json:"size,omitzero"`
		RetryAfterMS int64  `json:"retry_after_ms,omitzero"`
	}{Scope: d.Scope, Size: d.Size}
	if d.Scope != ScopeDraining {
		wire.Limit, wire.Used = &d.Limit, &d.Used
	}
	if d.RetryAfter > 0 {
		wire.RetryAfterMS = int64((d.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	}
	return json.MarshalEncode(enc, wire)
}

// Overloaded is the refusal of a limit of the pod.
func Overloaded(d OverloadData) *Error {
	return &Error{Code: Overload, Message: fmt.Sprintf("over the limit %s: %d of %d in use", d.Scope, d.Used, d.Limit), Data: d}
}

// Draining refuses new work of a pod that is stopping; retry 0 says nothing of when.
func Draining(retry time.Duration) *Error {
	return &Error{Code: Overload, Message: "the pod is draining: connect again later",
		Data: OverloadData{Scope: ScopeDraining, RetryAfter: retry}}
}

// BusyError refuses a prompt or resume while a turn runs.
func BusyError() *Error {
	return &Error{Code: Busy, Message: "the session is busy with a turn: wait for its answer or cancel it", Data: ReasonData{ReasonBusy}}
}

// SupersededError answers the former owner of a session.
func SupersededError() *Error {
	return &Error{Code: Busy, Message: "a newer connection has taken the session over", Data: ReasonData{ReasonSuperseded}}
}

// InternalError is a failure on our side of the wire.
func InternalError(reason Reason, message string) *Error {
	return &Error{Code: Internal, Message: message, Data: ReasonData{reason}}
}

// BadParams says what is wrong with the params of a request.
func BadParams(format string, args ...any) *Error {
	return &Error{Code: InvalidParams, Message: fmt.Sprintf(format, args...)}
}

// BadParamsReason is BadParams with a data.reason.
func BadParamsReason(reason Reason, format string, args ...any) *Error {
	e := BadParams(format, args...)
	e.Data = ReasonData{reason}
	return e
}

// UnknownMethod names the method of a request that nobody serves.
func UnknownMethod(method string) *Error {
	return &Error{Code: MethodNotFound, Message: "unknown method " + Show(method)}
}

// NotInitializedError refuses what needs a successful initialize first.
func NotInitializedError(method string) *Error {
	return &Error{Code: NotInitialized, Message: Show(method) + " needs a successful initialize first"}
}

// CancelledError answers a request that its sender cancelled.
func CancelledError() *Error {
	return &Error{Code: Cancelled, Message: "the request was cancelled"}
}
