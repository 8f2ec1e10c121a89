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
			switch code := p.CloseCode(); code {
			case 1009:
				e.w.Book.Exercise(invariant.Told)
			case 0, 1008, 1012, 1013: // it ended before that frame was seen, or its last words were lost: that proves nothing
			default:
				e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s: a frame over the bound closed it with %d, not 1009", p.Name(), code)
			}
		case <-time.After(Patience):
			_, proxied := p.Socket().NetConn().(*proxy.Link)
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
