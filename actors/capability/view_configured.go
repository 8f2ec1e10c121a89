package capability

import (
	"errors"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// instance is what a session has of a configured server that each session has one of its own of.
type instance struct {
	source Configured
	ref    kernel.Ref
}

// source is who serves the configured server at i for this session. For an isolated one that the session has not used, it only says what
// is known of it.
func (v *View) source(i int) Configured {
	if own, ok := v.instances[i]; ok {
		return own.source
	}
	return v.roster.servers[i]
}

func (v *View) tools(i int) *Toolset { return v.source(i).Tools() }

// list is what the server at i lists at this moment. What the session's own has not listed yet, others had.
func (v *View) list(i int) *List {
	if l := v.tools(i).List; l != nil {
		return l
	}
	return v.roster.servers[i].Tools().List
}

// named is the list of the server at i whose tools were named.
func (v *View) named(i int) *List {
	if v.lists == nil {
		return nil
	}
	return v.lists[i]
}

func (v *View) unsettledConfigured() bool {
	for i := range v.roster.size() {
		if l := v.list(i); l == nil || l != v.named(i) {
			return true
		}
	}
	return false
}

// unnamedLists reports that a configured server has a list whose tools were not named.
func (v *View) unnamedLists() bool {
	for i := range v.roster.size() {
		if l := v.list(i); l != nil && l != v.named(i) {
			return true
		}
	}
	return false
}

func (v *View) configuredCapability(name string, b binding) (Capability, bool) {
	i, ok := v.roster.at(b.server)
	if !ok || !v.roster.servers[i].Allows(b.tool) {
		return Capability{}, false
	}
	tool, ok := v.list(i).Tool(b.tool)
	if !ok {
		return Capability{}, false
	}
	src := v.source(i)
	return Capability{Name: name, Provider: src.Provider(), Server: b.server, Tool: tool, Availability: availability(src.Tools().State), source: src, at: i, configured: true}, true
}

// availability of what a configured server lists. One that is not connected connects when it is called.
func availability(s State) Availability {
	switch s {
	case Ready, Idle, Connecting:
		return Available
	case LoggedOut:
		return LoginNeeded
	}
	return Unreachable
}

func (v *View) unavailableConfigured(held map[place]*heldBack) (list []Unavailable) {
	for i := range v.roster.size() {
		src := v.source(i)
		name, provider := src.Server(), src.Provider()
		if h := held[place{true, name}]; h != nil {
			list = append(list, Unavailable{Provider: provider, Error: name + ": " + h.text(v.pinning, place{true, name})})
		}
		if n := v.crowded[place{true, name}]; n > 0 {
			list = append(list, Unavailable{Provider: provider, Error: name + ": " + noRoomToName(n)})
		}
		t := src.Tools()
		if why := whyNot(t, v.list(i) != nil); why != "" {
			list = append(list, Unavailable{Provider: provider, Error: name + " " + why})
		} else if left := oneLine(t.Reason); t.State == Ready && left != "" { // what of its tools is not there
			list = append(list, Unavailable{Provider: provider, Error: name + ": " + left})
		}
	}
	return list
}

// whyNot says why a configured server is not there, "" when it is, or is about to be.
func whyNot(t *Toolset, listed bool) (why string) {
	switch t.State {
	case Failed, Detached:
		why = "failed"
	case Connecting: // with a reason it has failed before, and is tried again
		if listed || t.Reason == "" {
			return ""
		}
		why = "failed"
	case LoggedOut:
		why = "refuses the pod's credentials"
	case Idle:
		if listed {
			return ""
		}
		why = "is not connected"
	default:
		return ""
	}
	if reason := oneLine(t.Reason); reason != "" {
		why += ": " + reason
	}
	return why
}

// absent is the refusal of a call of a configured server that has listed nothing.
func absent(src Configured) *Refusal {
	t := src.Tools()
	name := jsonrpc.Show(src.Server())
	var open *BreakerError
	switch {
	case t.State == Connecting:
		return &Refusal{Code: NotAttached, Text: "the server " + name + " is still connecting; try again"}
	case t.State == LoggedOut:
		return &Refusal{Code: NeedsLogin, Text: "the server " + name + " " + whyNot(t, false) + "; its operator has to renew them"}
	case errors.As(t.Cause, &open):
		return &Refusal{Code: BreakerOpen, Text: "the server " + name + ": " + open.Error()}
	}
	why := whyNot(t, false)
	if why == "" {
		why = "is not connected"
	}
	return &Refusal{Code: NotAttached, Text: "the server " + name + " " + why + "; try again later"}
}
