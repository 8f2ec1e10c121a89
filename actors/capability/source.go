package capability

import (
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// BrowserProvider is the provider's name of every server that a client
// declares and serves through its own socket.
const BrowserProvider = "openab-browser"

// Source is one MCP server that offers tools. A tunnel implements it, and a
// configured provider will. The value lives as long as its declaration: it
// outlives the generations of the actor behind it.
type Source interface {
	// Provider is the name shown to agents. Safe from any goroutine.
	Provider() string
	// Server is the declared name, 1 to 64 of [A-Za-z0-9_-]. Safe from any goroutine.
	Server() string
	// Tools is the snapshot of this moment, never nil. Safe from any goroutine.
	Tools() *Toolset
	// Call starts one call, on a turn of the desk c. An error says that the call
	// was refused and never left; no answer comes then. Otherwise exactly one
	// [kernel.Answer] comes: Msg is a [Result] and Lease pays for it, or Err is
	//   - *[NotSent]: the call never left;
	//   - *jsonrpc.Error: the server answered with an error;
	//   - [ErrTimeout]: its deadline passed, the server was told to stop;
	//   - anything else: the way to the server broke after the call may have left.
	// c.Cancel(ticket) tells the server to stop and drops a late answer.
	Call(c *kernel.Ctx, call Call) (kernel.Ticket, error)
}

// Call is one call of a tool on its way to a server. It brings the lease of its
// arguments: whoever handles it releases that lease once they are written out.
type Call struct {
	ID        uint64 // of the desk, for logs and the tree
	Tool      string // as published by the server
	Arguments []byte // exact bytes of a JSON object
	Deadline  time.Time
	Limit     time.Time // progress extends the deadline, never past this
	// Progress, when set, is given the raw params of each notifications/progress
	// of this call, on the source's turn. It must not block and must copy what it keeps.
	Progress func(params []byte)
	Bytes    *kernel.Lease
}

// Lease is the lease of the arguments ([kernel.Leased]).
func (c Call) Lease() *kernel.Lease { return c.Bytes }

// Result is the raw result object of tools/call as the server wrote it. The
// lease of the answer that carries it pays for the bytes behind it.
type Result struct {
	Raw []byte

	reads bool // set by the desk: its tool only reads
}
