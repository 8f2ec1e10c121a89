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

	// server is who is meant by a name that is refused, as far as that is known, and provider its provider: for the audit.
	server, provider string
	filtered         bool // it was refused because the filter of that server leaves it out
	// wake are the configured servers that have to list first, of the roster: only those that may have that name.
	// meant: by its name, which stands before the tool's.
	wake  []int
	meant bool
	// use is what a name stands for that was not given yet, and is taken by being used.
	use *binding
}

// Resolve decides what a call of name may do at this moment. waited says that
// the caller has waited for connecting servers already. It is a pure function of
// the view, the lists and the policy.
//
//	named, listed, granted, ready                    → the capability
//	named, listed, granted, server connecting        → wait, then detached
//	named, listed, granted, otherwise                → detached
//	named, listed, granted, not as it was pinned     → pin_changed
//	named, no longer granted                         → tool_not_granted
//	of a configured server, listed, filter allows it → the capability: its server connects when it is called
//	<configured>.…, its filter does not allow it     → unknown; nothing is connected
//	<configured>.…, allowed, not listed yet          → wait for that server alone, then detached, needs_login or breaker_open
//	not known, configured servers may have it        → wait for those
//	<declared>.…, server without a grant             → server_not_granted
//	<declared>.…, granted server, tool not granted   → tool_not_granted
//	not known, a granted server connecting           → wait, then detached with its prefix, else unknown
//	<declared>.…, granted, not served and not listed → detached
//	no dot, a server declared                        → malformed_name
//	otherwise                                        → unknown
func (v *View) Resolve(name string, waited bool) Resolution { return v.resolve(name, waited, nil) }

// resolve is Resolve for who has waited for the configured servers in tried.
func (v *View) resolve(name string, waited bool, tried map[int]struct{}) Resolution {
	if b, ok := v.names.find(name); ok {
		if r, done := v.resolveNamed(name, b, waited); done {
			return r
		}
	} else if r, done := v.resolveUnnamed(name, waited); done { // a name that was given or used keeps its meaning, listed or not
		return r
	}
	if r, done := v.resolveConfigured(name, waited, tried); done {
		return r
	}
	return v.resolveUnknown(name, waited)
}

// resolveUnknown judges a name that no configured server has.
func (v *View) resolveUnknown(name string, waited bool) Resolution {
	prefix, rest, dotted := strings.Cut(name, ".")
	_, declared := v.declared[prefix]
	if dotted && declared {
		if !v.grants.Server(prefix) {
			return v.refuseDeclared(prefix, ServerNotGranted, "this pod's config does not grant the server "+jsonrpc.Show(prefix)+"; its operator can add it to [[mcp.acp_servers]]")
		}
		if !v.grants.Tool(prefix, name) && !v.grants.Tool(prefix, rest) {
			return v.refuseDeclared(prefix, ToolNotGranted, "this pod's config does not grant "+jsonrpc.Show(rest)+" of the server "+jsonrpc.Show(prefix)+"; use a name from search_capabilities")
		}
	}
	if len(v.pendingDeclared()) > 0 {
		if !waited {
			return Resolution{Wait: true}
		}
		if dotted && declared && v.pending(prefix, v.servers[prefix]) {
			return v.refuseDeclared(prefix, NotAttached, "the server "+jsonrpc.Show(prefix)+" is still connecting; try again")
		}
		return refuse(Unknown, unknownText(name))
	}
	switch {
	case dotted && declared && v.servers[prefix].state() != Ready && v.servers[prefix].list() == nil:
		return v.refuseDeclared(prefix, NotAttached, "the server "+jsonrpc.Show(prefix)+" is not connected; its client must connect again")
	case !dotted && len(v.declared) > 0:
		return refuse(MalformedName, jsonrpc.Show(name)+" is no name of a capability, which has the form <server>.<tool>; use an exact name from search_capabilities")
	}
	return refuse(Unknown, unknownText(name))
}

// resolveNamed judges a name that was given. done is false when its tool is no
// longer listed, which is as if it were not known.
func (v *View) resolveNamed(name string, b binding, waited bool) (r Resolution, done bool) {
	if !b.configured && !v.grants.Tool(b.server, b.tool) {
		return v.refuseDeclared(b.server, ToolNotGranted, "this pod's config does not grant "+jsonrpc.Show(name)+" any more; use a name from search_capabilities"), true
	}
	c, changed, ok := v.capability(name, b)
	switch {
	case !ok:
		return Resolution{}, false
	case changed != nil:
		return Resolution{Refusal: v.pinning.refusal(b.place, c.Tool, changed), server: c.Server, provider: c.Provider}, true
	case b.configured:
		return Resolution{Capability: c}, true
	}
	switch s := v.servers[b.server]; s.state() {
	case Ready:
		return Resolution{Capability: c}, true
	case Connecting:
		if !waited {
			return Resolution{Wait: true}, true
		}
	}
	return v.refuseDeclared(b.server, NotAttached, "the server "+jsonrpc.Show(b.server)+" is not connected; its client must connect again"), true
}

func refuse(code Code, text string) Resolution {
	return Resolution{Refusal: &Refusal{Code: code, Text: text}}
}

// refuseDeclared is a refusal that speaks of a server which the session's client declared.
func (v *View) refuseDeclared(server string, code Code, text string) Resolution {
	r := refuse(code, text)
	r.server, r.provider = server, BrowserProvider
	if s, attached := v.servers[server]; attached && s.provider != "" {
		r.provider = s.provider
	}
	return r
}

func unknownText(name string) string {
	return "there is no capability " + jsonrpc.Show(name) + "; use an exact name from search_capabilities"
}
