package acp

import (
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// SessionParams is what the pod reads of the params that open a session:
// session/new, and session/resume, load and fork with a session id.
type SessionParams struct {
	SessionID             string   // "" for session/new
	Cwd                   string   // as sent: whether it may be used is the session's to say
	AdditionalDirectories []string // as sent
	Servers               []byte   // the array of declarations, nil when none was sent
	Meta                  []byte   // the object _meta, nil when absent or malformed
}

// MaxDirectories bounds additionalDirectories.
const MaxDirectories = 64

// ParseNew reads the params of session/new. initial is the array of the client's
// initialize, nil when it sent none: it stands in for an mcpServers that is absent,
// null or empty; without it, absent and null are invalid.
func ParseNew(params, initial []byte) (SessionParams, *jsonrpc.Error) {
	p, sent, bad := parseStart(params)
	if bad != nil {
		return SessionParams{}, bad
	}
	if p.Servers == nil && sent != nil && !jsonrpc.IsNull(sent) {
		return SessionParams{}, jsonrpc.BadParams("mcpServers must be an array")
	}
	if initial != nil && isEmptyArray(p.Servers) {
		p.Servers = initial
	}
	if p.Servers == nil {
		return SessionParams{}, jsonrpc.BadParams("mcpServers is required: send an array, [] for none")
	}
	return p, nil
}

// ParseResume reads the params of session/resume, load and fork. Only an array
// re-declares the client's whole set, and withdraws what it does not name; anything
// else in its place, or nothing, leaves the set alone and gives nil Servers.
func ParseResume(params []byte) (SessionParams, *jsonrpc.Error) {
	id, bad := ParseSessionID(params)
	if bad != nil {
		return SessionParams{}, bad
	}
	p, _, bad := parseStart(params)
	if bad != nil {
		return SessionParams{}, bad
	}
	p.SessionID = id
	return p, nil
}

// ParseSessionID reads sessionId of any method's params. It must be a string;
// whether it is canonical and known is the caller's to check.
func ParseSessionID(params []byte) (string, *jsonrpc.Error) {
	o, bad := paramsObject(params, "sessionId")
	if bad != nil {
		return "", bad
	}
	raw, ok := o.Get("sessionId")
	if !ok {
		return "", jsonrpc.BadParams("sessionId is required")
	}
	id, ok := jsonrpc.String(raw)
	if !ok {
		return "", jsonrpc.BadParams("sessionId must be a string")
	}
	return id, nil
}

// UnknownSession refuses an id that is malformed, unknown or somebody else's: the
// three read the same.
func UnknownSession(id string) *jsonrpc.Error {
	return jsonrpc.BadParams("unknown session %s", SessionTag(id))
}

func parseStart(params []byte) (p SessionParams, servers []byte, bad *jsonrpc.Error) {
	o, bad := paramsObject(params, "cwd", "additionalDirectories", "mcpServers", "_meta")
	if bad != nil {
		return p, nil, bad
	}
	raw, ok := o.Get("cwd")
	if !ok {
		return p, nil, jsonrpc.BadParamsReason(jsonrpc.ReasonCwd, "cwd is required: send an absolute path")
	}
	if p.Cwd, ok = jsonrpc.String(raw); !ok || p.Cwd == "" {
		return p, nil, jsonrpc.BadParamsReason(jsonrpc.ReasonCwd, "cwd must be a string that is an absolute path")
	}
	if p.AdditionalDirectories, bad = directories(o); bad != nil {
		return p, nil, bad
	}
	servers, _ = o.Get("mcpServers")
	if jsonrpc.IsArray(servers) {
		p.Servers = servers
	}
	if raw, _ := o.Get("_meta"); jsonrpc.IsObject(raw) {
		p.Meta = raw
	}
	return p, servers, nil
}

func directories(o jsonrpc.Object) ([]string, *jsonrpc.Error) {
	raw, ok := o.Get("additionalDirectories")
	if !ok || jsonrpc.IsNull(raw) {
		return nil, nil
	}
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return nil, jsonrpc.BadParamsReason(jsonrpc.ReasonCwd, "additionalDirectories must be an array of absolute paths")
	}
	var dirs []string
	for n, e := range elements {
		dir, ok := jsonrpc.String(e)
		if !ok || dir == "" {
			return nil, jsonrpc.BadParamsReason(jsonrpc.ReasonCwd, "additionalDirectories[%d] must be a string that is an absolute path", n)
		}
		if n == MaxDirectories {
			return nil, jsonrpc.BadParamsReason(jsonrpc.ReasonCwd, "more than %d additionalDirectories", MaxDirectories)
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

func isEmptyArray(raw []byte) bool {
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return true // absent
	}
	for range elements {
		return false
	}
	return true
}
