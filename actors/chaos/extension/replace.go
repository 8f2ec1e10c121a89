package extension

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// replace takes the place of somebody: of itself on another socket, of its own server, or of somebody else.
func (e *Extension) replace(ctx context.Context, r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		e.w.Faults.Injected("replace", "takeover")
		e.takeOver(ctx, r, false)
	case 1:
		e.w.Faults.Injected("replace", "storm")
		e.storm(ctx, r)
	case 2:
		e.w.Faults.Injected("replace", "redeclare")
		e.redeclare(ctx, r)
	default:
		e.w.Faults.Injected("replace", "foreign")
		e.claim(ctx, r)
	}
}

// takeOver resumes its sessions on a second socket. What the first one carried for them is to be disconnected there, and it may not
// take them back. contended: it tries to in the very moment in which they are taken.
func (e *Extension) takeOver(ctx context.Context, r *rand.Rand, contended bool) {
	old := e.peer
	e.lives++
	q, err := e.connect(ctx, r)
	if err != nil {
		return
	}
	e.peer = q
	if contended {
		e.contend(ctx, old, q)
	}
	for _, s := range e.slots {
		if err := e.enter(ctx, q, s); err != nil {
			old.Reset()
			old.Wait()
			e.drop()
			return
		}
	}
	s := e.slots[r.IntN(len(e.slots))]
	if s.server != nil {
		e.takeBack(ctx, old, q, s)
	}
	for _, s := range e.slots {
		if s.server != nil {
			old.Connections.Over(s.server.ID, time.Now())
		}
	}
	e.w.beside(func(stop <-chan struct{}) {
		for end := time.Now().Add(DisconnectGrace); old.Living() && old.Connections.Due() > 0 && time.Now().Before(end); {
			select {
			case <-stop:
			case <-time.After(50 * time.Millisecond):
			}
		}
		old.Check(time.Now().Add(DisconnectGrace), DisconnectGrace)
		old.Reset()
		old.Wait()
	})
}

// takeBack tries to resume a session on the older socket while the newer one owns it.
func (e *Extension) takeBack(ctx context.Context, old, q *peer.Peer, s *slot) {
	reply, err := old.Call(ctx, acp.MethodSessionResume, e.sessionParams(s.id, s.server.Declaration()), Patience)
	if err != nil || !q.Living() {
		return
	}
	switch {
	case reply.Error == nil:
		e.w.Book.Break(invariant.Told, []string{s.entryPlace()}, "%s took session %d back from a newer one that is open", old.Name(), s.number)
	case reply.Error.Code != jsonrpc.Busy && reply.Error.Code != jsonrpc.Overload:
		e.w.Book.Break(invariant.Told, []string{s.entryPlace()}, "%s: the resume of a session that a newer one owns was answered %v", old.Name(), reply.Error)
	default:
		e.w.Book.Exercise(invariant.Told)
	}
}

// storm reconnects many times, each time gone before the pod is done.
func (e *Extension) storm(ctx context.Context, r *rand.Rand) {
	for range 3 + r.IntN(4) {
		e.drop()
		e.lives++
		p, err := e.connect(ctx, r)
		if err != nil {
			return
		}
		e.peer = p
		for _, s := range e.slots {
			if s.id != "" {
				p.Ask(acp.MethodSessionResume, e.sessionParams(s.id, s.server.Declaration()), Patience)
			}
		}
		e.pause(ctx, time.Duration(r.Int64N(int64(20*time.Millisecond))))
	}
	e.drop()
}

// redeclare resumes on the same socket with another server under the same name. The former one is withdrawn.
func (e *Extension) redeclare(ctx context.Context, r *rand.Rand) {
	p, s := e.peer, e.slots[r.IntN(len(e.slots))]
	if s.id == "" {
		return
	}
	e.turns++
	former := s.server
	s.server = e.newServer(s.number, fmt.Sprintf("srv-%d-%d-%d", e.number, s.number, e.turns), r)
	reply, err := p.Call(ctx, acp.MethodSessionResume, e.sessionParams(s.id, s.server.Declaration()), Patience)
	if err != nil || reply.Error != nil {
		e.drop() // who owns what is not known here; the next socket says it anew
		return
	}
	p.Connections.Over(former.ID, time.Now())
	e.opened(p, s, reply.Result)
}

// claim names a session of another extension in every method that takes one.
func (e *Extension) claim(ctx context.Context, r *rand.Rand) {
	id := e.w.Sessions.Other(e.number, r.IntN)
	if id == "" {
		return
	}
	own := e.slots[0]
	if own.server == nil {
		return
	}
	for _, method := range []string{acp.MethodSessionResume, acp.MethodSessionLoad, acp.MethodSessionClose, acp.MethodSessionPrompt} {
		params := e.sessionParams(id, own.server.Declaration())
		if method == acp.MethodSessionPrompt {
			params = append(jsonrpc.AppendString([]byte(`{"sessionId":`), id), `,"prompt":[{"type":"text","text":"mine"}]}`...)
		}
		reply, err := e.peer.Call(ctx, method, params, Patience)
		if err != nil {
			return
		}
		e.w.Sessions.Claimed(e.number, reply.Error == nil, method)
	}
}
