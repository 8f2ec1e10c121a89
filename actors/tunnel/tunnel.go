package tunnel

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// Limits bound one tunnel. Zero = the default.
type Limits struct {
	Tools       int           // limits.tools_per_server, 256
	SchemaBytes int           // limits.tool_schema_bytes, 64 KiB: one tool as listed
	Pages       int           // of one tools/list, 100
	Calls       int           // in flight, 64 (what a client of generation C grants at least)
	Connect     time.Duration // mcp/connect and each request of the handshake, 30 s
	Disconnect  time.Duration // wait for the answer of mcp/disconnect, 5 s
}

func (l Limits) withDefaults() Limits {
	if l.Tools <= 0 {
		l.Tools = 256
	}
	if l.SchemaBytes <= 0 {
		l.SchemaBytes = 64 << 10
	}
	if l.Pages <= 0 {
		l.Pages = 100
	}
	if l.Calls <= 0 {
		l.Calls = 64
	}
	if l.Connect <= 0 {
		l.Connect = 30 * time.Second
	}
	if l.Disconnect <= 0 {
		l.Disconnect = 5 * time.Second
	}
	return l
}

// Params are what a tunnel is made of.
type Params struct {
	Declared acp.Declared
	Carrier  Carrier
	Attach   uint64     // number of the declaration, stamped in the reader
	Session  string     // the session's id as its streams are named; never logged
	Tag      string     // of R40
	Desk     kernel.Ref // is told capability.Changed
	Config   Config
}

// Config is what all tunnels of the pod share.
type Config struct {
	Version string // of acpod, for clientInfo
	Limits  Limits
}

// Tunnel is the handle of one declared server: the [capability.Source] that a
// desk calls and the [Claim] that a session ranks. It outlives the generations
// of its actor. Its methods are safe from any goroutine.
type Tunnel struct {
	params  Params
	limits  Limits
	stream  string
	toolset atomic.Pointer[capability.Toolset]
	status  atomic.Pointer[Status]
	ref     atomic.Pointer[kernel.Ref]
}

// New makes the handle; nothing runs before its Spec is spawned as a child of
// the session. Tools in the declaration are listed at once.
func New(p Params) *Tunnel {
	t := &Tunnel{params: p, limits: p.Config.Limits.withDefaults()}
	t.stream = p.Session + "/" + strconv.FormatUint(p.Attach, 10)
	t.status.Store(&Status{State: Connecting})
	return t
}

// Claim is this tunnel's claim to its place in the session.
func (t *Tunnel) Claim() Claim {
	return Claim{Name: t.params.Declared.Name, ID: t.params.Declared.ID,
		Rank: Rank{Connection: t.params.Carrier.Rank(), Attach: t.params.Attach}}
}

// Carrier is the socket that carries this tunnel.
func (t *Tunnel) Carrier() Carrier { return t.params.Carrier }

// Status is the state of this moment.
func (t *Tunnel) Status() Status { return *t.status.Load() }

// Provider implements [capability.Source].
func (t *Tunnel) Provider() string { return capability.BrowserProvider }

// Server implements [capability.Source].
func (t *Tunnel) Server() string { return t.params.Declared.Name }

// Tools implements [capability.Source].
func (t *Tunnel) Tools() *capability.Toolset { return t.toolset.Load() }
