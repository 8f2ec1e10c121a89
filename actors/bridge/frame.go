package bridge

import (
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Why a line is left out. The set is closed; the text labels a counter.
const (
	notUTF8      reason = "not_utf8"
	notJSON      reason = "not_json"
	otherChannel reason = "channel_id"
)

// messageOf finds the MCP message in a line: the line itself, or the member `request` of {channel_id, request}. Both may name the
// channel, and must not name another one than that of the session: a name in a frame is a claim, and whose connection it is, is known.
func messageOf(line []byte, session string) ([]byte, reason) {
	switch {
	case !utf8.Valid(line):
		return nil, notUTF8
	case !jsonrpc.Valid(line):
		return nil, notJSON
	}
	outer, err := jsonrpc.ParseObject(line)
	if err != nil {
		return line, "" // a batch, or no message at all: the facade says so
	}
	if !agrees(outer, session) {
		return nil, otherChannel
	}
	request, ok := outer.Get("request")
	if !ok || outer.Has("method") || outer.Has("jsonrpc") {
		return line, ""
	}
	inner, err := jsonrpc.ParseObject(request)
	if err != nil || outer.Unique("request") != nil {
		return nil, notJSON
	}
	if !agrees(inner, session) {
		return nil, otherChannel
	}
	return request, ""
}

// agrees tells whether an object names no channel, or the session's.
func agrees(o jsonrpc.Object, session string) bool {
	raw, named := o.Get("channel_id")
	if !named {
		return true
	}
	channel, ok := jsonrpc.String(raw)
	return ok && o.Unique("channel_id") == nil && bare(channel) == bare(session)
}

// bare is the id that a channel and its session have in common: acp:acp_<uuid>, acp_<uuid> and sess_<uuid> are one.
func bare(id string) string {
	id = strings.TrimPrefix(id, "acp:")
	for _, prefix := range []string{"acp_", "sess_"} {
		if rest, ok := strings.CutPrefix(id, prefix); ok {
			return rest
		}
	}
	return id
}
