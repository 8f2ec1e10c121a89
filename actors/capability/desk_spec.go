package capability

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// DeskConfig is what a desk is made of.
type DeskConfig struct {
	Tag      string                // of R40 for logs and audit, "-" for anonymous callers
	View     *atomic.Pointer[View] // where the desk publishes; the spawner shares it with callers
	Grants   *Grants               // nil = [DefaultGrants]
	Audit    Audit                 // nil = none
	Ledger   Ledger                // nil = idempotency keys live in memory only
	Open     *atomic.Int64         // the pod's count of calls in flight, may be nil
	Limits   DeskLimits            // zero fields = defaults
	Log      *slog.Logger          // nil = the cell's
	Anonymous bool                 // the desk of callers without a token
}

// DeskLimits are the bounds of one desk. Zero = the default.
type DeskLimits struct {
	Timeout      time.Duration // mcp.tunnel_timeout, 170 s
	CallMax      time.Duration // mcp.call_max, 30 min
	OrphanWindow time.Duration // mcp.orphan_window, 30 s
	Calls        int           // open calls, 256
	Keys         int           // idempotency keys remembered, 1024
	KeptBytes    int64         // finished results kept for repeats, 1 MiB
}
