package agent

import (
	"sync/atomic"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Request asks the agent; sent by the owner with c.Request, after Ready. The answer is Reply with its lease, or an
// error: *jsonrpc.Error (the agent's own, as it came; over 64 KiB without its data), *LineTooLong (its response was
// over Config.LineBytes), *kernel.Overloaded (no room in the account, which also bounds what waits for stdin), ErrNotReady,
// *Exited or *StartError (the process ended), or the cause with which the owner stopped the actor.
// A cancel of the ticket only forgets the request: its response is dropped when it comes. To tell the agent,
// send a Notify.
type Request struct {
	Method string
	Params []byte        // raw JSON; nil = no member params
	Held   *kernel.Lease // pays for Params until they are written; nil = the account of the agent does, from its turn on
	Wire   *Wire         // gets its id on the wire; nil = nobody asks for that
}

// Wire is the id that one Request got on the wire, by which the agent speaks of it. Safe from any goroutine.
type Wire struct{ id atomic.Int64 }

// Got notes the id. The agent calls it, before it can be heard of the request.
func (w *Wire) Got(id int64) { w.id.Store(id) }

// Is tells whether that is the id of the request; false before it is sent.
func (w *Wire) Is(id int64) bool { return w != nil && id != 0 && w.id.Load() == id }

// Withdraw tells the agent, by $/cancel_request, that a request which was sent before is not wanted any more. Its answer is
// awaited all the same.
type Withdraw struct{ Wire *Wire }

// Reply is the answer of a Request: the raw result, a range of the agent's line. The lease of the answer pays for
// the whole line.
type Reply struct{ Result []byte }

// Notify sends a notification to the agent: session/cancel, $/cancel_request. A short one has a reserve of its own
// where the account is full; what finds no room is dropped and counted.
type Notify struct {
	Method string
	Params []byte
	Held   *kernel.Lease
}

// Respond answers a request of the agent (Called), once: a second answer to the same id is dropped and counted.
// Err nil = Result.
type Respond struct {
	ID     jsonrpc.ID
	Result []byte
	Err    *jsonrpc.Error
	Held   *kernel.Lease
}

// Lease implements kernel.Leased.
func (m Request) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Notify) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Respond) Lease() *kernel.Lease { return m.Held }

// Info is what the agent said of itself in the answer of initialize, in memory of its own. It is a peer's text.
type Info = acp.AgentInfo

// Ready tells the owner that the handshake is done, in wire order: requests may follow now.
type Ready struct {
	From    kernel.Ref // the generation that says it, in each of these messages: its Exited may have overtaken them
	Info    *Info
	PID     int
	Credits *Credits     // of this process: Open at a cancel, the loss of the client, a stop
	Noise   func() int64 // how many lines it has written that told the owner nothing; from any goroutine
}

// Update is one session/update of the agent. The receiver owns Held (the lease of the line) and Credit: both are
// given back when the update was written to the client's socket, kept elsewhere, or dropped.
type Update struct {
	From   kernel.Ref
	Params []byte // raw, a range of the line
	Held   *kernel.Lease
	Credit *Credit
}

// Called is a request of the agent: session/request_permission, fs/…, or one that nobody knows. It is answered by
// Respond with the same ID.
type Called struct {
	From   kernel.Ref
	ID     jsonrpc.ID
	Method string
	Params []byte
	Held   *kernel.Lease
}

// Skipped is a session/update of the agent, in its place, that was not read whole: its line was longer than the limit, or
// there was no room for it.
type Skipped struct {
	From  kernel.Ref
	Bytes int64
	Scope string // agent_line_bytes, or the account that was full
}

// Noted is any other notification of the agent.
type Noted struct {
	From   kernel.Ref
	Method string
	Params []byte
	Held   *kernel.Lease
	Credit *Credit // as of an Update; nil for $/cancel_request
}

// Lease implements kernel.Leased.
func (m Update) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Called) Lease() *kernel.Lease { return m.Held }

// Lease implements kernel.Leased.
func (m Noted) Lease() *kernel.Lease { return m.Held }
