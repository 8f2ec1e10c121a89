package acp

import (
	"errors"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// MaxConnectionID is the longest connectionId in bytes that a client may give.
const MaxConnectionID = 1024

// A Codec is one wire generation of MCP over ACP. Codecs are stateless and
// comparable. A target is what messages are addressed to: the connection id of the
// generations that connect, the server id of the one that does not.
type Codec interface {
	// Name is 0, A, B or C.
	Name() string
	// Stateless reports that there is no connection and no MCP handshake: requests
	// carry the protocol version in their own _meta.
	Stateless() bool
	// Connect gives the request that opens a connection to d; ok is false in a
	// generation that has none: then d.ID is the target.
	Connect(d Declared) (method string, params []byte, ok bool)
	// ParseConnected reads the connection id from the answer: 1 to MaxConnectionID bytes.
	ParseConnected(result []byte) (connectionID string, err error)
	// Message wraps an inner request or notification. requestID, which the caller
	// makes and never uses twice for one target, is told in generation C only. nil params leave
	// the member out.
	Message(target, requestID, method string, params []byte) (outerMethod string, outer []byte)
	// Head is Message for a request whose params are written apart: what stands before
	// them. One closing brace stands behind them.
	Head(target, requestID, method string) (outerMethod string, head []byte)
	// Unwrap takes the inner result out of the outer one, as a range of it. Where the
	// inner error travels in the result, it is returned; a result that is no
	// envelope is an Internal error.
	Unwrap(result []byte) (inner []byte, rpcErr *jsonrpc.Error)
	// Disconnect gives what closes the connection: a request or a notification; ok is
	// false where there is nothing to close.
	Disconnect(target string) (method string, params []byte, request, ok bool)
	// CancelFrames are the notifications that cancel the outer request with that id.
	CancelFrames(outer jsonrpc.ID) []Notification
	// ParseInbound reads what a client sends in this generation; see ParseInbound.
	ParseInbound(method string, params []byte) (Inbound, error)
}

// The generations.
var (
	Gen0 Codec = gen0{}
	GenA Codec = connecting{name: "A", idMember: "acpId"}
	GenB Codec = connecting{name: "B", idMember: "serverId"}
	GenC Codec = genC{}
)

// CodecFor is the codec to begin with for a declaration; nil for a form that is not
// served over ACP.
func CodecFor(d Declared) Codec {
	switch d.Form {
	case FormID:
		return GenA
	case FormServerID:
		return GenB
	case FormURL:
		return Gen0
	}
	return nil
}

// Fallback is the codec to go on with when connect was answered with e: the two
// generations that declare a serverId are told apart only by whether the client
// knows the method mcp/connect.
func Fallback(c Codec, e *jsonrpc.Error) (Codec, bool) {
	if c == GenB && e != nil && e.Code == jsonrpc.MethodNotFound {
		return GenC, true
	}
	return nil, false
}

// BindingFailure reports that the error e of an outer request comes from the binding
// and not from the MCP server: in generation C every one does.
func BindingFailure(c Codec, e *jsonrpc.Error) bool { return e != nil && c.Stateless() }

// ErrConnected says that the answer to connect has no usable connection id.
var ErrConnected = errors.New("the answer to connect has no usable connection id")

func parseConnected(result []byte, member string) (string, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", fmt.Errorf("%w: the result is no object", ErrConnected)
	}
	if err := o.Unique(member); err != nil {
		return "", fmt.Errorf("%w: %w", ErrConnected, err)
	}
	raw, ok := o.Get(member)
	if !ok {
		return "", fmt.Errorf("%w: %s is missing", ErrConnected, member)
	}
	id, ok := jsonrpc.String(raw)
	switch {
	case !ok:
		return "", fmt.Errorf("%w: %s is no string", ErrConnected, member)
	case id == "":
		return "", fmt.Errorf("%w: %s is empty", ErrConnected, member)
	case len(id) > MaxConnectionID:
		return "", fmt.Errorf("%w: %s has %d bytes, more than %d", ErrConnected, member, len(id), MaxConnectionID)
	}
	return id, nil
}

// one is the object with the one member.
func one(name, value string) []byte {
	dst := jsonrpc.AppendString([]byte{'{'}, name)
	dst = append(dst, ':')
	return append(jsonrpc.AppendString(dst, value), '}')
}

// appendMethod appends the inner method behind the address.
func appendMethod(dst []byte, method string) []byte {
	return jsonrpc.AppendString(append(dst, `,"method":`...), method)
}

// appendHead appends the inner method, and what stands before its params.
func appendHead(dst []byte, method string) []byte {
	return append(appendMethod(dst, method), `,"params":`...)
}

// appendInner appends the inner method and params behind the address.
func appendInner(dst []byte, method string, params []byte) []byte {
	dst = appendMethod(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}
