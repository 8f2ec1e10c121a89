package acp

import (
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// The bounds of a client's secret, in characters.
const (
	MinClientSecret = 16
	MaxClientSecret = 128
)

// Initialize is what the pod reads of a client's initialize.
type Initialize struct {
	Requested    int    // the client's protocolVersion
	Version      int    // the negotiated one
	Servers      []byte // the array mcpServers, nil when there is none
	ClientSecret string // _meta["acpod.dev/client"]: to be hashed, never logged
	ClientName   string // clientInfo, "" when absent or malformed; a peer's text
	ClientTitle  string
	ClientBuild  string
	Capabilities []byte // the object clientCapabilities, nil when absent or malformed
}

// ParseInitialize reads the params of initialize. protocolVersion must be an integer
// literal from 0 to 65535: "1", true and 1.0 are invalid params, and so is a version
// below 1. A higher one is answered with ours.
func ParseInitialize(params []byte) (Initialize, *jsonrpc.Error) {
	o, bad := paramsObject(params, "protocolVersion", "mcpServers", "_meta")
	if bad != nil {
		return Initialize{}, bad
	}
	raw, ok := o.Get("protocolVersion")
	if !ok {
		return Initialize{}, jsonrpc.BadParams("protocolVersion is required: send the integer %d", ProtocolVersion)
	}
	version, ok := jsonrpc.Int(raw)
	if !ok || version < 0 || version > 65535 {
		return Initialize{}, jsonrpc.BadParams("protocolVersion must be an integer from 0 to 65535, not %s", jsonrpc.Show(string(raw)))
	}
	if version < ProtocolVersion {
		return Initialize{}, jsonrpc.BadParams("protocol version %d is not supported: this server speaks %d", version, ProtocolVersion)
	}
	in := Initialize{Requested: int(version), Version: min(int(version), ProtocolVersion)}
	if raw, _ := o.Get("mcpServers"); jsonrpc.IsArray(raw) {
		in.Servers = raw
	}
	if raw, _ := o.Get("clientCapabilities"); jsonrpc.IsObject(raw) {
		in.Capabilities = raw
	}
	if info, ok := member(o, "clientInfo"); ok {
		in.ClientName, _ = info.Text("name")
		in.ClientTitle, _ = info.Text("title")
		in.ClientBuild, _ = info.Text("version")
	}
	if in.ClientSecret, bad = clientSecret(o); bad != nil {
		return Initialize{}, bad
	}
	return in, nil
}

// clientSecret is refused when it is malformed: a client that believes its sessions
// to be its own alone must not find out later that they are not.
func clientSecret(o jsonrpc.Object) (string, *jsonrpc.Error) {
	meta, ok := member(o, "_meta")
	if !ok {
		return "", nil
	}
	if err := meta.Unique(MetaClient); err != nil {
		return "", jsonrpc.BadParams("_meta: %v", err)
	}
	raw, ok := meta.Get(MetaClient)
	if !ok || jsonrpc.IsNull(raw) {
		return "", nil
	}
	secret, ok := jsonrpc.String(raw)
	if n := utf8.RuneCountInString(secret); !ok || n < MinClientSecret || n > MaxClientSecret {
		return "", jsonrpc.BadParams("_meta[%q] must be a string of %d to %d characters", MetaClient, MinClientSecret, MaxClientSecret)
	}
	return secret, nil
}

// member is the view of a member that is an object; the zero Object and false when
// it is none.
func member(o jsonrpc.Object, name string) (jsonrpc.Object, bool) {
	raw, _ := o.Get(name)
	inner, err := jsonrpc.ParseObject(raw)
	return inner, err == nil
}

// paramsObject is the view of a request's params, in which the named members, the
// ones that are interpreted, stand once.
func paramsObject(params []byte, names ...string) (jsonrpc.Object, *jsonrpc.Error) {
	if params == nil {
		return jsonrpc.Object{}, jsonrpc.BadParams("params are missing")
	}
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return o, jsonrpc.BadParams("params must be an object")
	}
	if err := o.Unique(names...); err != nil {
		return o, jsonrpc.BadParams("params: %v", err)
	}
	return o, nil
}
