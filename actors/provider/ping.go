package provider

import (
	"fmt"
	"time"

	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// pingDue looks whether a server that has said nothing for a while is still there. One that has a call may be too busy to answer; the
// call has its own time.
func (a *actor) pingDue(c *kernel.Ctx, number uint64) {
	if !a.is(number) {
		return
	}
	n, interval := a.conn, a.s.entry.PingInterval
	quiet := c.Now().Sub(n.heard)
	if quiet < interval || len(a.calls.byID) > 0 || n.phase != ready || n.renewing || n.draining || a.modern {
		c.After(max(interval-quiet, interval/4), pingDue{number})
		return
	}
	patience := a.s.entry.PingTimeout
	if patience <= 0 {
		patience = 5 * time.Second
	}
	a.ask(c, mcp.MethodPing, nil, patience, func(c *kernel.Ctx, _ []byte, err error) {
		if isFault(err) && a.conn.phase == ready && !a.conn.renewing {
			a.broken(c, fmt.Errorf("ping: %w", err))
			return
		}
		c.After(interval, pingDue{number})
	})
}
