package extension

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// resumeTwice resumes one session twice, the second request right behind the first. Both are answered, with one and the same token, and
// the server has one connection afterwards and not two.
func (e *Extension) resumeTwice(ctx context.Context, r *rand.Rand) {
	p, s := e.peer, e.slots[r.IntN(len(e.slots))]
	if s.id == "" {
		return
	}
	e.w.Faults.Injected("duplicate", "resume")
	params := e.sessionParams(s.id, s.server.Declaration())
	first, second := p.Ask(acp.MethodSessionResume, params, Patience), p.Ask(acp.MethodSessionResume, params, Patience)
	var served [][]byte
	for _, answer := range []<-chan peer.Reply{first, second} {
		reply, ok := e.await(ctx, p, answer)
		if !ok {
			return
		}
		if why := unfit(reply, e.w.Prompted); why != nil { // a turn may run on this connection
			e.w.Book.Break(invariant.Told, []string{s.entryPlace()}, "%s resumed its session %d twice at once, and was answered %v", p.Name(), s.number, why)
			return
		}
		if reply.Error == nil {
			served = append(served, reply.Result)
		}
	}
	if len(served) == 0 {
		return
	}
	e.opened(p, s, served[len(served)-1])
	_, one := facadeOf(served[0])
	if _, other := facadeOf(served[len(served)-1]); one != other {
		e.w.Book.Break(invariant.TokensBalance, []string{s.entryPlace()}, "%s resumed its session %d twice at once, and was given two tokens", p.Name(), s.number)
	}
	e.pause(ctx, secondOpens)
	for end := time.Now().Add(DisconnectGrace); p.Living() && p.Connections.Standing(s.server.ID) > 1; <-time.After(20 * time.Millisecond) { // also when the run ends meanwhile
		if time.Now().After(end) {
			e.w.Book.Break(invariant.DisconnectedOnce, []string{s.entryPlace(), p.Name()}, "%s resumed its session %d twice at once, and its server has %d MCP connections after %s",
				p.Name(), s.number, p.Connections.Standing(s.server.ID), DisconnectGrace)
			return
		}
	}
	e.w.Book.Exercise(invariant.DisconnectedOnce)
}

// secondOpens is how long a second connection to a server is given to open, if one does: more than a step takes in most cases.
const secondOpens = 500 * time.Millisecond

// unfit gives the error of a resume that may not be; nil for one that is served, or refused because the pod is full or, where that may be,
// because somebody is before it.
func unfit(reply peer.Reply, mayYield bool) error {
	if reply.Error == nil || reply.Error.Code == jsonrpc.Overload || mayYield && reply.Error.Code == jsonrpc.Busy {
		return nil
	}
	return reply.Error
}

// contend resumes each session on two sockets in the same moment. Whatever comes first, the newer socket has them in the end: the older
// is refused, or served and then relieved.
func (e *Extension) contend(ctx context.Context, old, q *peer.Peer) {
	e.w.Faults.Injected("duplicate", "resume_race")
	for _, s := range e.slots {
		if s.id == "" || s.ending {
			continue
		}
		params := e.sessionParams(s.id, s.server.Declaration())
		before, after := old.Ask(acp.MethodSessionResume, params, Patience), q.Ask(acp.MethodSessionResume, params, Patience)
		newer, ok := e.await(ctx, q, after)
		if !ok {
			return
		}
		if why := unfit(newer, false); why != nil {
			e.w.Book.Break(invariant.Told, []string{s.entryPlace()}, "%s, the newer of two sockets that resume session %d at once, was answered %v", q.Name(), s.number, why)
			return
		}
		older, ok := e.await(ctx, old, before)
		if !ok {
			continue // it has ended
		}
		if why := unfit(older, true); why != nil {
			e.w.Book.Break(invariant.Told, []string{s.entryPlace()}, "%s, the older of two sockets that resume session %d at once, was answered %v", old.Name(), s.number, why)
			return
		}
		if newer.Error == nil {
			e.takeBack(ctx, old, q, s)
		}
	}
}
