package session

import (
	"bytes"
	"context"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// offer is what the agent answered when its session was opened, until the client has it. What of it a client that comes back is told again stays in
// the settings.
type offer struct {
	result []byte // nil = no agent was asked
	lease  *kernel.Lease
	owed   *kernel.Obligation
}

// offered keeps the agent's answer until the client has it. The error is that there is no room for it.
func (x *session) offered(result []byte) *jsonrpc.Error {
	x.given()
	if result == nil {
		return nil
	}
	lease, err := x.c.Account().Acquire(int64(len(result)))
	if err != nil {
		x.c.Refuse("session_bytes")
		return wireError(err)
	}
	x.offer = offer{result: bytes.Clone(result), lease: lease, owed: x.c.Own("what the agent offers", func(context.Context, error) { lease.Release() })}
	return nil
}

// given forgets it.
func (x *session) given() {
	if x.offer.owed != nil {
		x.offer.owed.Discharge()
		x.offer.lease.Release()
		x.offer = offer{}
	}
}
