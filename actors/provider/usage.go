package provider

import (
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

const (
	usageEvery = 5 * time.Second // as often as it is looked at
	usageFirst = 2 * time.Second // a process is looked at a second after its start
)

// usageDue says that what the process of a link uses is to be shown anew.
type usageDue struct {
	number uint64
	pid    int
}

// showUsage puts what a server's process was last seen to use into the tree, as long as its link lasts.
func (a *actor) showUsage(c *kernel.Ctx, m usageDue) {
	if !a.is(m.number) {
		return
	}
	c.After(usageEvery, m)
	if u := process.UsageOf(m.pid); u.Processes > 0 {
		c.Attr("cpu_ms", u.CPU.Milliseconds())
		c.Attr("rss_bytes", u.RSS)
		c.Attr("processes", u.Processes)
	}
}

func hideUsage(c *kernel.Ctx) {
	for _, name := range []string{"pid", "cpu_ms", "rss_bytes", "processes"} {
		c.Attr(name, nil)
	}
}
