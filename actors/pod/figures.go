package pod

import (
	"os"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// counts are what the figures cannot read from the tree.
type counts struct {
	worst  int64
	calls  *atomic.Int64
	tokens func() int
	agents func() int

	orphans   func() int
	schemas   func() capability.SchemasStats
	providers []capability.Configured
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
	schemas := c.schemas()
	var ready int64 // those that each session has of its own are not among them
	for _, p := range c.providers {
		if p.Tools().State == capability.Ready {
			ready++
		}
	}
	children := process.Totals()
	agents, servers := children["agent"], children["provider"]
	return []inspect.Figure{
		{Name: "bytes_used", Value: root.Account.Used},
		{Name: "bytes_limit", Value: root.Account.Limit},
		{Name: "worst_case_bytes", Value: c.worst},
		{Name: "tokens_live", Value: int64(c.tokens())},
		{Name: "calls_in_flight", Value: c.calls.Load()},
		{Name: "agents", Value: int64(c.agents())},
		{Name: "schemas_kept", Value: schemas.Kept},
		{Name: "schemas_bytes", Value: schemas.Bytes},
		{Name: "providers", Value: int64(len(c.providers))},
		{Name: "providers_ready", Value: ready},
		{Name: "agents_rss_bytes", Value: agents.RSS},
		{Name: "agents_processes", Value: int64(agents.Processes)},
		{Name: "providers_rss_bytes", Value: servers.RSS},
		{Name: "providers_processes", Value: int64(servers.Processes)},
		{Name: "orphans", Value: int64(c.orphans())},
		{Name: "open_fds", Value: openFDs()},
		{Name: "connections", Value: connections},
		{Name: "sessions", Value: sessions},
	}
}

// openFDs counts the pod's own descriptors: nobody else of its user may, since it is not dumpable. 0 = /proc cannot be read.
func openFDs() int64 {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	return int64(max(len(names)-1, 0)) // one is the folder that is just read
}
