package conform

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// message is one frame of the pod.
type message struct {
	jsonrpc.Frame
	raw []byte
	nth int // its place among the frames of its connection
}

// id is the literal of the message's id.
func (m message) id() string { return string(m.ID.Raw()) }

// fault is the error of a response, nil when it is none.
func (m message) fault() *jsonrpc.Error {
	if m.Error == nil {
		return nil
	}
	return jsonrpc.ParseError(m.Error)
}

// show says what a message is, for the report.
func (m message) show() string {
	switch {
	case m.Error != nil:
		e := m.fault()
		data := ""
		if e.RawData != nil {
			data = ", data " + jsonrpc.Show(string(e.RawData))
		}
		return fmt.Sprintf("%d to id %.40s%s", e.Code, m.id(), data)
	case m.Kind == jsonrpc.Response:
		return fmt.Sprintf("result %s to id %.40s", jsonrpc.Show(string(m.Result)), m.id())
	case m.Kind == jsonrpc.Request:
		return "the request " + jsonrpc.Show(m.Method)
	}
	return "the notification " + jsonrpc.Show(m.Method)
}

// lenient reads JSON that a peer may have written oddly: what is only carried is not judged here either.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decode reads raw into a T; what does not fit is the zero value and false.
func decode[T any](raw []byte) (value T, ok bool) {
	if raw == nil {
		return value, false
	}
	err := json.Unmarshal(raw, &value, lenient)
	return value, err == nil
}

// encode writes params: a string is JSON that was written by hand.
func encode(value any) []byte {
	if text, ok := value.(string); ok {
		return []byte(text)
	}
	raw, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(err) // the rows' own values
	}
	return raw
}

type object = map[string]any
