package acp

import (
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// CheckPrompt checks the blocks of session/prompt: text and resource_link always,
// image, audio and resource when the agent takes them. It refuses a prompt of
// nothing or of white space. The blocks themselves reach the agent as they came.
func CheckPrompt(params []byte, takes PromptCapabilities) *jsonrpc.Error {
	o, bad := paramsObject(params, "prompt")
	if bad != nil {
		return bad
	}
	raw, ok := o.Get("prompt")
	if !ok {
		return jsonrpc.BadParams("prompt is required: send an array of content blocks")
	}
	blocks, err := jsonrpc.Elements(raw)
	if err != nil {
		return jsonrpc.BadParams("prompt must be an array of content blocks")
	}
	said := false
	for n, block := range blocks {
		says, bad := checkBlock(n, block, takes)
		if bad != nil {
			return bad
		}
		said = said || says
	}
	if !said {
		return jsonrpc.BadParams("the prompt is empty: send some text")
	}
	return nil
}

// checkBlock reports whether the block says something, that is, whether it is more
// than white space.
func checkBlock(n int, block []byte, takes PromptCapabilities) (bool, *jsonrpc.Error) {
	o, err := jsonrpc.ParseObject(block)
	if err != nil {
		return false, jsonrpc.BadParams("prompt[%d] must be an object with a type", n)
	}
	if err := o.Unique("type", "text", "name", "uri"); err != nil {
		return false, jsonrpc.BadParams("prompt[%d]: %v", n, err)
	}
	raw, ok := o.Get("type")
	if !ok {
		return false, jsonrpc.BadParams("prompt[%d] has no type", n)
	}
	kind, ok := jsonrpc.String(raw)
	if !ok {
		return false, jsonrpc.BadParams("prompt[%d].type must be a string", n)
	}
	var taken bool
	switch kind {
	case BlockText:
		text, bad := blockText(o, n, kind, "text")
		return strings.TrimSpace(text) != "", bad
	case BlockResourceLink:
		for _, name := range []string{"name", "uri"} {
			if _, bad := blockText(o, n, kind, name); bad != nil {
				return false, bad
			}
		}
		return true, nil
	case BlockImage:
		taken = takes.Image
	case BlockAudio:
		taken = takes.Audio
	case BlockResource:
		taken = takes.EmbeddedContext
	default:
		return false, jsonrpc.BadParams("prompt[%d] is of the unknown type %s: send text or resource_link", n, jsonrpc.Show(kind))
	}
	if !taken {
		return false, jsonrpc.BadParams("prompt[%d] is of type %s, which this agent does not take: send text or resource_link", n, kind)
	}
	return true, nil
}

func blockText(o jsonrpc.Object, n int, kind, name string) (string, *jsonrpc.Error) {
	raw, ok := o.Get(name)
	if !ok {
		return "", jsonrpc.BadParams("prompt[%d] of type %s has no %s", n, kind, name)
	}
	text, ok := jsonrpc.String(raw)
	if !ok {
		return "", jsonrpc.BadParams("prompt[%d].%s must be a string", n, name)
	}
	return text, nil
}

// ParseStopReason reads the result of session/prompt.
func ParseStopReason(result []byte) (string, bool) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return "", false
	}
	raw, _ := o.Get("stopReason")
	return jsonrpc.String(raw)
}

// StopResult is the result of a prompt that the pod answers itself.
func StopResult(reason string) []byte {
	return append(jsonrpc.AppendString([]byte(`{"stopReason":`), reason), '}')
}

// UpdateKind reads update.sessionUpdate of the params of session/update; "" when
// there is none. Unknown kinds are carried like the known ones.
func UpdateKind(params []byte) string {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return ""
	}
	update, ok := member(o, "update")
	if !ok {
		return ""
	}
	kind, _ := update.Text("sessionUpdate")
	return kind
}
