package connection

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// Offers is what the agent says that it can do. *session.Learned implements it.
type Offers interface {
	// Now returns what is known without waiting, nil = nothing; final is false while waiting might bring more.
	Now() (info *acp.AgentInfo, final bool)
	// Wait waits for what there is to know until ctx ends, and returns what is known then. It blocks.
	Wait(ctx context.Context) *acp.AgentInfo
}

var _ Offers = (*session.Learned)(nil)

// offerKnown says that the wait for what the agent offers is over.
type offerKnown struct{}

// initialize answers itself. The first valid one opens the connection for everything else, at once: a client may send its next
// request without waiting for the answer. That the next frame may be larger is the reader's to see.
func (a *conn) initialize(c *kernel.Ctx, f jsonrpc.Frame) {
	in, bad := acp.ParseInitialize(f.Params)
	if bad != nil {
		a.client.deny(f.ID, bad)
		return
	}
	req, ok := a.enter(f, other, "", kernel.Ref{})
	if !ok {
		return
	}
	if a.client.hello.Load() == nil && !a.greet(c, in, req) {
		return
	}
	if _, final := a.offers.Now(); final {
		a.answerInitialize(req)
		return
	}
	if a.waiting = append(a.waiting, req); len(a.waiting) > 1 {
		return
	}
	wait := a.cfg.OfferWait
	c.Go("what the agent offers", func(ctx context.Context) kernel.Msg {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		a.offers.Wait(ctx)
		return offerKnown{}
	})
}

// greet keeps what the first initialize said. Later ones are answered and change nothing: sessions may already stand on it.
func (a *conn) greet(c *kernel.Ctx, in acp.Initialize, req uint64) bool {
	h := &hello{}
	if in.ClientSecret != "" {
		h.secret = sha256.Sum256([]byte(in.ClientSecret))
	}
	if n := len(in.Servers) + len(in.Capabilities); n > 0 {
		lease, err := a.client.account.Acquire(int64(n))
		if err != nil {
			a.client.Respond(control, req, nil, nil, overloadOf(err))
			return false
		}
		h.servers, h.capabilities = bytes.Clone(in.Servers), bytes.Clone(in.Capabilities)
		c.Own("what initialize declared", func(context.Context, error) { lease.Release() })
	}
	a.client.hello.Store(h)
	a.seat.entrance.greeted(a.seat)
	c.Attr("client", clientText(in))
	a.show(c)
	return true
}

// clientText is the client's name for the tree, which escapes it.
func clientText(in acp.Initialize) string {
	name := in.ClientTitle
	if name == "" {
		name = in.ClientName
	}
	if in.ClientBuild != "" {
		name += " " + in.ClientBuild
	}
	return name
}

func (a *conn) answerWaiting() {
	for _, req := range a.waiting {
		a.answerInitialize(req)
	}
	a.waiting = nil
}

func (a *conn) answerInitialize(req uint64) {
	offer := acp.Offer{Build: a.cfg.Version, Version: acp.ProtocolVersion, Serves: func(method string) bool { return a.server(method) != nil }}
	offer.Agent, _ = a.offers.Now()
	a.client.Respond(control, req, offer.Append(nil), nil, nil)
}
