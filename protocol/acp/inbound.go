package acp

import (
	"errors"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// An Inbound is what a client sends to us through a tunnel: a notification of its
// server, or a request.
type Inbound struct {
	Target    string // the connection id, or the server id in generation C
	RequestID string // generation C: the active request that it belongs to
	Stateless bool   // generation C
	Method    string // the inner method
	Params    []byte // the inner params; nil when absent or null
}

// ErrInbound says that the params of a client's mcp/message cannot be read.
var ErrInbound = errors.New("not the params of mcp/message")

// IsInbound reports whether method carries an inner message in any generation.
func IsInbound(method string) bool { return method == MethodMCPMessage || method == MethodMCPMessage0 }

// ParseInbound reads a client's mcp/message in whatever generation it came: by
// connectionId, or by serverId and requestId.
func ParseInbound(method string, params []byte) (Inbound, error) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return Inbound{}, fmt.Errorf("%w: %w", ErrInbound, err)
	}
	return readInbound(method, o, method == MethodMCPMessage && o.Has("serverId") && !o.Has("connectionId"))
}

func parseInbound(method string, params []byte, want string, stateless bool) (Inbound, error) {
	if method != want {
		return Inbound{}, fmt.Errorf("%w: the method is %s", ErrInbound, jsonrpc.Show(method))
	}
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return Inbound{}, fmt.Errorf("%w: %w", ErrInbound, err)
	}
	return readInbound(method, o, stateless)
}

func readInbound(method string, o jsonrpc.Object, stateless bool) (Inbound, error) {
	if !IsInbound(method) {
		return Inbound{}, fmt.Errorf("%w: the method is %s", ErrInbound, jsonrpc.Show(method))
	}
	if err := o.Unique("connectionId", "serverId", "requestId", "method", "params"); err != nil {
		return Inbound{}, fmt.Errorf("%w: %w", ErrInbound, err)
	}
	in := Inbound{Stateless: stateless}
	var err error
	if stateless {
		if in.Target, err = needed(o, "serverId"); err == nil {
			in.RequestID, err = needed(o, "requestId")
		}
	} else {
		in.Target, err = needed(o, "connectionId")
	}
	if err == nil {
		in.Method, err = needed(o, "method")
	}
	if err != nil {
		return Inbound{}, err
	}
	if raw, _ := o.Get("params"); !jsonrpc.IsNull(raw) {
		in.Params = raw
	}
	return in, nil
}

func needed(o jsonrpc.Object, name string) (string, error) {
	raw, _ := o.Get(name)
	text, ok := jsonrpc.String(raw)
	if !ok || text == "" {
		return "", fmt.Errorf("%w: %s must be a string that is not empty", ErrInbound, name)
	}
	return text, nil
}
