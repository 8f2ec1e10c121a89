package tunnel

import (
	"context"
	"errors"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Carrier is the socket that carries a tunnel. The connection implements it.
// Every method is safe from any goroutine and, but for Disconnect, never blocks.
type Carrier interface {
	// Rank is the connection's accept number: an older connection has a smaller one.
	Rank() uint64
	// Request sends one JSON-RPC request to the client, on a turn of c. An error
	// (*kernel.Overloaded, [ErrGone]) says that nothing was sent and no answer
	// comes. Otherwise exactly one kernel.Answer comes to c: Msg is a [Reply] whose
	// bytes the answer's lease pays for, or Err is the client's *jsonrpc.Error,
	// *kernel.Overloaded (the answer did not fit the account), or [ErrGone].
	//
	// When c cancels the ticket, or its generation ends, the carrier takes a request
	// that is still queued out of the queue; else it sends what Out.Cancel says, and
	// drops and counts a late answer.
	Request(c *kernel.Ctx, out Out) (kernel.Ticket, error)
	// Notify sends one notification in the stream. *kernel.Overloaded or [ErrGone]
	// when it was not queued.
	Notify(stream, method string, params []byte) error
	// Disconnect is called from a release, outside of any actor: it sends the frame
	// and, when it is a request, waits for its answer until ctx ends. Disconnects go
	// before the data of every stream. [ErrGone] when the socket is gone.
	Disconnect(ctx context.Context, f Farewell) error
	// Bind routes mcp/message notifications that name connectionID to the actor `to`
	// as [Inbound], on its data lane. An error when the id is empty, longer than
	// [MaxConnectionID] bytes ([ErrBadID]) or bound on this socket already ([ErrInUse]).
	Bind(connectionID string, to kernel.Ref) error
	// Unbind ends what Bind began for that actor; an id that is not bound is ignored. It
	// reports whether the id is nobody's now: if not, it names the connection of another
	// actor, which must not be closed for this one.
	Unbind(connectionID string, to kernel.Ref) (free bool)
	// Gone is closed when nothing can be sent any more.
	Gone() <-chan struct{}
}

// MaxConnectionID is the longest connection id that a client may choose, in bytes.
const MaxConnectionID = 1024

var (
	// ErrGone says that the socket is gone: whatever was owed on it is moot.
	ErrGone = errors.New("the client's socket is gone")
	// ErrBadID says that a client chose a connection id that is empty or too long.
	ErrBadID = errors.New("the connection id is empty or longer than 1024 bytes")
	// ErrInUse says that a client gave one connection id to two tunnels.
	ErrInUse = errors.New("the connection id is in use on this socket")
)

// Out is one request to the client.
type Out struct {
	Stream string // one tunnel is one stream: its frames keep their order
	Method string
	Params []byte // the carrier copies them into its frame before it returns; with Body, what stands before that
	// Body, when set, is the large part of params, and Tail what stands behind it. Body is
	// written from where it lies and never copied: Bytes pays for it, and is the carrier's
	// from a Request that returned no error on, until the frame is written or dropped.
	Body, Tail []byte
	Bytes      *kernel.Lease
	// RequestID is the inner request id of generation C, else empty. While the
	// request is open, an mcp/message of the client with that id goes to c as [Inbound].
	RequestID string
	// Cancel says which notifications tell the client to stop; nil = none. The
	// carrier calls it with the id that it gave the request.
	Cancel func(outer jsonrpc.ID) []acp.Notification
	// Arrived, when set, is called exactly once when the client answers with a
	// result, by the reader, before the answer is handed on, and also when c has
	// cancelled or ended meanwhile: the carrier remembers such a request until its
	// answer or the end of the socket. What it returns is sent by the carrier at once,
	// unless its connection id is bound on this socket; nobody waits for the answer.
	// It must not block. It is not called for an error.
	Arrived func(result []byte) *Farewell
}

// Farewell closes one MCP connection of a client.
type Farewell struct {
	Stream       string
	ConnectionID string
	Method       string
	Params       []byte
	Request      bool // false: it is a notification (generation 0)
}

// Reply is the client's result, a byte range of its frame.
type Reply struct{ Result []byte }

// Inbound is one mcp/message notification of the client. Requests never come:
// the carrier answers them with -32601 and counts them, and an id that is bound
// to nobody is dropped and counted. It brings the lease of its frame, which the
// tunnel releases. That a list has changed comes on the control lane, and without a lease, when there is no room for the frame.
type Inbound struct {
	Message acp.Inbound
	Bytes   *kernel.Lease
}

// Lease is the lease of the frame ([kernel.Leased]).
func (m Inbound) Lease() *kernel.Lease { return m.Bytes }
