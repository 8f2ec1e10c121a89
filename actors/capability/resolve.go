package capability

import (
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Resolution is what a name leads to: a capability, a refusal, or a wait for
// servers that are connecting.
type Resolution struct {
	Capability Capability
	Refusal    *Refusal
	Wait       bool // ask again once servers have settled; only when not waited
}

// Resolve decides what a call of name may do at this moment. waited says that
// the caller has waited for connecting servers already. It is a pure function of
// the view, the lists and the policy.
//
//	named, listed, granted, ready                    → the capability
//	named, listed, granted, server connecting        → wait, then detached
//	named, listed, granted, otherwise                → detached
//	named, no longer granted                         → tool_not_granted
//	<declared>.…, server without a grant             → server_not_granted
//	<declared>.…, granted server, tool not granted   → tool_not_granted
//	not known, a granted server connecting           → wait, then detached with its prefix, else unknown
//	<declared>.…, granted, not served and not listed → detached
//	no dot, a server declared                        → malformed_name
//	otherwise                                        → unknown
func (v *View) Resolve(name string, waited bool) Resolution {
	if b, ok := v.names.find(name); ok {
		if r, done := v.resolveNamed(name, b, waited); done {
			return r
		}
	}
	prefix, rest, dotted := strings.Cut(name, ".")
	_, declared := v.declared[prefix]
	if dotted && declared {
		if !v.grants.Server(prefix) {
			return refuse(ServerNotGranted, "this pod's config does not grant the server "+jsonrpc.Show(prefix)+"; its operator can add it to [[mcp.acp_servers]]")
		}
		if !v.grants.Tool(prefix, name) && !v.grants.Tool(prefix, rest) {
			return refuse(ToolNotGranted, "this pod's config does not grant "+jsonrpc.Show(rest)+" of the server "+jsonrpc.Show(prefix)+"; use a name from search_capabilities")
		}
	}
	if pending := v.Pending(); len(pending) > 0 {
		if !waited {
			return Resolution{Wait: true}
		}
		if dotted && declared && v.pending(prefix, v.servers[prefix]) {
			return refuse(NotAttached, "the server "+jsonrpc.Show(prefix)+" is still connecting; try again")
		}
		return refuse(Unknown, unknownText(name))
	}
	switch {
	case dotted && declared && v.servers[prefix].state() != Ready && v.servers[prefix].list() == nil:
		return refuse(NotAttached, "the server "+jsonrpc.Show(prefix)+" is not connected; its client must connect again")
	case !dotted && len(v.declared) > 0:
		return refuse(MalformedName, jsonrpc.Show(name)+" is no name of a capability, which has the form <server>.<tool>; use an exact name from search_capabilities")
	}
	return refuse(Unknown, unknownText(name))
}

// resolveNamed judges a name that was given. done is false when its tool is no
// longer listed, which is as if it were not known.
func (v *View) resolveNamed(name string, b binding, waited bool) (r Resolution, done bool) {
	if !v.grants.Tool(b.server, b.tool) {
		return refuse(ToolNotGranted, "this pod's config does not grant "+jsonrpc.Show(name)+" any more; use a name from search_capabilities"), true
	}
	c, ok := v.capability(name, b)
	if !ok {
		return Resolution{}, false
	}
	switch s := v.servers[b.server]; s.state() {
	case Ready:
		return Resolution{Capability: c}, true
	case Connecting:
		if !waited {
			return Resolution{Wait: true}, true
		}
	}
	return refuse(NotAttached, "the server "+jsonrpc.Show(b.server)+" is not connected; its client must connect again"), true
}

func refuse(code Code, text string) Resolution {
	return Resolution{Refusal: &Refusal{Code: code, Text: text}}
}

func unknownText(name string) string {
	return "there is no capability " + jsonrpc.Show(name) + "; use an exact name from search_capabilities"
}
