package extension

import (
	"context"
	"math/rand/v2"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// repeat does twice what is done once: a request id, initialize, a close, a resume.
func (e *Extension) repeat(ctx context.Context, r *rand.Rand) {
	p := e.peer
	switch r.IntN(5) {
	case 0: // two requests with one id are two requests; each is answered
		e.w.Faults.Injected("duplicate", "request_id")
		id := p.NewID()
		p.Expect(id, "_chaos/twice", Patience)
		answer := p.Expect(id, "_chaos/twice", Patience)
		frame := jsonrpc.AppendRequest(nil, id, "_chaos/twice", nil)
		p.Text(frame)
		p.Text(frame)
		if _, ok := e.await(ctx, p, answer); ok {
			e.fence(ctx, p)
		}
	case 1:
		e.w.Faults.Injected("duplicate", "initialize")
		_, _ = p.Call(ctx, acp.MethodInitialize, []byte(`{"protocolVersion":1,"clientCapabilities":{},"_meta":{"`+acp.MetaClient+`":"`+e.secret+`"}}`), Patience)
	case 2:
		e.resumeTwice(ctx, r)
	case 3:
		e.takeOver(ctx, r, true)
	default: // the second close is that of an unknown session
		e.w.Faults.Injected("duplicate", "close")
		s := e.slots[r.IntN(len(e.slots))]
		id := s.id
		if id == "" || !e.close(ctx, s) {
			return
		}
		params := append(jsonrpc.AppendString([]byte(`{"sessionId":`), id), '}')
		reply, err := p.Call(ctx, acp.MethodSessionClose, params, Patience)
		if err == nil {
			e.w.Sessions.Claimed(e.number, reply.Error == nil, "a second close")
		}
		if p.Living() && e.open(ctx, p, s) != nil {
			e.drop()
		}
	}
}
