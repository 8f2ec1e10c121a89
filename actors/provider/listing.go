package provider

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// catalog is the list that is shown, and how it is kept up to date.
type catalog struct {
	list   *capability.List // nil: none, or it was too large to be kept without a connection
	leases []*kernel.Lease  // pay for it while there is a connection
	bytes  int64
	digest [32]byte
	reason string // what is not in it, and why

	next    *gathering // a list that is being fetched
	again   bool       // it has changed since that began
	last    time.Time  // when one was fetched last
	failed  int        // refreshes in a row that came to nothing
	timer   func()     // begins the next refresh; nil = not set
	between time.Duration
}

// refreshDue begins a refresh that had to wait.
type refreshDue struct{}

// unplug is the end of the connection. A list is shown without it as long as it is small, and is then part of what a configured
// server costs at rest: nothing stays charged.
func (l *catalog) unplug() {
	if l.next != nil {
		l.next.release()
		l.next = nil
	}
	l.again, l.failed = false, 0
	if l.timer != nil {
		l.timer()
		l.timer = nil
	}
	l.pay(nil)
	if l.bytes > keptListBytes {
		l.list, l.digest = nil, [32]byte{}
	}
}

// pay lets other leases pay for the list.
func (l *catalog) pay(leases []*kernel.Lease) {
	for _, held := range l.leases {
		held.Release()
	}
	l.leases = leases
}

// maxExamples is how many tools of each kind of fault are named with what is wrong with them.
const maxExamples = 4

// gathering is one tools/list on its way through its pages.
type gathering struct {
	pages   int
	cursors map[string]struct{}
	tools   []mcp.Tool
	leases  []*kernel.Lease
	bytes   int64
	left    map[reason]int
	hidden  int                   // by the filter
	example map[reason][]omission // the first few
	cut     reason                // why it took no further page; "" = it is whole
	sum     hash.Hash
}

func newGathering() *gathering {
	return &gathering{cursors: map[string]struct{}{}, left: map[reason]int{}, example: map[reason][]omission{}, sum: sha256.New()}
}

func (g *gathering) release() {
	for _, l := range g.leases {
		l.Release()
	}
	g.leases = nil
}

// take adds a page, and tells whether another one is to be fetched.
func (g *gathering) take(account *kernel.Account, p page) (more bool) {
	g.pages++
	g.hidden += p.filtered
	for _, o := range p.left {
		g.omit(o)
	}
	fit := p.tools
	if room := maxTools - len(g.tools); len(fit) > room || len(p.left) > maxTools {
		fit = fit[:min(len(fit), room)]
		g.cut = tooMany
	}
	size := int64(0)
	for _, t := range fit {
		size += int64(t.Size() + len(t.InputSchema) + capability.Cost(t.Name, t.Description))
	}
	lease, err := account.Acquire(size)
	if err != nil {
		g.cut = noMoreRoom
		return false
	}
	g.leases = append(g.leases, lease)
	g.bytes += size
	for _, t := range fit {
		g.sum.Write(binary.AppendUvarint(nil, uint64(len(t.Raw))))
		g.sum.Write(t.Raw)
	}
	g.tools = append(g.tools, fit...)
	_, seen := g.cursors[p.next]
	switch {
	case p.next == "":
		return false
	case g.cut != "":
	case len(g.tools) == maxTools:
		g.cut = tooMany
	case seen:
		g.cut = goesRound
	case g.pages == maxPages:
		g.cut = tooLong
	default:
		g.cursors[p.next] = struct{}{}
		return true
	}
	return false
}

func (g *gathering) omit(o omission) {
	if g.left[o.why]++; g.left[o.why] <= maxExamples {
		g.example[o.why] = append(g.example[o.why], o)
	}
}

// reason says what is not in the list, for people: one line, escaped.
func (g *gathering) reason() string {
	text := ""
	switch g.cut {
	case tooMany:
		text = fmt.Sprintf("its list was cut after %d tools", len(g.tools))
	case tooLong:
		text = fmt.Sprintf("its list was cut after %d pages", g.pages)
	case goesRound:
		text = fmt.Sprintf("its list was cut after %d pages: it repeats a cursor", g.pages)
	case noMoreRoom:
		text = fmt.Sprintf("its list was cut after %d tools: the pod has no more room for it", len(g.tools))
	}
	for _, why := range []reason{notATool, tooBig, needsTask} {
		n := g.left[why]
		if n == 0 {
			continue
		}
		if text != "" {
			text += "; "
		}
		each := make([]string, 0, maxExamples+1)
		for _, o := range g.example[why] {
			name := "one without a name"
			if o.name != "" {
				name = jsonrpc.Show(o.name)
			}
			each = append(each, name+": "+o.text)
		}
		if n > maxExamples {
			each = append(each, "…")
		}
		text += fmt.Sprintf("%d of its tools are left out (%s)", n, strings.Join(each, "; "))
	}
	return kernel.Escape(text, 300)
}

