package capability

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// fakeServer is a configured server: the test reads what it is asked and answers when it likes.
type fakeServer struct {
	*fakeSource
	denied    []string
	discovers atomic.Int32
}

// discover is the question that a fakeServer gets when it is asked to list.
type discover struct {
	server string
	want   Want
}

func newServer(name string, state State, list *List) *fakeServer {
	return &fakeServer{fakeSource: newSource(name, state, list)}
}

// but has a tool_filter that does not allow these.
func (s *fakeServer) but(denied ...string) *fakeServer { s.denied = denied; return s }

func (s *fakeServer) Provider() string        { return s.server }
func (s *fakeServer) Allows(tool string) bool { return !slices.Contains(s.denied, tool) }
func (s *fakeServer) become(t Toolset)        { s.set.Store(&t) }
func (s *fakeServer) lists(names ...string)   { s.become(Toolset{State: Ready, List: tools(names...)}) }
func (s *fakeServer) fails(why string) {
	s.become(Toolset{State: Failed, Reason: why, List: s.Tools().List})
}
func (s *fakeServer) asked(t *testing.T) *kernel.Question {
	t.Helper()
	q, _ := s.wanted(t)
	return q
}

func (s *fakeServer) wanted(t *testing.T) (*kernel.Question, Want) {
	t.Helper()
	m, q := kerneltest.AwaitQuestion[discover](t, s.probe)
	return q, m.want
}

func (s *fakeServer) Discover(c *kernel.Ctx, want Want) (kernel.Ticket, error) {
	if s.ref.IsZero() {
		return kernel.Ticket{}, ErrDetached
	}
	s.discovers.Add(1)
	return c.Request(s.ref, discover{s.server, want})
}

// found answers one discovery.
func found(q *kernel.Question) {
	q.Answer(Discovered{}, nil)
	synctest.Wait()
}

// Bind implements Bound.
func (s *fakeServer) Bind(ref kernel.Ref) { s.ref = ref }

// fakeIsolated is one of which each session has its own.
type fakeIsolated struct {
	*fakeServer
	made []*fakeServer
}

func (s *fakeIsolated) Instance(string) (Configured, kernel.Spec) {
	own := newServer(s.server, Idle, nil).but(s.denied...)
	s.made = append(s.made, own)
	return own, own.probe.Spec(s.server)
}

// runWith is run of a desk with configured servers, which are actors beside it.
func runWith(t *testing.T, cfg DeskConfig, servers []*fakeServer, test func(w *world)) {
	t.Helper()
	for _, s := range servers {
		cfg.Configured = append(cfg.Configured, s)
	}
	run(t, cfg, func(w *world) {
		for i, s := range servers {
			s.probe = kerneltest.NewProbe() // of this bubble
			s.ref = kerneltest.Spawn(t, w.parent, s.probe.Spec(fmt.Sprintf("configured-%d", i)))
		}
		test(w)
	})
}
