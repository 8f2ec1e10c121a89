package tunnel

import (
	"fmt"
	"strings"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// listing is one tools/list on its way through its pages. Tools are copied out of
// their page, and paid for, as it arrives.
type listing struct {
	first   bool // nothing was listed by this generation yet
	limits  Limits
	pages   int
	cursors map[string]struct{}
	tools   []mcp.Tool
	bytes   []*kernel.Lease
	left    map[end]int // entries that were left out so far, and why
}

// end is why a listing takes no further page.
type end string

const (
	notYet     end = ""
	complete   end = "complete"
	tooMany    end = "tools_per_server"
	tooLong    end = "tool_pages"
	goesRound  end = "tool_cursor"
	noRoom     end = "session_bytes"
	tooBig     end = "tool_schema_bytes" // of one tool, which is left out
	notAnyTool end = "tool_malformed"    // likewise
)

func (l *listing) release() {
	for _, b := range l.bytes {
		b.Release()
	}
	l.bytes = nil
}

// take adds a page. left says which entries were left out and why. A list that
// ends before its last page is what came until then, and the reason is counted.
func (l *listing) take(account *kernel.Account, page []mcp.Tool, bad []mcp.BadTool, next string) (why end, left map[end]int) {
	left = map[end]int{}
	if len(bad) > 0 {
		left[notAnyTool] = len(bad)
	}
	var fit []mcp.Tool
	size := 0
	for _, t := range page {
		if len(t.InputSchema) > l.limits.SchemaBytes || len(t.Raw) > 2*l.limits.SchemaBytes {
			left[tooBig]++
			continue
		}
		if len(l.tools)+len(fit) == l.limits.Tools {
			why = tooMany
			left[tooMany]++
			continue
		}
		fit = append(fit, t)
		size += t.Size() + capability.Cost(t.Name, t.Description)
	}
	lease, err := account.Acquire(int64(size))
	if err != nil {
		return noRoom, left
	}
	l.bytes = append(l.bytes, lease)
	for _, t := range fit {
		l.tools = append(l.tools, t.Clone())
	}
	l.pages++
	_, seen := l.cursors[next]
	switch {
	case why != notYet:
		return why, left
	case len(bad) >= mcp.MaxBadTools:
		return notAnyTool, left
	case next == "":
		return complete, left
	case seen:
		return goesRound, left
	case l.pages == l.limits.Pages:
		return tooLong, left
	}
	l.cursors[next] = struct{}{}
	return notYet, left
}

func (l *listing) leave(left map[end]int) {
	for why, n := range left {
		if l.left == nil {
			l.left = map[end]int{}
		}
		l.left[why] += n
	}
}

// missing says for people what is not in a list that has ended for that reason, "" when it is whole.
func (l *listing) missing(why end) string {
	var parts []string
	if why != complete {
		parts = append(parts, fmt.Sprintf("its list was cut after %d tools (%s)", len(l.tools), why))
	}
	for _, why := range []end{tooBig, notAnyTool} {
		if n := l.left[why]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of its tools are left out (%s)", n, why))
		}
	}
	return strings.Join(parts, "; ")
}

// early lists the tools of the declaration, until the real list replaces them.
// They pass the same bounds and later the same gate.
func (a *actor) early(c *kernel.Ctx) {
	raw := a.t.params.Declared.Tools
	if len(raw) == 0 || a.t.Tools().List != nil {
		return
	}
	texts, err := c.Account().Acquire(int64(len(raw)))
	if err != nil {
		c.Refuse(string(noRoom))
		return
	}
	defer texts.Release()
	tools, bad, err := mcp.ParseTools(raw, a.t.limits.Tools+spareTools)
	if err != nil {
		c.Refuse(string(notAnyTool))
		return
	}
	l := &listing{limits: a.t.limits, cursors: map[string]struct{}{}}
	why, left := l.take(c.Account(), tools, bad, "")
	a.count(c, left)
	if why == noRoom {
		c.Refuse(string(noRoom))
		return
	}
	a.publish(c, capability.Connecting, Status{State: Connecting}, capability.NewList(l.tools, true, l.bytes...))
}

