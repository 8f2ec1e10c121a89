package agent

import (
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// usageEvery is how often what the process uses is shown anew; it is looked at as often.
const usageEvery = 5 * time.Second

// usageFirst is when it is shown first: a process is looked at a second after its start.
const usageFirst = 2 * time.Second

// showUsage puts what the agent, and all that it started, was last seen to use into the tree.
func (a *actor) showUsage(c *kernel.Ctx) {
	if proc := a.run.proc.Load(); proc != nil {
		usageAttrs(c, proc.Usage())
	}
	c.After(usageEvery, usageDue{})
}

// usageAttrs leaves what was shown when nothing was seen: the process has just been started, or ends.
func usageAttrs(c *kernel.Ctx, u process.Usage) {
	if u.Processes == 0 {
		return
	}
	c.Attr("cpu_ms", u.CPU.Milliseconds())
	c.Attr("rss_bytes", u.RSS)
	c.Attr("processes", u.Processes)
}
