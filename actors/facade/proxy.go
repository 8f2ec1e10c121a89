package facade

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

// ProxyConfig is an address of one session's own, where its capabilities are tools of their own. Zero times and limits take the
// defaults of [Config].
type ProxyConfig struct {
	// Callers resolves tokens, Of says which of them are this session's: all others are none here. Required.
	Callers Callers
	Of      *atomic.Pointer[capability.View]
	Desk    kernel.Ref // of that session
	// Ready is told the address once, before the actor runs: http://127.0.0.1:<port>/mcp.
	Ready func(url string)
	// Places bounds how many proxies there are in the pod; nil = nothing does.
	Places *ProxyPlaces

	Version      string
	RequestBytes int64
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
}

// ProxyConnections is how many HTTP connections one proxy has at once; past it the one that has been idle longest is closed.
const ProxyConnections = 8

// ProxyFootprint is what a proxy costs beside its connections, in bytes.
const ProxyFootprint = 64 << 10

// ProxyPlaces are the places for proxies.
type ProxyPlaces struct {
	taken atomic.Int64
	limit int64
}

// NewProxyPlaces makes that many.
func NewProxyPlaces(limit int) *ProxyPlaces { return &ProxyPlaces{limit: int64(limit)} }

func (p *ProxyPlaces) take() bool {
	if p == nil {
		return true
	}
	if p.taken.Add(1) > p.limit {
		p.taken.Add(-1)
		return false
	}
	return true
}

func (p *ProxyPlaces) leave() {
	if p != nil {
		p.taken.Add(-1)
	}
}

var errNoPlace = errors.New("there are as many proxies of sessions as there may be: wait until a session has ended")

// ProxySpec is the actor of a proxy, a temporary child of its session. It opens a listener of its own on a free port of 127.0.0.1, and that
// ends with it. What it answers, and to whom, is what the facade does, but for three things: a request needs a token of this session,
// else it is 401; tools/list shows the session's capabilities, each under its own name, in place of the two built-in tools; and a
// call of one is the execution of that capability.
func ProxySpec(cfg ProxyConfig) kernel.Spec {
	return kernel.Spec{Name: "proxy", Kind: "proxy", Restart: kernel.Temporary, New: func() kernel.Behavior { return &proxy{cfg: cfg} }}
}

type proxy struct{ cfg ProxyConfig }

// Start implements kernel.Starter.
func (a *proxy) Start(c *kernel.Ctx) error {
	if !a.cfg.Places.take() {
		return errNoPlace
	}
	c.Own("place", func(context.Context, error) { a.cfg.Places.leave() })
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the address of a session's proxy: %w", err)
	}
	c.Own("listener", func(context.Context, error) { _ = listener.Close() })
	socket, err := door.NewSocket(listener)
	if err != nil {
		return err
	}
	known := &clients{}
	questions, err := c.Spawn(questionsSpec(known))
	if err != nil {
		return fmt.Errorf("what clients of a proxy are asked: %w", err)
	}
	cfg := Config{
		Socket: socket, Callers: ofSession{a.cfg.Callers, a.cfg.Of}, ClosedToAnonymous: true, Version: a.cfg.Version,
		RequestBytes: a.cfg.RequestBytes, ReadTimeout: a.cfg.ReadTimeout, WriteTimeout: a.cfg.WriteTimeout,
	}.withDefaults()
	f := newFront(c, cfg, ownTools, questions, known)
	f.desk, f.view = a.cfg.Desk, a.cfg.Of
	c.Attr("listen", socket.Addr().String())
	c.Go("http", func(ctx context.Context) kernel.Msg { return served{f.listen(ctx, socket, ProxyConnections)} })
	a.cfg.Ready("http://" + socket.Addr().String() + endpoint)
	return nil
}

// Receive implements kernel.Behavior.
func (a *proxy) Receive(_ *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case served:
		return fmt.Errorf("the HTTP server of a session's proxy ended: %w", m.err)
	case kernel.Exited:
		if m.Next.IsZero() {
			return fmt.Errorf("proxy: %s does not come back: %w", m.Ref.Name(), m.Cause)
		}
	}
	return nil
}

// ofSession are the callers of one session: whoever comes with another's token is nobody here.
type ofSession struct {
	callers Callers
	view    *atomic.Pointer[capability.View]
}

// Resolve implements Callers.
func (o ofSession) Resolve(sha [32]byte) (capability.Caller, bool) {
	caller, live := o.callers.Resolve(sha)
	if !live || caller.View != o.view {
		return capability.Caller{}, false
	}
	return caller, true
}
