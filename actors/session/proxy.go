package session

import (
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// Proxy describes the child of a session that serves its tools as tools of their own, at an address of its own
// (agent.delivery = "proxy"). Pod wires it: the session knows no HTTP. The spec is Temporary and named by the session; the actor opens
// its listener in Start and calls of.Ready once, before Start returns. Whoever calls it needs a token that stands for of.Desk.
type Proxy func(of ProxyOf) kernel.Spec

// ProxyOf is whose tools a proxy serves.
type ProxyOf struct {
	Desk  kernel.Ref
	View  *atomic.Pointer[capability.View]
	Ready func(url string) // http://127.0.0.1:<port>/mcp; safe from any goroutine
}
