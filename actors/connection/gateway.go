package connection

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Gateway is what the pod composes: the HTTP handler of GET /acp and the spec of the actor that supervises the connections.
type Gateway struct {
	cfg      Config
	offers   Offers
	sessions func() kernel.Ref
	stats    *counters
	entrance *entrance
	upgrades turnstile
	large    atomic.Pointer[kernel.Account]
	ref      atomic.Pointer[kernel.Ref]
	draining atomic.Pointer[time.Duration]
}

// New prepares a gateway; nothing runs before its Spec is started. sessions gives the actor that takes session.Open, Resume
// and List; it is called for each of them and must not block, so that a later generation is found.
func New(cfg Config, sessions func() kernel.Ref, offers Offers) *Gateway {
	g := &Gateway{cfg: cfg.withDefaults(), offers: offers, sessions: sessions, stats: newCounters()}
	g.entrance = newEntrance(&g.cfg)
	return g
}

// Spec is the `gateway` actor: Permanent, below the root, spawned before `sessions`, so that it stops after them and what they
// have left to say, an answer or an mcp/disconnect, still finds its socket.
func (g *Gateway) Spec() kernel.Spec {
	return kernel.Spec{
		Name: "gateway", Kind: "gateway", Restart: kernel.Permanent, New: func() kernel.Behavior { return &gateway{g: g} },
		Grace: g.grace() + time.Second,
	}
}

// grace covers a connection's flush, its close frame and its linger, and what the kernel gives everybody to get a processor.
func (g *Gateway) grace() time.Duration {
	return 2*g.cfg.FlushTimeout + g.cfg.SlowGrace + kernel.DefaultGrace
}

// Drain refuses upgrades with 503 from now on, for good, and tells every client _acpod/draining with the time that open turns
// still have. It does not block and does not stop anything: that is the kernel's shutdown.
func (g *Gateway) Drain(deadline time.Duration) {
	g.draining.Store(&deadline)
	if ref := g.ref.Load(); ref != nil {
		_ = ref.Signal(draining{deadline}) // refused: it is stopping already
	}
}

// Stats is what was counted so far. Safe from any goroutine.
func (g *Gateway) Stats() Stats {
	s := g.stats.snapshot()
	s.Connections = g.entrance.taken()
	return s
}

// halfOf is an account of its own for the messages above the early limit that are under way: half of what the pod has, but
// room for one message at least. Without it, sockets that send headers only could hold all of the pod's bytes for as long as a
// frame may take.
func halfOf(limit, frame int64) *kernel.Account {
	return kernel.NewAccount("large_frames", max(limit/2, 2*frame))
}

func drainingFrame(deadline time.Duration) []byte {
	params := fmt.Appendf(nil, `{"deadline_ms":%d}`, deadline.Milliseconds())
	return jsonrpc.AppendNotification(nil, acp.MethodDraining, params)
}

// gateway supervises the connections. A connection never comes back: its socket is gone.
type gateway struct {
	g     *Gateway
	seats map[kernel.Ref]*seat
	owed  *kernel.Obligation // while there are seats
}

// accept asks for an actor for a socket that was upgraded. The answer is nil or the error of the spawn.
type accept struct{ seat *seat }

// Start implements kernel.Starter.
func (w *gateway) Start(c *kernel.Ctx) error {
	w.seats = map[kernel.Ref]*seat{}
	w.g.large.CompareAndSwap(nil, halfOf(c.Kernel().Account().Limit(), w.g.cfg.FrameBytes))
	self := c.Self()
	w.g.ref.Store(&self)
	w.g.upgrades.open()
	return nil
}

// Stop implements kernel.Stopper: it waits for upgrades under way, which end soon now that no more actors are spawned.
func (w *gateway) Stop(*kernel.Ctx, error) {
	timer := time.NewTimer(w.g.grace())
	defer timer.Stop()
	select {
	case <-w.g.upgrades.close():
	case <-timer.C:
	}
}

// Receive implements kernel.Behavior.
func (w *gateway) Receive(c *kernel.Ctx, m kernel.Msg) error {
	defer func() { c.Attr("handshakes", w.g.entrance.desk.Used(w.g.entrance.handshakes)) }()
	switch m := m.(type) {
	case accept:
		if err := w.spawn(c, m.seat); err != nil {
			c.Question().Fail(err)
			return nil
		}
		c.Question().Answer(struct{}{}, nil)
	case kernel.Exited:
		if s := w.seats[m.Ref]; s != nil {
			delete(w.seats, m.Ref)
			s.leave()
			if len(w.seats) == 0 {
				w.owed.Discharge()
			}
		}
	case draining:
		for _, child := range c.Children() {
			_ = child.Signal(m) // refused: it is ending
		}
	}
	return nil
}

func (w *gateway) spawn(c *kernel.Ctx, s *seat) error {
	g := w.g
	ref, err := c.Spawn(kernel.Spec{
		Name: "conn-" + s.name, Kind: "connection", Account: s.account, Grace: g.grace(),
		New: func() kernel.Behavior {
			return &conn{seat: s, cfg: &g.cfg, offers: g.offers, sessions: g.sessions, stats: g.stats}
		},
	})
	if err != nil {
		return err
	}
	w.seats[ref] = s
	g.entrance.actor(s, ref)
	if deadline := g.draining.Load(); deadline != nil { // it was let in just before, and missed what the others were told
		_ = ref.Signal(draining{*deadline})
	}
	if len(w.seats) == 1 {
		seats := w.seats
		w.owed = c.Own("sockets", func(context.Context, error) { // runs after the connections' own: what they left open
			for _, s := range seats {
				s.leave()
			}
		})
	}
	return nil
}
