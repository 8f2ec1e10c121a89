package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// acceptPause is between two tries to accept.
const acceptPause = 50 * time.Millisecond

// Spec is the actor `bridge`.
func Spec(cfg Config) kernel.Spec {
	cfg = cfg.withDefaults()
	return kernel.Spec{
		Name: "bridge", Kind: "bridge", Restart: kernel.Permanent,
		Scope: "bridge_bytes", Limit: Bytes(cfg.Connections),
		New: func() kernel.Behavior { return &actor{cfg: cfg, agents: map[kernel.Ref][32]byte{}} },
	}
}

// Bytes is what the bridge's account holds at most with that many connections.
func Bytes(connections int) int64 { return int64(connections)*relayBytes + smallLines }

type actor struct {
	cfg    Config
	agents map[kernel.Ref][32]byte // of each relay that was let in, whose it is
	last   uint64
}

type (
	// connected is told by the goroutine that accepts.
	connected struct{ conn net.Conn }
	// admit is asked by a relay that knows whose it is; the answer says whether it is let in.
	admit struct {
		relay kernel.Ref
		agent [32]byte
	}
	// ended is the end of a goroutine.
	ended struct{ err error }
)

var errNotConfigured = errors.New("bridge: Socket, Find and Facade are needed")

// Start implements kernel.Starter.
func (a *actor) Start(c *kernel.Ctx) error {
	if a.cfg.Socket == nil || a.cfg.Find == nil || a.cfg.Facade == nil {
		return errNotConfigured
	}
	c.Attr("listen", a.cfg.Socket.Path())
	self, socket, limit := c.Self(), a.cfg.Socket, a.cfg.Connections
	c.Go("accept", func(ctx context.Context) kernel.Msg {
		view := socket.View(limit, func(net.Addr) { self.CountRefusal("bridge_connections") })
		defer context.AfterFunc(ctx, func() { _ = view.Close() })()
		for {
			conn, err := view.Accept()
			switch {
			case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
				return ended{err}
			case err != nil: // the process has no descriptor left, say: what connects waits in the backlog
				self.CountRefusal("accept")
				select {
				case <-time.After(acceptPause):
				case <-ctx.Done():
				}
				continue
			}
			if err := self.Tell(connected{conn}); err != nil {
				_ = conn.Close()
			}
		}
	})
	return nil
}

// Receive implements kernel.Behavior.
func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case connected:
		a.last++
		_, err := c.Spawn(relaySpec("relay-"+strconv.FormatUint(a.last, 10), a.cfg, m.conn, c.Self()))
		if err != nil { // it is stopping
			_ = m.conn.Close()
		}
	case admit:
		n := 0
		for _, agent := range a.agents {
			if agent == m.agent {
				n++
			}
		}
		if n < a.cfg.ConnectionsOfAgent {
			a.agents[m.relay] = m.agent
		}
		if q := c.Question(); q != nil {
			q.Answer(n < a.cfg.ConnectionsOfAgent, nil)
		}
	case kernel.Exited:
		delete(a.agents, m.Ref)
	case ended:
		return fmt.Errorf("bridge: the socket accepts no more: %w", m.err)
	}
	return nil
}
