package capability

import (
	"sync/atomic"

	"github.com/acpod/acpod/runtime/kernel"
)

// Caller is who calls: a live token's session, or everybody without one. It is
// a value that the token table hands out; safe from any goroutine.
type Caller struct {
	Desk    kernel.Ref            // of the session; the facade's own for anonymous callers
	View    *atomic.Pointer[View] // what that desk has published last
	Tag     string                // acp.SessionTag of the session, "-" for anonymous callers
	Account *kernel.Account       // pays for what is kept for this caller
	Token   [32]byte              // SHA-256 of the token, zero for anonymous callers
	Audit   Audit
}

// Anonymous reports that no live token stands behind the caller.
func (c Caller) Anonymous() bool { return c.Token == [32]byte{} }
