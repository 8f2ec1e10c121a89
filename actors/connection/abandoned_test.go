package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// graceClock is the wall clock, save that whatever takes longer than a grace waits for the test.
type graceClock struct {
	mu   sync.Mutex
	long map[*func()]bool
}

func (g *graceClock) Now() time.Time { return time.Now() }

func (g *graceClock) AfterFunc(d time.Duration, f func()) func() bool {
	if d < kernel.DefaultGrace {
		return time.AfterFunc(d, f).Stop
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := &f
	g.long[key] = true
	return func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		was := g.long[key]
		delete(g.long, key)
		return was
	}
}

// ring ends every grace that runs.
func (g *graceClock) ring() {
	g.mu.Lock()
	due := g.long
	g.long = map[*func()]bool{}
	g.mu.Unlock()
	for f := range due {
		(*f)()
	}
}

// stuckLog holds whoever logs a record that it waits for, once.
type stuckLog struct {
	slog.Handler
	is   func(slog.Record) bool
	once *sync.Once
	in   chan struct{}
	gate chan struct{}
}

func (h stuckLog) Enabled(context.Context, slog.Level) bool { return true }
func (h stuckLog) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h stuckLog) Handle(_ context.Context, r slog.Record) error {
	if h.is(r) {
		h.once.Do(func() {
			close(h.in)
			<-h.gate
		})
	}
	return nil
}

// writesLarge tells the record of a large message that the writer has in hand.
func writesLarge(r slog.Record) bool {
	out, large := false, false
	r.Attrs(func(a slog.Attr) bool {
		out = out || a.Key == "dir" && a.Value.String() == "out"
		large = large || a.Key == "bytes" && a.Value.Kind() == slog.KindInt64 && a.Value.Int64() > fragmentBytes
		return true
	})
	return out && large
}

// TestAnAbandonedConnectionGivesEverythingBackWhenTheLastOfItHasEnded holds a connection with work of all kinds open: in a turn, in its writer with a
// message in hand, in its last words; until it is given up. Then what held it goes on.
func TestAnAbandonedConnectionGivesEverythingBackWhenTheLastOfItHasEnded(t *testing.T) {
	large := strings.Repeat("x", 300_000) // more than one fragment
	never := func(slog.Record) bool { return false }
	for what, tc := range map[string]struct {
		is   func(slog.Record) bool // the record in which it is held; none: it is held in a turn
		play func(p *testPod, c *peer, s *testSession)
	}{
		"in a turn": {never, func(p *testPod, c *peer, _ *testSession) {
			p.offers.held = make(chan struct{})
			p.offers.hold = make(chan struct{})
			c.send(helloRequest)
			for n := range 50 { // behind it in the mailbox
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"behind-%d","method":"session/list"}`, n))
			}
		}},
		"in its writer, with a message in hand": {writesLarge, func(*testPod, *peer, *testSession) {}},
		"in its last words":                     {func(r slog.Record) bool { return r.Message == "connection ended" }, func(*testPod, *peer, *testSession) {}},
	} {
		t.Run(what, func(t *testing.T) {
			clock := &graceClock{long: map[*func()]bool{}}
			log := stuckLog{Handler: slog.DiscardHandler, is: tc.is, once: new(sync.Once), in: make(chan struct{}), gate: make(chan struct{})}
			p := startPodIn(t, Config{Trace: true, FlushTimeout: 50 * time.Millisecond}, kernel.Options{Clock: clock, Logger: slog.New(log), Release: time.Second})
			c := p.hello()
			s := p.open(c, 1)
			p.prompt(c, s, 7, "never answered")
			s.request(t, tunnel.Out{Stream: "t", Method: "mcp/message", Params: []byte(`{}`)})
			c.message()
			in, gate := log.in, log.gate
			tc.play(p, c, s)
			if p.offers.hold != nil {
				in, gate = p.offers.held, p.offers.hold
				<-in
			}
			lease, err := s.ref.Account().Acquire(int64(len(large)))
			must(t, err)
			must(t, s.client.Offer(s.id, []byte(`{"jsonrpc":"2.0","method":"_test/large","params":"`+large+`"}`), lease, nil))
			for n := range 20 {
				must(t, s.client.Notify("t", fmt.Sprintf("_test/%d", n), []byte(`{}`)))
			}
			if p.offers.hold == nil && what != "in its last words" {
				<-in
			}
			ref := s.client.(*client).self
			ref.Stop(&Exit{Reason: ProtocolError, Err: errors.New("the test ends it")})
			<-in
			done := func() bool {
				select {
				case <-ref.Done():
					return true
				default:
					clock.ring()
					return false
				}
			}
			kerneltest.Eventually(t, "it is given up", done)
			if !errors.Is(ref.Cause(), kernel.ErrAbandoned) {
				t.Fatalf("it ended with %v", ref.Cause())
			}
			kerneltest.Eventually(t, "its socket is closed, its seat is given back, its book is closed", func() bool {
				_, requests, asks := s.client.(*client).book.counts()
				return p.gateway.Stats().Connections == 0 && requests+asks == 0
			})
			close(gate)
			kerneltest.Eventually(t, "nothing of it is in the tree", func() bool { return len(p.conns()) == 0 })
			s.ref.Stop(nil)
			<-s.ref.Done()
			kerneltest.Eventually(t, "nothing is charged any more", func() bool { return p.kernel.Account().Used() == 0 })
			if n := s.client.(*client).account.Used(); n != 0 {
				t.Errorf("its account has %d bytes", n)
			}
			if n := p.gateway.Stats().Exits[ProtocolError]; n != 1 {
				t.Errorf("its end was counted %d times", n)
			}
		})
	}
}

func TestABookThatIsClosedEntersNothing(t *testing.T) {
	l := newLedger()
	if _, ok := l.enter(&openRequest{class: prompt}); !ok || l.inFlight() != 1 {
		t.Error("an open book entered nothing")
	}
	l.close()
	if req, ok := l.enter(&openRequest{class: prompt}); ok || req != 0 || l.inFlight() != 0 {
		t.Error("a late turn of an abandoned connection left a request that nobody answers")
	}
}
