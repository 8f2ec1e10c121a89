package facade

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// exchange is one message and its answer. It lives on the goroutine that brought it.
type exchange struct {
	front   *front
	out     outlet
	ctx     context.Context // whose end is that of the HTTP request, or of the relay
	header  http.Header
	streams bool // the client reads messages before the answer
	caller  capability.Caller
	version string // of the header, "" when there is none
	lease   *kernel.Lease
	// Of a message that came in a line: whose ids these are, and what is told when the message has had its effect on the order of
	// things. lines: there is no header.
	peer  string
	begun func()
	lines bool
	mute  bool // it is owed no answer

	id        jsonrpc.ID
	stateless bool
	direct    string // the direct tool that is called, else ""
}

// goesOn says that the order of messages does not matter for what is still to be done.
func (x *exchange) goesOn() {
	if x.begun != nil {
		x.begun()
	}
}

// payer is the account of the caller, or the facade's where a caller has none.
func (x *exchange) payer() *kernel.Account {
	if x.caller.Account != nil {
		return x.caller.Account
	}
	return x.front.account
}

// release gives the body's bytes back, unless they went on with a call.
func (x *exchange) release() { x.lease.Release() }

// serve reads the message in the body and answers it.
func (x *exchange) serve(body []byte) {
	body, ok := x.repaired(body)
	if !ok {
		return
	}
	frame, bad := jsonrpc.Scan(body)
	if bad != nil {
		x.mute = x.lines && bad.Silent()
		x.reject(bad.ID, &fault{status: http.StatusBadRequest, reason: "malformed", err: bad.Err()})
		return
	}
	if frame.Variant != "" { // another reader, one that ignores case, would see another message
		x.reject(jsonrpc.NullID(), badRequest("malformed", jsonrpc.InvalidRequest, jsonrpc.Show(frame.Variant)+" is no member of a message: write "+strings.ToLower(frame.Variant)))
		return
	}
	x.mute = x.lines && frame.Kind != jsonrpc.Request
	switch {
	case frame.Kind != jsonrpc.Request && x.version != "" && !slices.Contains(versions, x.version):
		x.reject(jsonrpc.NullID(), unsupported(x.version))
		return
	case frame.Kind == jsonrpc.Notification:
		x.notified(frame)
		return
	case frame.Kind == jsonrpc.Response:
		x.answeredBy(frame)
		return
	case frame.ID.IsNull():
		x.reject(jsonrpc.NullID(), badRequest("null_id", jsonrpc.InvalidRequest, "the id of a request must be a string or an integer"))
		return
	}
	x.id = frame.ID
	stateless, mismatch := x.era(frame)
	if mismatch != nil {
		x.reject(x.id, mismatch)
		return
	}
	x.stateless = stateless
	switch {
	case frame.Method == "tools/call":
		x.call(frame.Params)
	case frame.Method == "tools/list":
		x.goesOn()
		x.listTools(frame.Params)
	case x.stateless && lists[frame.Method] != "":
		x.empty(lists[frame.Method], frame.Params)
	case negotiated[frame.Method] && len(frame.Params) > smallBody:
		// mcp-go reads such a message several times over, into memory that nobody pays for.
		x.reject(x.id, &fault{status: x.errorStatus(jsonrpc.InvalidParams), reason: "long_params", err: jsonrpc.BadParams("params of %s are too long", frame.Method)})
	case frame.Method == "initialize" && !x.stateless && !x.caller.Anonymous():
		x.introduced(frame.Params)
		x.negotiate(frame)
	case negotiated[frame.Method]:
		x.negotiate(frame)
	case frame.Method == "logging/setLevel" && !x.stateless && !x.caller.Anonymous():
		x.setLevel(frame.Params)
	default:
		x.reject(x.id, &fault{status: x.errorStatus(jsonrpc.MethodNotFound), reason: "unknown_method", err: jsonrpc.UnknownMethod(frame.Method)})
	}
}

