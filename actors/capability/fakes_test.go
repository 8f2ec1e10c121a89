package capability

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSource is a source whose server is a probe: the test reads each call from
// it and answers when it likes.
type fakeSource struct {
	server string
	set    atomic.Pointer[Toolset]
	probe  *kerneltest.Probe
	ref    kernel.Ref
}

func newSource(server string, state State, list *List) *fakeSource {
	s := &fakeSource{server: server, probe: kerneltest.NewProbe()}
	s.set.Store(&Toolset{State: state, List: list})
	return s
}

func (s *fakeSource) Provider() string { return BrowserProvider }
func (s *fakeSource) Server() string   { return s.server }
func (s *fakeSource) Tools() *Toolset  { return s.set.Load() }
func (s *fakeSource) Call(c *kernel.Ctx, call Call) (kernel.Ticket, error) {
	if s.ref.IsZero() {
		call.Bytes.Release()
		return kernel.Ticket{}, ErrDetached
	}
	return c.Request(s.ref, call)
}

// tools makes a list: "name", or "name!" for a tool that only reads.
func tools(names ...string) *List { return listOf(false, names...) }

func listOf(early bool, names ...string) *List {
	var raw []string
	for _, n := range names {
		n, reads := strings.CutSuffix(n, "!")
		raw = append(raw, fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"annotations":{"readOnlyHint":%v}}`, n, n, reads))
	}
	list, bad, err := mcp.ParseTools([]byte("["+strings.Join(raw, ",")+"]"), 1000)
	if err != nil || len(bad) > 0 {
		panic(fmt.Sprint(err, bad))
	}
	return NewList(list, early)
}

// trail is an audit that keeps what was recorded.
type trail struct {
	mu      sync.Mutex
	entries []Entry
	on      func(Entry) // set between calls
}

func (t *trail) Record(e Entry) {
	if t.on != nil {
		t.on(e)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, e)
}

func (t *trail) all() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.entries)
}

// viewOf is a view as a desk would publish it.
func viewOf(g *Grants, declared []string, sources ...*fakeSource) *View {
	v := &View{naming: true, grants: g, declared: map[string]struct{}{}, servers: map[string]server{}}
	for _, d := range declared {
		v.declared[d] = struct{}{}
	}
	var offered []binding
	for _, s := range sources {
		v.declared[s.server] = struct{}{}
		at := server{provider: s.Provider(), source: s, settled: s.Tools().State != Connecting, named: s.Tools().List != nil && s.Tools().List.Early}
		if s.Tools().State == Detached {
			at.source, at.last = nil, s.Tools().List
		}
		v.servers[s.server] = at
		for _, t := range at.list().All() {
			if g.Tool(s.server, t.Name) {
				offered = append(offered, of(s.server, t.Name))
			}
		}
	}
	v.names = v.names.extend(offered)
	return v
}

func all(servers ...string) *Grants {
	var list []Grant
	for _, s := range servers {
		list = append(list, Grant{Name: s, Tools: []string{"*"}})
	}
	return NewGrants(list)
}

// of is a tool of a server that a client declared.
func of(server, tool string) binding { return binding{place{server: server}, tool} }

// configuredTool is a tool of a configured server.
func configuredTool(server, tool string) binding { return binding{place{true, server}, tool} }
