package tunnel

import (
	"context"

	"github.com/acpod/acpod/runtime/kernel"
)

// Footprint is charged to the session's account for the life of a tunnel: its actor with a mailbox and a goroutine, its tables, and
// its place in those of the session, the desk and the connection. How many servers a session has is the client's choice.
const Footprint = 16 << 10

// pay takes the footprint; it is given back when the generation has ended.
func pay(c *kernel.Ctx) error {
	lease, err := c.Account().Acquire(Footprint)
	if err != nil {
		return err
	}
	c.Own("footprint", func(context.Context, error) { lease.Release() })
	return nil
}
