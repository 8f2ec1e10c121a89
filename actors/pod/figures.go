package pod

import (
	"sync/atomic"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kernel"
)

// What one thing costs beside the bytes on its accounts: stacks, buffers of net/http and of the WebSocket library, entries
// in tables. Rounded up generously; the promise has to hold, not to flatter.
const (
	connectionOverhead = 48 << 10
	sessionOverhead    = 32 << 10
	facadeOverhead     = 64 << 20 // idle HTTP connections of the facade, as many as it takes
	processOverhead    = 96 << 20 // the program, its runtime and what the collector has not taken back yet
)

// worstCase is the resident memory that the pod does not pass, whatever clients, agents and callers do: everything that they
// can make it hold is on accounts below pod_bytes, which never admit more than their limit, and a byte on an account costs at most 9/8 of a
// byte of heap; what is not on accounts is counted by the number of connections and sessions, which are limited as well.
func worstCase(l config.Limits) int64 {
	return int64(l.PodBytes)/8*9 + int64(l.Connections)*connectionOverhead + int64(l.Sessions)*sessionOverhead + facadeOverhead + processOverhead
}

// counts are what the figures cannot read from the tree.
type counts struct {
	worst  int64
	calls  *atomic.Int64
	tokens func() int
	agents func() int
}

// figures is the `pod` object of /debug/tree.
func (c counts) figures(root kernel.Node) []inspect.Figure {
	var connections, sessions int64
	for _, child := range root.Children {
		switch child.Name {
		case "gateway":
			connections += int64(child.Kids)
		case "sessions":
			sessions += int64(child.Kids)
		}
	}
	return []inspect.Figure{
		{Name: "bytes_used", Value: root.Account.Used},
		{Name: "bytes_limit", Value: root.Account.Limit},
		{Name: "worst_case_bytes", Value: c.worst},
		{Name: "tokens_live", Value: int64(c.tokens())},
		{Name: "calls_in_flight", Value: c.calls.Load()},
		{Name: "agents", Value: int64(c.agents())},
		{Name: "connections", Value: connections},
		{Name: "sessions", Value: sessions},
	}
}
