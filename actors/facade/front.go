package facade

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/door"
	"github.com/acpod/acpod/runtime/kernel"
)

// offer is what a front shows as tools.
type offer uint8

const (
	builtInTools offer = iota // the two built-in tools, and the direct ones
	ownTools                  // the session's capabilities
)

// newFront is what a generation of an actor serves with.
func newFront(c *kernel.Ctx, cfg Config, shows offer, questions kernel.Ref, known *clients) *front {
	log := c.Log()
	f := &front{
		cfg: cfg, shows: shows, rules: cfg.Socket.Rules(), self: c.Self(), account: c.Account(), questions: questions, clients: known,
		negotiator: newNegotiator(cfg.Version, shows, log), log: log, stopping: c.Context().Done(),
	}
	f.serves(c.Context())
	return f
}

// front is what the requests of one generation share: all of it is fixed when the generation starts, and none of it is
// written by a request.
type front struct {
	cfg        Config
	shows      offer
	rules      door.Rules
	self       kernel.Ref
	account    *kernel.Account
	desk       kernel.Ref
	view       *atomic.Pointer[capability.View]
	negotiator *negotiator
	questions  kernel.Ref
	clients    *clients
	log        *slog.Logger
	// stopping is closed when the generation stops: open requests are answered then.
	stopping <-chan struct{}
	// within derives the context of a message that came another way than by HTTP: it ends with the generation, too.
	within func(context.Context) (context.Context, func())
	// open is held for reading by each request, and taken for good once the generation has stopped.
	open sync.RWMutex
}

// serves has the end of a generation end what is served beside the HTTP server, which does that for its own.
func (f *front) serves(generation context.Context) {
	f.within = func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(generation, func() { cancel(context.Cause(generation)) })
		return ctx, func() { stop(); cancel(nil) }
	}
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.open.TryRLock() {
		panic(http.ErrAbortHandler) // the connection is closed already
	}
	defer f.open.RUnlock()
	f.guard(w, r)
}

// panicked tells of a panic, which ends its own request; the others go on.
func (f *front) panicked(value string, stack []byte) {
	f.count("panic")
	f.log.Error("a request of the facade panicked", "panic", jsonrpc.Show(value), "stack", string(stack))
}

// anonymous is the caller of a request without a live token: all of them are one.
func (f *front) anonymous() capability.Caller {
	return capability.Caller{Desk: f.desk.Current(), View: f.view, Tag: "-", Account: f.account, Audit: f.cfg.Desk.Audit}
}

// count makes a refusal visible in the actor's node.
func (f *front) count(reason string) { f.self.CountRefusal(reason) }
