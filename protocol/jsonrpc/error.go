package jsonrpc

import (
	"encoding/json/v2"
	"fmt"
	"strconv"
)

// The codes of the pod's errors. Those that end in Request, Found and so on are
// JSON-RPC's; the rest is ACP's or the contract's.
const (
	CodeParse      = -32700 // not JSON text; see ParseError for reading a peer's error
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	Internal       = -32603 // data.reason is a Reason
	Overload       = -32000 // data is an OverloadData: a limit of the pod
	Busy           = -32001 // data.reason is ReasonBusy or ReasonSuperseded
	NotInitialized = -32002
	Cancelled      = -32800
)

// An Error is the error of a request: of our own, with Code, Message and Data, or
// of a peer, read by ParseError, which leaves again as it came.
type Error struct {
	Code    int
	Message string
	Data    any    // marshalled when RawData is nil; nil leaves the member out
	RawData []byte // one JSON text, spliced

	raw []byte // the peer's whole object
}

// ParseError reads the error object of a peer and keeps its bytes, which alias raw.
// An object that is no JSON-RPC error (no integer code, no string message) becomes
// an Internal error that carries what came as its data.
func ParseError(raw []byte) *Error {
	o, err := ParseObject(raw)
	if err == nil {
		codeRaw, _ := o.Get("code")
		messageRaw, _ := o.Get("message")
		code, codeOK := Int(codeRaw)
		message, messageOK := String(messageRaw)
		if codeOK && messageOK {
			data, _ := o.Get("data")
			return &Error{Code: int(code), Message: message, RawData: data, raw: raw}
		}
	}
	e := &Error{Code: Internal, Message: "the peer's error has no code and message"}
	if Valid(raw) {
		e.RawData = raw
	}
	return e
}

// Error is one line; what a peer wrote is quoted and cut.
func (e *Error) Error() string {
	if e.raw != nil {
		return "error " + strconv.Itoa(e.Code) + ": " + Show(e.Message)
	}
	return "error " + strconv.Itoa(e.Code) + ": " + e.Message
}

// Raw is the object as the peer sent it; nil for an error of our own.
func (e *Error) Raw() []byte { return e.raw }

// Size is about how many bytes the error's object has.
func (e *Error) Size() int { return len(e.raw) + len(e.Message) + len(e.RawData) }

// Reason is data.reason, "" when there is none.
func (e *Error) Reason() string {
	if d, ok := e.Data.(ReasonData); ok {
		return string(d.Reason)
	}
	o, err := ParseObject(e.RawData)
	if err != nil {
		return ""
	}
	raw, _ := o.Get("reason")
	s, _ := String(raw)
	return s
}

// AppendObject appends the error object.
func (e *Error) AppendObject(dst []byte) []byte {
	if e.raw != nil {
		return append(dst, e.raw...)
	}
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if data := e.data(); data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, data...)
	}
	return append(dst, '}')
}

func (e *Error) data() []byte {
	if e.RawData != nil || e.Data == nil {
		return e.RawData
	}
	data, err := json.Marshal(e.Data)
	if err != nil { // a Data of ours that cannot be written: a fault in our code, told in place of it
		data, _ = json.Marshal(fmt.Sprintf("data of type %T: %v", e.Data, err))
	}
	return data
}
