package pod

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 10 * time.Second // nothing here reads a body; this is how long one may keep its connection
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
	headerLines   = 100             // a browser sends some twenty; each takes a place in a map, however short it is
	lastWords     = 2 * time.Second // how long at a stop the open requests of a server may still be answered
)

// serverConfig describes an actor that serves plain HTTP on a socket of pod's.
type serverConfig struct {
	name         string
	socket       *door.Socket
	connections  int           // open at once; one more is closed as it is accepted
	writeTimeout time.Duration // of a whole answer; 0 = the handler sets its own deadlines
	handler      func(self kernel.Ref) http.Handler
	stopping     func() // told when the stop begins, so that endless answers end; may be nil
	attrs        map[string]any
}

// serverSpec is the actor: one generation serves one view of the socket.
func serverSpec(cfg serverConfig) kernel.Spec {
	return kernel.Spec{Name: cfg.name, Kind: cfg.name, Restart: kernel.Permanent, New: func() kernel.Behavior { return &server{cfg: cfg} }}
}

type server struct{ cfg serverConfig }

// served is the end of the HTTP server.
type served struct{ err error }

// Start implements kernel.Starter.
func (s *server) Start(c *kernel.Ctx) error {
	c.Attr("listen", s.cfg.socket.Addr().String())
	for name, value := range s.cfg.attrs {
		c.Attr(name, value)
	}
	self, log := c.Self(), c.Log()
	panics := door.Panics(func(value string, stack []byte) {
		self.CountRefusal("panic")
		log.Error("a request panicked", "server", s.cfg.name, "panic", jsonrpc.Show(value), "stack", string(stack))
	})
	srv := &http.Server{
		Handler: panics.Guard(bodiesEnd(s.cfg.handler(self))),
		// net/http would answer OPTIONS * by itself, whoever asks.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               headerBytes,
		MaxHeaderValueCount:          headerLines,
		WriteTimeout:                 s.cfg.writeTimeout,
		ErrorLog:                     panics.ErrorLog(log),
	}
	view := s.cfg.socket.View(s.cfg.connections, func(net.Addr) { self.CountRefusal("http_connections") })
	view.Displaces(func(net.Addr) { self.CountRefusal("http_displaced") })
	c.Go("http", func(ctx context.Context) kernel.Msg { return served{s.serve(ctx, srv, view)} })
	return nil
}

// bodiesEnd bounds what net/http does after an answer: it reads the rest of the request's body to use the connection again, and
// without a deadline a peer that announces a body and never sends it would hold one of the connections for ever.
func bodiesEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// serve accepts until ctx ends, and then waits a little for what is open. The socket stays open.
func (s *server) serve(ctx context.Context, srv *http.Server, view *door.View) error {
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	if s.cfg.stopping != nil {
		defer context.AfterFunc(ctx, s.cfg.stopping)()
	}
	if err := view.Serve(ctx, srv, lastWords); err != nil {
		return err
	}
	return kernel.ErrDone // it was told to
}

// Receive implements kernel.Behavior: a server that ended is a crash, and the next generation takes a fresh view.
func (s *server) Receive(_ *kernel.Ctx, m kernel.Msg) error {
	if m, ok := m.(served); ok {
		return fmt.Errorf("%s: the HTTP server ended: %w", s.cfg.name, m.err)
	}
	return nil
}
