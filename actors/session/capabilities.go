package session

import (
	"bytes"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// capabilities are what the client declared in its initialize that has the session, or had it last: the next agent is told of
// them, and what a client did not declare is not asked of it, whatever an agent was told of the one before.
type capabilities struct {
	raw    []byte // clientCapabilities, nil = none
	serves acp.ClientCapabilities
	lease  *kernel.Lease
}

// meet takes over what that client declared. What the account has no room for counts as not declared.
func (x *session) meet(client Client) {
	raw := client.Capabilities()
	if bytes.Equal(raw, x.caps.raw) {
		return
	}
	x.caps.free()
	lease, err := x.c.Account().Acquire(int64(len(raw)))
	if err != nil {
		x.c.Refuse("session_bytes")
		return
	}
	x.caps = capabilities{raw: bytes.Clone(raw), serves: acp.ParseClientCapabilities(raw), lease: lease}
}

func (v *capabilities) free() {
	v.lease.Release()
	*v = capabilities{}
}
