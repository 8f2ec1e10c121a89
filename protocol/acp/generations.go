package acp

import (
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// connecting is generations A and B: they differ in the name of the server's id, and
// in the older one's own way to cancel.
type connecting struct{ name, idMember string }

func (g connecting) Name() string  { return g.name }
func (connecting) Stateless() bool { return false }

func (g connecting) Connect(d Declared) (string, []byte, bool) {
	return MethodMCPConnect, one(g.idMember, d.ID), true
}

func (connecting) ParseConnected(result []byte) (string, error) {
	return parseConnected(result, "connectionId")
}

func (connecting) Message(target, _, method string, params []byte) (string, []byte) {
	return MethodMCPMessage, messageTo(target, method, params)
}

func (connecting) Head(target, _, method string) (string, []byte) {
	return MethodMCPMessage, appendHead(connectionAddress(target), method)
}

func (connecting) Unwrap(result []byte) ([]byte, *jsonrpc.Error) { return result, nil }

func (connecting) Disconnect(target string) (string, []byte, bool, bool) {
	return MethodMCPDisconnect, one("connectionId", target), true, true
}

func (g connecting) CancelFrames(outer jsonrpc.ID) []Notification {
	frames := []Notification{CancelRequest(outer)}
	if g.name == "A" {
		frames = append(frames, Notification{MethodMCPCancel, requestIDParams(outer)})
	}
	return frames
}

func (connecting) ParseInbound(method string, params []byte) (Inbound, error) {
	return parseInbound(method, params, MethodMCPMessage, false)
}

// gen0 is the first one: underscores, snake case, and a disconnect that is a
// notification. Its server id is the whole acp: url.
type gen0 struct{}

func (gen0) Name() string    { return "0" }
func (gen0) Stateless() bool { return false }

func (gen0) Connect(d Declared) (string, []byte, bool) {
	return MethodMCPConnect0, one("acp_id", d.ID), true
}

func (gen0) ParseConnected(result []byte) (string, error) {
	return parseConnected(result, "connection_id")
}

func (gen0) Message(target, _, method string, params []byte) (string, []byte) {
	return MethodMCPMessage0, messageTo(target, method, params)
}

func (gen0) Head(target, _, method string) (string, []byte) {
	return MethodMCPMessage0, appendHead(connectionAddress(target), method)
}

func (gen0) Unwrap(result []byte) ([]byte, *jsonrpc.Error) { return result, nil }

func (gen0) Disconnect(target string) (string, []byte, bool, bool) {
	return MethodMCPDisconnect0, one("connection_id", target), false, true
}

func (gen0) CancelFrames(outer jsonrpc.ID) []Notification {
	return []Notification{CancelRequest(outer)}
}

func (gen0) ParseInbound(method string, params []byte) (Inbound, error) {
	return parseInbound(method, params, MethodMCPMessage0, false)
}

// genC has no connection: a message names the server and a request of the caller's
// making, and its answer holds the inner answer, error or result.
type genC struct{}

func (genC) Name() string    { return "C" }
func (genC) Stateless() bool { return true }

func (genC) Connect(Declared) (string, []byte, bool) { return "", nil, false }

func (genC) ParseConnected([]byte) (string, error) { return "", ErrConnected }

func (genC) Message(target, requestID, method string, params []byte) (string, []byte) {
	return MethodMCPMessage, appendInner(serverAddress(target, requestID), method, params)
}

func (genC) Head(target, requestID, method string) (string, []byte) {
	return MethodMCPMessage, appendHead(serverAddress(target, requestID), method)
}

func serverAddress(target, requestID string) []byte {
	dst := jsonrpc.AppendString([]byte(`{"serverId":`), target)
	dst = append(dst, `,"requestId":`...)
	return jsonrpc.AppendString(dst, requestID)
}

func (genC) Unwrap(result []byte) ([]byte, *jsonrpc.Error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return nil, jsonrpc.InternalError(jsonrpc.ReasonInternal, "the client's answer is no envelope with result or error")
	}
	if err := o.Unique("result", "error"); err != nil {
		return nil, jsonrpc.InternalError(jsonrpc.ReasonInternal, "the client's answer: "+err.Error())
	}
	if inner, ok := o.Get("error"); ok && !jsonrpc.IsNull(inner) {
		return nil, jsonrpc.ParseError(inner)
	}
	inner, ok := o.Get("result")
	if !ok {
		return nil, jsonrpc.InternalError(jsonrpc.ReasonInternal, "the client's answer has neither result nor error")
	}
	return inner, nil
}

func (genC) Disconnect(string) (string, []byte, bool, bool) { return "", nil, false, false }

func (genC) CancelFrames(outer jsonrpc.ID) []Notification {
	return []Notification{CancelRequest(outer)}
}

func (genC) ParseInbound(method string, params []byte) (Inbound, error) {
	return parseInbound(method, params, MethodMCPMessage, true)
}

func messageTo(target, method string, params []byte) []byte {
	return appendInner(connectionAddress(target), method, params)
}

func connectionAddress(target string) []byte {
	return jsonrpc.AppendString([]byte(`{"connectionId":`), target)
}
