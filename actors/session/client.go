package session

import (
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Client is one connection as a session sees it; the connection implements it. All methods are safe from any goroutine
// and none blocks. Two values are the same client when they are ==.
//
// Rank (of the Carrier) is the accept number of the connection: of two clients that want one session, the one with the
// higher rank gets it.
type Client interface {
	tunnel.Carrier

	// Ref is the connection's actor; a session watches it, so that its end is never missed.
	Ref() kernel.Ref
	// Key names the key that let the connection in, "" for the keyless loopback. It is not secret.
	Key() string
	// Secret is the SHA-256 of _meta["acpod.dev/client"] of its initialize; zero = it gave none.
	Secret() [32]byte
	// Capabilities is the object clientCapabilities of its initialize, nil = none. It does not change, and must not be changed.
	Capabilities() []byte
	// RequestID is the id on the wire of an open request; false when it is answered.
	RequestID(req uint64) (jsonrpc.ID, bool)
	// Loopback tells whether the peer's address is a loopback address.
	Loopback() bool

	// Offer puts one whole frame into the stream of that session. The lease, when not nil, belongs to the connection
	// from a nil error on. done, when not nil, then runs exactly once, on any goroutine and without blocking: true =
	// the frame left for the socket, false = it never will. Errors, by which the lease stays the caller's and done
	// does not run: *kernel.Overloaded when the stream or the account is full, tunnel.ErrGone when the socket is gone.
	Offer(session string, frame []byte, lease *kernel.Lease, done func(written bool)) error
	// Respond answers the client's request req (the number that the connection put into the message) in the stream of
	// that session, after all that was offered before; session "" = an answer that belongs to no stream. Either
	// result or err. It works once for each req: later answers, and answers to a socket that is gone, are dropped, and the lease
	// freed. It never fails: an answer has its place reserved.
	Respond(session string, req uint64, result []byte, lease *kernel.Lease, err *jsonrpc.Error)
	// Call sends a request of the agent in the session's stream; session "" = in no stream, before all that waits in one. The client's answer comes to c as a kernel.Answer in
	// the same shape as Carrier.Request. c.Cancel(ticket) takes it out of the queue, or sends $/cancel_request with its id.
	Call(c *kernel.Ctx, session, method string, params []byte) (kernel.Ticket, error)

	// Granted tells the connection that it owns the session from now on and where its requests go. It is called
	// before the response that tells the client so.
	Granted(session string, ref kernel.Ref)
	// Lost tells the connection that it owns the session no longer. Requests of ours that are queued in that session's
	// stream are taken out and their askers get tunnel.ErrGone. When why is tunnel.ErrTakenOver, so is all else that is
	// queued in it, its done(false) run before Lost returns, and the answer of a prompt that would now follow words that
	// were never said becomes the superseded error; otherwise what was said is still written.
	Lost(session string, why error)
}
