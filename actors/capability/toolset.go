package capability

import (
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability/search"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// Toolset is what a source says of itself at one moment: an immutable snapshot
// that the source's actor publishes behind an atomic pointer.
type Toolset struct {
	State  State
	Reason string // why it failed or is gone, or is being tried again, or what of its tools is not listed: one line, escaped, without secrets; else empty
	// Cause is the same for a program: it may wrap [ErrNeedsLogin] or *[BreakerError]. nil where there is nothing to tell apart.
	Cause error
	List  *List // nil: it never listed
}

// List is one list of tools, as fetched or as declared. Immutable.
type List struct {
	Early bool // from the declaration, until the real list replaces it
	tools []*Tool
	names map[string]*Tool
	bytes []*kernel.Lease
	index func() *search.Index // made once, when the list is searched first
}

// Tool is one tool of a list. Immutable, apart from what is derived from it once.
type Tool struct {
	mcp.Tool
	list *List
	at   int // in it
	sum  atomic.Pointer[[32]byte]
}

// Sum is that of the tool's [Digest], made once.
func (t *Tool) Sum() [32]byte {
	if sum := t.sum.Load(); sum != nil {
		return *sum
	}
	sum := DigestOf(&t.Tool).Sum()
	t.sum.Store(&sum)
	return sum
}

// NewList makes a list of tools; of equal names the first counts. bytes pay for
// what the tools hold and belong to the list from now on.
func NewList(tools []mcp.Tool, early bool, bytes ...*kernel.Lease) *List {
	l := &List{Early: early, names: make(map[string]*Tool, len(tools)), bytes: bytes}
	for _, raw := range tools {
		if _, twice := l.names[raw.Name]; twice {
			continue
		}
		t := &Tool{Tool: raw, list: l, at: len(l.tools)}
		l.tools = append(l.tools, t)
		l.names[t.Name] = t
	}
	l.index = sync.OnceValue(func() *search.Index {
		docs := make([]search.Tool, len(l.tools))
		for i, t := range l.tools {
			docs[i] = search.Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema}
		}
		return search.NewIndex(docs)
	})
	return l
}

// doc is what a search knows of the tool.
func (t *Tool) doc() search.Doc { return t.list.index().Doc(t.at) }

// All is every tool of the list, in the server's order. A nil list has none.
func (l *List) All() []*Tool {
	if l == nil {
		return nil
	}
	return l.tools
}

// Tool finds a tool by its published name.
func (l *List) Tool(published string) (*Tool, bool) {
	if l == nil {
		return nil, false
	}
	t, ok := l.names[published]
	return t, ok
}

// Release gives back the bytes that pay for the list; who still reads it may. A
// source releases a list that it replaces itself. One that outlives its source is
// the desk's, which releases it once another list of that server replaces it or
// the desk ends.
func (l *List) Release() {
	if l == nil {
		return
	}
	for _, b := range l.bytes {
		b.Release()
	}
}

// Risk says what a tool may do, by its own hints: a help for the reader, never
// enforced.
func (t *Tool) Risk() string {
	switch {
	case t.ReadOnly():
		return "read"
	case t.Annotations.Destructive.True():
		return "destructive"
	}
	return "write"
}

// ReadOnly reports that the tool says of itself that it only reads: a repeat of
// its call does no harm. A nil tool does not.
func (t *Tool) ReadOnly() bool { return t != nil && t.Annotations.ReadOnly.True() }