// repaired replaces bytes that are no UTF-8, as everything behind the facade relies on text; each may become three.
func (x *exchange) repaired(body []byte) ([]byte, bool) {
	if utf8.Valid(body) {
		return body, true
	}
	x.front.count("not_utf8")
	more, err := x.lease.Account().Acquire(2 * int64(len(body)))
	if err != nil {
		x.out.full(x.id, err)
		return nil, false
	}
	fixed, _ := jsonrpc.ValidUTF8(body)
	x.lease.Release()
	more.Shrink(int64(len(fixed)))
	x.lease = more
	return fixed, true
}

// notified takes a notification: all are accepted, and one means something.
func (x *exchange) notified(frame jsonrpc.Frame) {
	if frame.Method == "notifications/cancelled" {
		x.cancelled(frame.Params)
	}
	x.out.taken()
}

// cancelled tells the caller's desk that the caller does not want an answer any more. It is matched there by the token
// and the id, so nobody can name another's call; without a token there is nothing to match by. Agents also cancel calls
// that were answered long ago, which nobody is told of.
func (x *exchange) cancelled(params []byte) {
	if x.caller.Anonymous() {
		x.front.count("anonymous_cancel")
		return
	}
	object, err := jsonrpc.ParseObject(params)
	if err != nil {
		x.front.count("malformed_cancel")
		return
	}
	raw, _ := object.Get("requestId")
	id, ok := jsonrpc.ParseID(raw)
	if !ok || id.IsNull() {
		x.front.count("malformed_cancel")
		return
	}
	// Behind the call that it is about, which may be waiting in the same queue; only a full one is overtaken.
	desk, cancel := x.caller.Desk.Current(), capability.CancelRequest{Token: x.caller.Token, RequestID: x.peer + id.Key()}
	if desk.Tell(cancel) != nil && desk.Signal(cancel) != nil {
		x.front.count("lost_cancel")
	}
}

// negotiationCopies is how often mcp-go has the params of a message at once: as bytes, decoded, and in a copy of each.
const negotiationCopies = 8

// negotiate answers what is about the server itself.
func (x *exchange) negotiate(frame jsonrpc.Frame) {
	copies, err := x.payer().Acquire(negotiationCopies * int64(len(frame.Params)))
	if err != nil && x.payer() != x.front.account { // an agent whose session is full can still shake hands
		copies, err = x.front.account.Acquire(negotiationCopies * int64(len(frame.Params)))
	}
	if err != nil {
		x.out.full(x.id, err)
		return
	}
	defer copies.Release()
	status, result, failure, err := x.front.negotiator.answer(x.ctx, x.manner(), x.header, frame.Method, frame.Params)
	switch {
	case err != nil:
		x.front.log.Error("a negotiation failed", "method", frame.Method, "error", err)
		x.reject(x.id, &fault{status: http.StatusOK, reason: "internal", err: jsonrpc.InternalError(jsonrpc.ReasonInternal, "the request could not be answered")})
	case failure != nil:
		x.front.count("negotiation")
		_ = x.out.answer(errorAnswer(x.id, failure), status)
	default:
		_ = x.out.answer(resultAnswer(x.id, result, false), http.StatusOK)
	}
}

// manner is how the facade introduces itself to this request.
func (x *exchange) manner() manner {
	switch {
	case x.stateless:
		return perQuery
	case x.caller.Anonymous():
		return plain
	}
	return known
}

// reject answers with an error, and counts it.
func (x *exchange) reject(id jsonrpc.ID, bad *fault) {
	x.front.count(bad.reason)
	if !x.mute {
		_ = x.out.answer(errorAnswer(id, bad.err.AppendObject(nil)), bad.status)
	}
}

// errorStatus is the HTTP status of a JSON-RPC error: the stateless versions mirror it, the older ones say 200.
func (x *exchange) errorStatus(code int) int {
	switch {
	case !x.stateless:
		return http.StatusOK
	case code == jsonrpc.MethodNotFound:
		return http.StatusNotFound
	case code == jsonrpc.InvalidParams || code == jsonrpc.InvalidRequest:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
