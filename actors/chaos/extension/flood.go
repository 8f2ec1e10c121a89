package extension

import (
	"context"
	"math/rand/v2"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// flood sends more than anybody could want.
func (e *Extension) flood(ctx context.Context, r *rand.Rand) {
	p, n := e.peer, 500+r.IntN(2500)
	s := e.slots[r.IntN(len(e.slots))]
	if s.server == nil {
		return
	}
	switch r.IntN(7) {
	case 0:
		e.w.Faults.Injected("flood", "updates")
		params := jsonrpc.AppendString([]byte(`{"sessionId":`), s.id)
		params = append(params, `,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"u"}}}`...)
		repeatFrame(p, n, jsonrpc.AppendNotification(nil, acp.MethodSessionUpdate, params))
	case 1:
		e.w.Faults.Injected("flood", "notifications")
		repeatFrame(p, n, jsonrpc.AppendNotification(nil, "_chaos/notice", pad(r.IntN(4000))))
	case 2:
		e.w.Faults.Injected("flood", "list_changed")
		params := append(jsonrpc.AppendString([]byte(`{"connectionId":`), s.server.ID+"#1"), `,"method":"notifications/tools/list_changed"}`...)
		repeatFrame(p, n/10, jsonrpc.AppendNotification(nil, acp.MethodMCPMessage, params))
	case 3:
		e.w.Faults.Injected("flood", "pings")
		p.Do(func(s *wire.Socket) error {
			for range n {
				if err := s.Frame(wire.PingFrame, true, []byte("flood")); err != nil {
					return err
				}
			}
			return nil
		})
	case 4, 5:
		e.w.Faults.Injected("flood", "nonsense")
		e.wear(ctx, p)
		return
	default:
		e.w.Faults.Injected("flood", "unknown_methods")
		for range n {
			p.Ask("_chaos/unknown", nil, 2*Patience)
		}
	}
	e.fence(ctx, p)
}

// muchNonsense is several times what the pod refuses before it closes a socket: 64 frames in 10 s (docs/limits.md).
const muchNonsense = 500

// wear sends nonsense and goes on although it is refused: the pod has to close the socket.
func (e *Extension) wear(ctx context.Context, p *peer.Peer) {
	repeatFrame(p, muchNonsense, []byte("nonsense"))
	if e.fence(ctx, p) {
		e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s sent %d frames of nonsense, and is still served", p.Name(), muchNonsense)
		return
	}
	if ctx.Err() == nil {
		e.w.Book.Exercise(invariant.Told)
	}
}

func repeatFrame(p *peer.Peer, n int, frame []byte) {
	p.Do(func(s *wire.Socket) error {
		for range n {
			if err := s.Text(frame); err != nil {
				return err
			}
		}
		return nil
	})
}

// fence waits until the pod has handled what was sent before: it answers a method that it does not know. False: the socket ended.
func (e *Extension) fence(ctx context.Context, p *peer.Peer) bool {
	_, ok := e.await(ctx, p, p.Ask("_chaos/fence", nil, 2*Patience))
	return ok
}
