package session

import (
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// maxMeta bounds what of a client's _meta is kept for its agent, for the life of the session: a trace context has some hundred bytes.
const maxMeta = 8 << 10

// keepMeta is what of a client's _meta reaches the agent, nil when that is too long to be kept, which is counted.
func keepMeta(c *kernel.Ctx, meta []byte, forward []string) []byte {
	kept := acp.FilterMeta(meta, forward)
	if len(kept) > maxMeta {
		c.Refuse("meta")
		return nil
	}
	return kept
}
