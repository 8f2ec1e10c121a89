package acp

import (
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// A Notification is a frame without an id, still without its envelope.
type Notification struct {
	Method string
	Params []byte
}

// CancelRequest is the $/cancel_request for the request with that id.
func CancelRequest(id jsonrpc.ID) Notification {
	return Notification{MethodCancelRequest, requestIDParams(id)}
}

// ParseCancelRequest reads the params of $/cancel_request.
func ParseCancelRequest(params []byte) (jsonrpc.ID, bool) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil || o.Unique("requestId") != nil {
		return jsonrpc.ID{}, false
	}
	raw, _ := o.Get("requestId")
	return jsonrpc.ParseID(raw)
}

// SessionCancel is the session/cancel for the session with that id.
func SessionCancel(sessionID string) Notification {
	return Notification{MethodSessionCancel, append(jsonrpc.AppendString([]byte(`{"sessionId":`), sessionID), '}')}
}

func requestIDParams(id jsonrpc.ID) []byte {
	return append(id.Append([]byte(`{"requestId":`)), '}')
}
