package link

import (
	"context"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Link is one connection to one server, from its dial to its end; a new one is made for each attempt.
type Link interface {
	// Run connects and carries until ctx ends or the link breaks; then everything that it started has ended, too. It is run
	// once, on a goroutine of the provider's actor. Its error is why it ended: one of this package's, or ctx's cause.
	Run(ctx context.Context, to Sink) error
	// Send puts one message on its way, and never blocks. Safe from any goroutine. A refusal (an error) frees the lease and says
	// that the message never left.
	Send(m Message) error
	// Speaks tells the link the protocol version that was agreed on, before anything else is sent. HTTP names it in a header.
	Speaks(version string)
}

// Message is one JSON-RPC message to the server.
type Message struct {
	ID     jsonrpc.ID // of a request; zero for a notification and for an answer
	Method string
	// Name is the tool of a tools/call, for the header Mcp-Name.
	Name string
	// Headers are names and values that the arguments of a tools/call give (x-mcp-header); of the era without a handshake only.
	Headers [][2]string
	// Head, Body and Tail are the message when they are written one behind the other: arguments are not copied.
	Head, Body, Tail []byte
	Held             *kernel.Lease // pays for it until it was written; may be nil
	Deadline         time.Time     // HTTP gives the request up then, and nothing else; zero = none
}

// Sink is what a link tells. All methods are called on goroutines of the link, and may wait for room: what one request's answer brings, and
// what a child writes, comes in order.
type Sink interface {
	// Up says that messages may be sent. pid is the child's, 0 when there is none.
	Up(pid int)
	// Message is one message of the server, already checked to be one. about is the request on whose answer stream it came, zero when the
	// link cannot say (a child has one stream for all). frame may be kept; the lease pays for it and is the receiver's.
	Message(frame []byte, scanned jsonrpc.Frame, about jsonrpc.ID, lease *kernel.Lease)
	// Failed says that one request gets no answer: the link lives on.
	Failed(id jsonrpc.ID, err error)
	// Account pays for what is read.
	Account() *kernel.Account
	// Refused counts what was skipped or dropped: "junk_line", "long_line", "not_utf8", ….
	Refused(scope string)
}

// Mourner is implemented by sinks that are to hear at once that a link carries nothing any more. A link whose end takes time (a child
// that was killed may have left others, which are ended first) tells it before, at most once; Run returns the same error later.
type Mourner interface{ Down(err error) }

// Listener is implemented by sinks that are to hear that the server may have said something that no request asked for while nobody could
// listen to it, and that it will not say again.
type Listener interface{ Missed() }
