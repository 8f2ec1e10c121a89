package extension

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/proxy"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// oversize sends what is over a bound of the socket, and wants the contract's word for it.
func (e *Extension) oversize(ctx context.Context, r *rand.Rand) {
	p := e.peer
	switch r.IntN(3) {
	case 0:
		e.w.Faults.Injected("oversize", "frame")
		_, proxied := p.Socket().NetConn().(*proxy.Link)
		head := wire.Header(wire.TextFrame, true, int64(e.w.Limits.Frame)+1)
		written := make(chan struct{})
		p.Do(func(s *wire.Socket) error {
			err := s.Raw(head)
			close(written)
			return err
		})
		select {
		case <-ctx.Done():
			return
		case <-p.Gone():
			switch code, reason := p.Closed(); {
			case code == frameTooLarge:
				e.w.Book.Exercise(invariant.Told)
			case !before(code, reason, proxied):
				e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s: a frame over the bound closed it with %d %q, not %d", p.Name(), code, reason, frameTooLarge)
			}
		case <-time.After(Patience):
			select {
			case <-written:
				if !proxied { // else the network may not have brought it yet: that proves nothing
					e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s: a frame over the bound does not close it", p.Name())
				}
			default:
			}
		}
		e.drop()
	case 1:
		e.w.Faults.Injected("oversize", "request")
		reply, ok := e.await(ctx, p, p.Ask(acp.MethodSessionList, pad(e.w.Limits.Request), Patience))
		if !ok {
			return
		}
		if reply.Error == nil || reply.Error.Code != jsonrpc.Overload {
			e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s: a request over the bound was answered %v, not -32000", p.Name(), reply.Error)
			return
		}
		e.w.Book.Exercise(invariant.Told)
	default:
		e.w.Faults.Injected("oversize", "notification")
		p.Notify(acp.MethodSessionCancel, pad(e.w.Limits.Request))
		if e.fence(ctx, p) {
			e.w.Book.Exercise(invariant.Told)
		}
	}
}

// frameTooLarge is the code of a close for a frame over the bound.
const frameTooLarge = 1009

// before tells whether a socket with a frame over the bound on it may have ended before that was seen, or its last words were lost: such
// an end proves nothing. The pod's patience with a frame is no such end where the network has brought its head at once: a head says the
// length, and that is judged before any waiting.
func before(code int, reason string, proxied bool) bool {
	switch code {
	case 0, 1012, 1013:
		return true
	case 1008:
		return proxied || reason == "pong_timeout"
	}
	return false
}
