package capability

import (
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// BrowserProvider is the provider's name of every server that a client
// declares and serves through its own socket.
const BrowserProvider = "openab-browser"

// Source is one MCP server that offers tools: a tunnel, or one server of the operator's
// ([Configured]). The value lives as long as its declaration: it
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
	//   - *[NotSent]: the call never left; it may wrap [ErrNeedsLogin], *[BreakerError], *kernel.Overloaded;
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
	Owner     string    // whose call it is: DeskConfig.Owner, "-" for anonymous callers
	Asides
	Bytes *kernel.Lease
}

// Asides are what a caller can be told, or asked, beside the result of its call. Each is nil where the caller's protocol
// cannot carry it. They run on the source's turn: they must not block and must copy what they keep.
type Asides struct {
	// Progress is given the raw params of each notifications/progress of the call.
	Progress func(params []byte)
	// Log is given the raw params of each notifications/message that is about the call.
	Log func(params []byte)
	// Elicit puts a server's elicitation/create to the caller's user.
	Elicit func(Elicitation)
}

// Elicitation is a question of a server to the user behind a call.
type Elicitation struct {
	Provider string // for the user: who asks
	Params   []byte // as the server wrote them
	// Answer is called once, from any goroutine, with the raw result ({"action": …}) or an error. One that comes after the
	// call's end, or twice, does nothing.
	Answer func(result []byte, failed *jsonrpc.Error)
}

// Lease is the lease of the arguments ([kernel.Leased]).
func (c Call) Lease() *kernel.Lease { return c.Bytes }

// Result is the raw result object of tools/call as the server wrote it. The
// lease of the answer that carries it pays for the bytes behind it.
type Result struct {
	Raw []byte

	reads bool // set by the desk: its tool only reads
}
