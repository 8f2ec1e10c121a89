package facade

import (
	"slices"
	"strings"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// elicits says which questions a client can put to its user.
type elicits uint8

const (
	elicitsForms elicits = 1 << iota // a form
	elicitsURLs                      // an address that the user is to open
)

// elicitsOf reads the capabilities that a client declares. A client of the first version with elicitation says {}, which
// means forms.
func elicitsOf(capabilities jsonrpc.Object) elicits {
	raw, _ := capabilities.Get("elicitation")
	object, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return 0
	}
	var e elicits
	if form, _ := object.Get("form"); jsonrpc.IsObject(form) || object.Len() == 0 {
		e |= elicitsForms
	}
	if url, _ := object.Get("url"); jsonrpc.IsObject(url) {
		e |= elicitsURLs
	}
	return e
}

// questionFor is a server's question as the client's user gets it: as the server wrote it, with the name of who asks
// before the message. ok is false for one that this client cannot put, or that nobody should.
func questionFor(e capability.Elicitation, can elicits) (params []byte, ok bool) {
	object, err := jsonrpc.ParseObject(e.Params)
	if err != nil || len(e.Params) > longestQuestion || object.Unique("message", "mode", "url", "requestedSchema", "task") != nil {
		return nil, false
	}
	message, err := object.Text("message")
	if err != nil {
		return nil, false
	}
	mode, err := object.Text("mode")
	switch {
	case err != nil:
		return nil, false
	case mode == "" || mode == "form":
		if schema, _ := object.Get("requestedSchema"); can&elicitsForms == 0 || !jsonrpc.IsObject(schema) {
			return nil, false
		}
	case mode == "url":
		if url, err := object.Text("url"); err != nil || can&elicitsURLs == 0 || !strings.HasPrefix(url, "https://") {
			return nil, false
		}
	default:
		return nil, false
	}
	// A task would be a promise to keep the question after the call.
	return object.Apply(nil, jsonrpc.Edit{Name: "message", Value: jsonrpc.AppendString(nil, e.Provider+" asks: "+message)}, jsonrpc.Edit{Name: "task"}), true
}

// Answers that the facade gives itself: to a question that is not put, and to one that nobody answered in time.
var (
	declined  = []byte(`{"action":"decline"}`)
	cancelled = []byte(`{"action":"cancel"}`)
)

func decline(answer func(result []byte, failed *jsonrpc.Error)) { answer(declined, nil) }

// isAnswer reports whether a client's result answers an elicitation.
func isAnswer(result []byte) bool {
	object, err := jsonrpc.ParseObject(result)
	if err != nil || object.Unique("action", "content") != nil {
		return false
	}
	action, err := object.Text("action")
	return err == nil && slices.Contains([]string{"accept", "decline", "cancel"}, action)
}

// atLeast reports whether a log record is as severe as a level.
func atLeast(params []byte, level string) bool {
	object, err := jsonrpc.ParseObject(params)
	if err != nil {
		return false
	}
	told, err := object.Text("level")
	return err == nil && slices.Index(levels, told) >= slices.Index(levels, level)
}
