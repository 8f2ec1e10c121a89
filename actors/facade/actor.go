package facade

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// headerBytes and headerLines bound a request's head: each line takes a place in a map, however short it is.
	headerBytes = 16 << 10
	headerLines = 100
	// lastWords is how long clients have at a stop to read the answers of what was open.
	lastWords = 2 * time.Second
)

// Spec is the actor `facade`.
func Spec(cfg Config) kernel.Spec {
	cfg = cfg.withDefaults()
	return kernel.Spec{
		Name: "facade", Kind: "facade", Restart: kernel.Permanent,
		Scope: "facade_bytes", Limit: cfg.Bytes,
		New: func() kernel.Behavior { return &actor{cfg: cfg} },
	}
}

type actor struct{ cfg Config }

// served is the end of the HTTP server.
type served struct{ err error }

// Start implements kernel.Starter: the desk of anonymous callers first, so that the first request finds it.
func (a *actor) Start(c *kernel.Ctx) error {
	if a.cfg.Socket == nil {
		return errNoSocket
	}
	view := &atomic.Pointer[capability.View]{}
	desk := a.cfg.Desk
	desk.Tag, desk.View = "-", view
	ref, err := c.Spawn(capability.DeskSpec("desk", desk))
	if err != nil {
		return fmt.Errorf("facade: the desk of anonymous callers: %w", err)
	}
	known := &clients{}
	questions, err := c.Spawn(questionsSpec(known))
	if err != nil {
		return fmt.Errorf("facade: what clients are asked: %w", err)
	}
	f := newFront(c, a.cfg, builtInTools, questions, known)
	f.desk, f.view = ref, view
	if a.cfg.Inside != nil {
		a.cfg.Inside.front.Store(f)
	}
	c.Attr("listen", a.cfg.Socket.Addr().String())
	c.Attr("transport", "stateless")
	c.Attr("anonymous", !a.cfg.ClosedToAnonymous)
	socket, limits := a.cfg.Socket, a.cfg
	c.Go("http", func(ctx context.Context) kernel.Msg { return served{f.listen(ctx, socket, limits.Connections)} })
	return nil
}

// Receive implements kernel.Behavior.
func (a *actor) Receive(_ *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case served:
		return fmt.Errorf("facade: the HTTP server ended: %w", m.err)
	case kernel.Exited:
		if m.Next.IsZero() {
			return fmt.Errorf("facade: %s does not come back: %w", m.Ref.Name(), m.Cause)
		}
	}
	return nil
}

// listen serves the socket until ctx ends, and then until what is open has been answered. It leaves the socket open.
func (f *front) listen(ctx context.Context, socket *door.Socket, connections int) error {
	// Who holds connections without a use for them, or sends a head that never ends, keeps nobody out.
	view := socket.View(connections, func(net.Addr) { f.count("connections") })
	view.Displaces(func(net.Addr) { f.count("idle_connection") }).ByAge()
	panics := door.Panics(f.panicked)
	srv := &http.Server{
		Handler: panics.Guard(f),
		// net/http would answer OPTIONS * by itself, whoever asks.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            min(headerTimeout, f.cfg.ReadTimeout),
		// Holds for a body that a refusal leaves unread as well; readBody lifts it once a body has come.
		ReadTimeout:    f.cfg.ReadTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: headerBytes,
		ErrorLog:       panics.ErrorLog(f.log),
		BaseContext:    func(net.Listener) context.Context { return ctx },

		MaxHeaderValueCount: headerLines,
	}
	err := view.Serve(ctx, srv, lastWords)
	f.open.Lock() // all requests have ended, and none begins any more
	if err == nil {
		return kernel.ErrDone // it was told to
	}
	return err
}