// list begins to fetch the tools, or notes that they are to be fetched again.
func (a *actor) list(c *kernel.Ctx) error {
	if a.listing != nil {
		a.again = true
		return nil
	}
	if a.relist != nil {
		a.relist()
		a.relist = nil
	}
	a.listing = &listing{first: a.t.Status().State != Ready, limits: a.t.limits, cursors: map[string]struct{}{}}
	return a.page(c, "")
}

// page asks for one page.
func (a *actor) page(c *kernel.Ctx, cursor string) error {
	ticket, err := a.ask(c, a.next(), mcp.MethodToolsList, mcp.ListParams(cursor))
	if err != nil {
		return a.unlisted(c, fmt.Errorf("not sent: %w", err))
	}
	a.wait(c, ticket, a.paged)
	return nil
}

// spareTools is how many tools of a page are read beyond those that may be listed: some of those before may be too large to be.
const spareTools = 256

var errNoRoom = fmt.Errorf("the session has no room for its tools (%s)", noRoom)

// paged takes a page and goes on, or publishes.
func (a *actor) paged(c *kernel.Ctx, m *kernel.Answer, err error) error {
	if err != nil {
		return a.unlisted(c, err)
	}
	result, err := a.inner(*m)
	if err != nil {
		return a.unlisted(c, err)
	}
	l := a.listing
	texts, err := c.Account().Acquire(int64(len(result))) // of the tools, until they are copied or left out
	if err != nil {
		return a.unlisted(c, errNoRoom)
	}
	defer texts.Release()
	tools, bad, next, err := mcp.ParseToolsPage(result, l.limits.Tools-len(l.tools)+spareTools)
	if err != nil {
		return a.unlisted(c, err)
	}
	why, left := l.take(c.Account(), tools, bad, next)
	a.count(c, left)
	l.leave(left)
	switch why {
	case notYet:
		return a.page(c, next)
	case noRoom:
		return a.unlisted(c, errNoRoom)
	case complete:
	default:
		c.Refuse(string(why))
		c.Log().Warn("a list of tools was cut short", "server", jsonrpc.Show(a.t.Server()), "limit", string(why), "tools", len(l.tools))
	}
	a.listing, a.unlistings = nil, 0
	a.ready(c, l.missing(why), capability.NewList(l.tools, false, l.bytes...))
	return a.maybeAgain(c)
}

// unlisted ends a listing that failed. The first one fails the tunnel; a later one
// leaves what was listed before, and as that is known not to be the server's any more,
// it is asked for again.
func (a *actor) unlisted(c *kernel.Ctx, err error) error {
	l := a.listing
	a.listing = nil
	l.release()
	if l.first {
		return a.fail(c, "tools/list: "+shown(err))
	}
	c.Refuse("list")
	c.Log().Warn("tools could not be listed again; the list before holds", "server", jsonrpc.Show(a.t.Server()), "error", shown(err))
	a.unlistings++
	if a.again {
		return a.maybeAgain(c)
	}
	a.relist = c.After(capability.RelistAfter(a.unlistings), relistDue{})
	return nil
}

// maybeAgain fetches once more when the list changed meanwhile.
func (a *actor) maybeAgain(c *kernel.Ctx) error {
	if !a.again {
		return nil
	}
	a.again = false
	return a.list(c)
}

// count shows what was left out.
func (a *actor) count(c *kernel.Ctx, left map[end]int) {
	for why, n := range left {
		for range n {
			c.Refuse(string(why))
		}
		c.Log().Warn("tools of a server were left out", "server", jsonrpc.Show(a.t.Server()), "reason", string(why), "tools", n)
	}
}
