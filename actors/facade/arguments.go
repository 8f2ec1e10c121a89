package facade

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// longestKey is the longest idempotency_key, in characters.
const longestKey = 128

// toolCall is the params of a tools/call as far as the facade reads them. The byte slices are ranges of the body.
type toolCall struct {
	tool      string
	arguments jsonrpc.Object // of a built-in tool
	raw       []byte         // of a direct one: as they came, nil when there are none
	state     string         // requestState of a repeat that brings an answer, in the stateless versions
	responses jsonrpc.Object // inputResponses of such a repeat
	asides
}

// asides is what a caller asks to be told beside the result of its call.
type asides struct {
	progressToken []byte // a string or a number, as it came; nil when progress is not wanted
	logLevel      string // "" when log records are not wanted
	elicits       elicits
}

func (a asides) nothing() bool { return a.progressToken == nil && a.logLevel == "" && a.elicits == 0 }

// parseToolCall reads the params of a tools/call; direct says which names beside the two built-in ones are tools. Its
// error is one of JSON-RPC: what is wrong here is wrong with the client, not with what the model asked for.
func parseToolCall(params []byte, direct func(name string) bool) (toolCall, *jsonrpc.Error) {
	object, err := jsonrpc.ParseObject(params)
	if err != nil {
		return toolCall{}, jsonrpc.BadParams("params of tools/call must be an object with a name")
	}
	if err := distinct(object, "name", "arguments", "_meta", "requestState", "inputResponses"); err != nil {
		return toolCall{}, jsonrpc.BadParams("params of tools/call: %v", err)
	}
	raw, _ := object.Get("name")
	name, ok := jsonrpc.String(raw)
	if !ok {
		return toolCall{}, jsonrpc.BadParams("params of tools/call must have a string name")
	}
	call := toolCall{tool: name, asides: readAsides(object)}
	if raw, given := object.Get("requestState"); given && !jsonrpc.IsNull(raw) {
		if call.state, ok = jsonrpc.String(raw); !ok || call.state == "" { // taken for a new call, it would be made twice
			return toolCall{}, jsonrpc.BadParams("requestState must be the one of the result that asked, not %s", kindOf(raw))
		}
	}
	if raw, given := present(object, "inputResponses"); given {
		call.responses, _ = jsonrpc.ParseObject(raw) // what is no object answers nothing, and is asked again
	}
	raw, given := object.Get("arguments")
	switch {
	case direct(name):
		call.raw = raw
	case reserved(name):
		if given && !jsonrpc.IsNull(raw) {
			if call.arguments, err = jsonrpc.ParseObject(raw); err != nil {
				return toolCall{}, jsonrpc.BadParams("arguments of %s must be an object, not %s", name, kindOf(raw))
			}
		}
	default:
		return toolCall{}, unknownTool(name, builtInTools)
	}
	return call, nil
}

func unknownTool(name string, shows offer) *jsonrpc.Error {
	if shows == ownTools {
		return jsonrpc.BadParams("unknown tool %s: tools/list says which there are", jsonrpc.Show(name))
	}
	return jsonrpc.BadParams("unknown tool %s: tools/list is complete, capabilities are run by %s", jsonrpc.Show(name), executeTool)
}

// readAsides reads the _meta of a call as the stateless versions have it; of the others the progress token counts. What is not sound in it is not wanted.
func readAsides(params jsonrpc.Object) asides {
	var a asides
	raw, _ := params.Get("_meta")
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return a
	}
	if token, ok := meta.Get("progressToken"); ok && len(token) <= jsonrpc.MaxIDBytes && !jsonrpc.IsNull(token) {
		if _, ok := jsonrpc.ParseID(token); ok {
			a.progressToken = token
		}
	}
	if level, _ := meta.Text(metaLogLevel); slices.Contains(levels, level) {
		a.logLevel = level
	}
	raw, _ = meta.Get(metaCapabilities)
	if capabilities, err := jsonrpc.ParseObject(raw); err == nil {
		a.elicits = elicitsOf(capabilities)
	}
	return a
}

// distinct refuses a member that stands twice, and two of the named ones that differ only in case: another reader, one
// that ignores case or takes the last, would see another call.
func distinct(object jsonrpc.Object, names ...string) error {
	if err := object.Unique(names...); err != nil {
		return err
	}
	for member := range object.Members() {
		for _, name := range names {
			if member != name && strings.EqualFold(member, name) {
				return fmt.Errorf("%s is no member of it: write %s", jsonrpc.Show(member), name)
			}
		}
	}
	return nil
}

