package capability

import (
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// Attach makes a source part of the session. It is told by the session (Signal)
// when the source's tunnel is spawned, before it connects. Several sources of
// one server name may be attached: the latest that is ready serves.
type Attach struct{ Source Source }

// Detach ends a source's part in the session (Signal). What it offered stays
// listed as detached until a source of the same server name lists again.
type Detach struct{ Source Source }

// Changed says that a source published another [Toolset] (Signal, by the source).
type Changed struct{ Source Source }

// Declared names every server that the session's client declared, those that
// were refused or ignored included (Signal, by the session, before Attach). Names
// are kept until the session ends: refusals speak only of servers in this set.
type Declared struct{ Names []string }

// EndReason says who ended calls from above.
type EndReason string

const (
	EndCancel  EndReason = "the turn was cancelled"
	EndTurn    EndReason = "the turn has ended"
	EndSession EndReason = "the session has ended"
	EndToken   EndReason = "the caller's token was revoked"
	EndRequest EndReason = "the caller cancelled the request"
	EndDesk    EndReason = "the desk of the session stopped"
)

// EndCalls ends calls in flight at once, orphans included, down to the server
// (Signal, by the session): all of the session, or those of one token.
type EndCalls struct {
	Reason EndReason
	Token  [32]byte // zero = every caller
}

// CancelRequest is notifications/cancelled of a caller (told, by the facade, so that
// it comes after the call that it is about).
// It is matched by token and request id; anonymous callers cannot send it.
type CancelRequest struct {
	Token     [32]byte
	RequestID string // jsonrpc.ID.Key of the cancelled request
}

// Continued is told (by the facade, on the data lane) when another request of the caller waits for a call that a former one began: from
// then on notifications/cancelled of that one ends it.
type Continued struct {
	Token   [32]byte
	Was, Is string // jsonrpc.ID.Key of the requests
}

// Request is one execute_capability. It is asked of the desk by [Execute].
type Request struct {
	Name        string
	Arguments   []byte // raw value of "arguments", of any kind; nil or null = {}, a string that holds an object is that object
	Key         string // idempotency_key, at most 128 characters, "" = none
	Token       [32]byte
	RequestID   string // jsonrpc.ID.Key, for notifications/cancelled
	EndsOnClose bool   // the protocol version is 2026-07-28 or later
	Asked       func() // called once the desk has been asked, or will not be; nil = nobody wants to know. What is told after it comes after the call
	Asides
	Bytes *kernel.Lease // of Arguments

	sha [32]byte // of Arguments, once [Execute] has found it
}

// digest is the hash of the arguments that are sent.
func (r Request) digest() [32]byte {
	if r.sha == [32]byte{} {
		return argsSHA(r.Arguments)
	}
	return r.sha
}

// Lease is the lease of the arguments ([kernel.Leased]).
func (r Request) Lease() *kernel.Lease { return r.Bytes }

// Settle asks the desk to answer [Settled] once no granted server without a list
// is connecting and each configured one has listed or said why it cannot, at the latest after [SettleTimeout].
type Settle struct{}

// Prepare is Settle for a few names (asked, by [Direct]): only servers that may have one of them are waited for.
type Prepare struct{ Names []string }

// Settled answers [Settle].
type Settled struct{}

// SettleTimeout is how long a search or an unknown name waits for servers that
// are connecting (contract, The facade).
const SettleTimeout = 10 * time.Second

// RetryTimeout is how much of it is for a server that has failed before and is tried again: one that does not come back holds up
// no search for longer.
const RetryTimeout = 2 * time.Second

// InFlight is told to the desk's parent (Signal) when the number of open calls
// leaves or reaches zero: an open tool call keeps a turn from being idle.
type InFlight struct{ Open bool }