// fetch begins to list the tools.
func (a *actor) fetch(c *kernel.Ctx) {
	a.list.next, a.list.again = newGathering(), false
	if !a.conn.greeting.tools {
		a.listed(c, "the server offers no tools")
		return
	}
	a.page(c, "")
}

func (a *actor) page(c *kernel.Ctx, cursor string) {
	a.ask(c, mcp.MethodToolsList, mcp.ListParams(cursor), a.patience(), a.paged)
}

// paged takes a page and goes on, or shows the list.
func (a *actor) paged(c *kernel.Ctx, result []byte, err error) {
	g := a.list.next
	if g == nil {
		return
	}
	var p page
	if err == nil {
		var texts *kernel.Lease // of the tools, until they are paid for or left out
		if texts, err = c.Account().Acquire(2 * int64(len(result))); err == nil {
			defer texts.Release()
			if p, err = parsePage(result, a.s.filter, a.s.cfg.SchemaBytes); a.modern {
				p = unmirrored(p)
			}
		}
	}
	switch {
	case err != nil:
		a.unlisted(c, err)
	case g.take(c.Account(), p):
		a.page(c, p.next)
	default:
		a.listed(c, g.reason())
	}
}

// unlisted is a list that could not be had. The first one of a connection ends it; after that the list before holds, and as it is known
// not to be the server's any more, it is asked for again.
func (a *actor) unlisted(c *kernel.Ctx, err error) {
	a.list.next.release()
	a.list.next = nil
	if a.conn.phase == listing {
		a.broken(c, fmt.Errorf("tools/list: %w", err))
		return
	}
	c.Refuse("list")
	c.Log().Warn("tools could not be listed again; the list before holds", "server", a.s.entry.Name, "error", shown(a.redacted(err)))
	a.list.last = c.Now()
	a.list.failed++
	if a.list.again {
		a.changed(c)
		return
	}
	a.list.timer = c.After(capability.RelistAfter(a.list.failed), refreshDue{})
}

// listed shows a list, unless it is the one that is there.
func (a *actor) listed(c *kernel.Ctx, why string) {
	g := a.list.next
	a.list.next = nil
	a.list.last, a.list.failed = c.Now(), 0
	c.Attr("filtered", g.hidden)
	for why, n := range g.left {
		for range n {
			c.Refuse(string(why))
		}
	}
	if g.cut != "" {
		c.Refuse(string(g.cut))
	}
	digest := [32]byte(g.sum.Sum(nil))
	same := a.list.list != nil && a.list.digest == digest
	a.list.pay(g.leases)
	a.list.bytes, a.list.digest = g.bytes, digest
	if !same {
		a.list.list = capability.NewList(g.tools, false)
		a.list.between = refreshEvery
	} else {
		a.list.between = min(2*max(a.list.between, refreshEvery), slowestRefresh)
	}
	if why != "" && why != a.list.reason {
		c.Log().Warn("not all tools of a provider are listed", "server", a.s.entry.Name, "reason", why, "tools", len(a.list.list.All()))
	}
	a.list.reason = why
	if a.conn.phase == listing {
		a.connected(c)
	} else {
		a.publish(c)
	}
	if a.list.again {
		a.changed(c)
	}
}

// slowestRefresh is between two refreshes of a list that did not change although the server says so: it is still seen within a second.
const slowestRefresh = 800 * time.Millisecond

// changed is a server's word that its tools have changed. One refresh runs, one may follow it, and there is time between them.
func (a *actor) changed(c *kernel.Ctx) {
	switch {
	case a.list.next != nil:
		a.list.again = true
	case a.list.timer != nil && a.list.failed == 0, a.conn == nil || a.conn.phase != ready:
	default:
		if a.list.timer != nil { // that of a refresh that failed may take longer
			a.list.timer()
		}
		wait := a.list.last.Add(max(a.list.between, refreshEvery)).Sub(c.Now())
		a.list.timer = c.After(max(0, wait), refreshDue{})
	}
}

// missed looks at what may have changed while the server could tell nobody.
func (a *actor) missed(c *kernel.Ctx, number uint64) {
	if a.is(number) && a.conn.greeting.changes {
		a.changed(c)
	}
}

func (a *actor) refreshDue(c *kernel.Ctx) {
	a.list.timer = nil
	if a.conn == nil || a.conn.phase != ready || a.list.next != nil {
		return
	}
	if a.conn.renewing { // whose end asks for a refresh
		return
	}
	a.fetch(c)
}
