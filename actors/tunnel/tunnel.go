package tunnel

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// Kind is the kind of a tunnel in the tree.
const Kind = "tunnel"

// Limits bound one tunnel. Zero = the default.
type Limits struct {
	Tools       int           // limits.tools_per_server, 256
	SchemaBytes int           // limits.tool_schema_bytes, 64 KiB; a whole tool may have twice that
	Pages       int           // of one tools/list, 100
	Calls       int           // in flight, 64: what a client of generation C grants at least
	Connect     time.Duration // mcp/connect, each request of the handshake and each page, 30 s
	Disconnect  time.Duration // wait for the answer of mcp/disconnect, 4 s: within the kernel's 5 s for a release
}

func (l Limits) withDefaults() Limits {
	number := func(n *int, otherwise int) {
		if *n <= 0 {
			*n = otherwise
		}
	}
	duration := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	number(&l.Tools, 256)
	number(&l.SchemaBytes, 64<<10)
	number(&l.Pages, 100)
	number(&l.Calls, 64)
	duration(&l.Connect, 30*time.Second)
	duration(&l.Disconnect, 4*time.Second)
	return l
}

// Params are what a tunnel is made of.
type Params struct {
	Declared acp.Declared
	Carrier  Carrier
	Attach   uint64     // number of the declaration, stamped in the reader
	Session  string     // the session's id: part of the stream's name, never logged
	Tag      string     // acp.SessionTag of the session
	Desk     kernel.Ref // is told capability.Changed
	Version  string     // of acpod, for clientInfo
	Limits   Limits
	Stats    *Stats // counts the MCP connections; nil = nobody does
}

// Tunnel is the handle of one declared server: the [capability.Source] that a
// desk calls and the [Claim] that a session ranks. It outlives the generations
// of its actor. Its methods are safe from any goroutine.
type Tunnel struct {
	params   Params
	limits   Limits
	stream   string
	face     atomic.Pointer[face]
	ref      atomic.Pointer[kernel.Ref]
	sequence atomic.Uint64 // of requests
}

// New makes the handle. Nothing runs before its [Tunnel.Spec] is spawned as a
// child of the session.
func New(p Params) *Tunnel {
	t := &Tunnel{params: p, limits: p.Limits.withDefaults()}
	t.stream = p.Session + "/" + strconv.FormatUint(p.Attach, 10)
	t.face.Store(&face{status: Status{State: Connecting}, tools: &capability.Toolset{State: capability.Connecting}})
	return t
}

// Spec describes the tunnel's actor, a child of the session: transient, so that
// only a crash of our own code connects again.
func (t *Tunnel) Spec(name string) kernel.Spec {
	return kernel.Spec{Name: name, Kind: Kind, Restart: kernel.Transient,
		New: func() kernel.Behavior { return newActor(t) }}
}

// Claim is this tunnel's claim to its place in the session.
func (t *Tunnel) Claim() Claim {
	return Claim{Name: t.params.Declared.Name, ID: t.params.Declared.ID,
		Rank: Rank{Connection: t.params.Carrier.Rank(), Attach: t.params.Attach}}
}

// Declared is the declaration that the tunnel was made for.
func (t *Tunnel) Declared() acp.Declared { return t.params.Declared }

// Carrier is the socket that carries this tunnel.
func (t *Tunnel) Carrier() Carrier { return t.params.Carrier }

// Status is the state of this moment.
func (t *Tunnel) Status() Status { return t.face.Load().status }

// Provider implements [capability.Source].
func (t *Tunnel) Provider() string { return capability.BrowserProvider }

// Server implements [capability.Source].
func (t *Tunnel) Server() string { return t.params.Declared.Name }

// Tools implements [capability.Source].
func (t *Tunnel) Tools() *capability.Toolset { return t.face.Load().tools }

// Call implements [capability.Source].
func (t *Tunnel) Call(c *kernel.Ctx, call capability.Call) (kernel.Ticket, error) {
	ref := t.ref.Load()
	if ref == nil {
		call.Bytes.Release()
		return kernel.Ticket{}, capability.ErrDetached
	}
	ticket, err := c.Request(ref.Current(), call)
	if errors.Is(err, kernel.ErrStopped) {
		err = fmt.Errorf("%w: %w", capability.ErrDetached, err)
	}
	return ticket, err
}