// parseQuery reads the arguments of search_capabilities.
func parseQuery(arguments jsonrpc.Object) (capability.Query, *capability.Refusal) {
	var q capability.Query
	if r := onlyKnown(searchTool, arguments, "query", "limit", "cursor", "detail"); r != nil {
		return q, r
	}
	var r *capability.Refusal
	if q.Text, r = text(arguments, "query"); r != nil {
		return q, r
	}
	if q.Cursor, r = text(arguments, "cursor"); r != nil {
		return q, r
	}
	if raw, ok := present(arguments, "limit"); ok {
		limit, ok := jsonrpc.Int(raw)
		if !ok || limit < 1 || limit > 100 {
			return q, bad("limit must be an integer from 1 to 100")
		}
		q.Limit = int(limit)
	}
	detail, r := text(arguments, "detail")
	switch {
	case r != nil:
		return q, r
	case detail == "names":
		q.Names = true
	case detail != "" && detail != "full":
		return q, bad(`detail must be "full" or "names"`)
	}
	return q, nil
}

// parseExecution reads the arguments of execute_capability. Arguments of the capability itself are found as a byte range
// and nothing more.
func parseExecution(arguments jsonrpc.Object) (capability.Request, *capability.Refusal) {
	var req capability.Request
	if r := onlyKnown(executeTool, arguments, "name", "arguments", "idempotency_key"); r != nil {
		return req, r
	}
	raw, ok := present(arguments, "name")
	if !ok {
		return req, bad(nameless(arguments))
	}
	if req.Name, ok = jsonrpc.String(raw); !ok {
		return req, bad("name must be a string, an exact name from " + searchTool + ", not " + kindOf(raw))
	}
	// Whether they are an object, or text that holds one, is judged with everything else about them.
	if raw, ok := present(arguments, "arguments"); ok {
		req.Arguments = raw
	}
	key, r := text(arguments, "idempotency_key")
	switch {
	case r != nil:
		return req, r
	case utf8.RuneCountInString(key) > longestKey:
		return req, bad("idempotency_key must have at most 128 characters")
	}
	req.Key = key
	return req, nil
}

// nameless is the refusal of an execution without a name. A name that stands inside the arguments is not believed: what
// the arguments hold is for the capability.
func nameless(arguments jsonrpc.Object) string {
	text := "name is missing: it must be a string, an exact name from " + searchTool
	raw, _ := arguments.Get("arguments")
	if inner, err := jsonrpc.ParseObject(raw); err == nil && inner.Has("name") {
		text += `; put it beside "arguments", not inside: {"name": …, "arguments": {…}}`
	}
	return text
}

// onlyKnown refuses members that the tool does not have: the likely ones are a capability's own arguments, put one level
// too high, and a call without them might do another thing than was meant. It refuses repeated ones too.
func onlyKnown(tool string, arguments jsonrpc.Object, names ...string) *capability.Refusal {
	if err := distinct(arguments, names...); err != nil {
		return bad(tool + ": " + err.Error())
	}
members:
	for name := range arguments.Members() {
		for _, known := range names {
			if name == known {
				continue members
			}
		}
		hint := ""
		if tool == executeTool {
			hint = "; a capability's own arguments go into arguments"
		}
		return bad(tool + " has no argument " + jsonrpc.Show(name) + hint)
	}
	return nil
}

// present finds a member that is there and not null: a null stands for a member that was left out, as models write it.
func present(o jsonrpc.Object, name string) ([]byte, bool) {
	raw, ok := o.Get(name)
	return raw, ok && !jsonrpc.IsNull(raw)
}

func text(o jsonrpc.Object, name string) (string, *capability.Refusal) {
	raw, ok := present(o, name)
	if !ok {
		return "", nil
	}
	s, ok := jsonrpc.String(raw)
	if !ok {
		return "", bad(name + " must be a string, not " + kindOf(raw))
	}
	return s, nil
}

func bad(text string) *capability.Refusal {
	return &capability.Refusal{Code: capability.BadArguments, Text: text}
}

// kindOf names the kind of a JSON value for a message.
func kindOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
