package extension

import (
	"context"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/proxy"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Leave closes every session and the socket, as a client does that ends well, and checks what the pod owes for that. No fault happens
// from here on.
func (e *Extension) Leave(ctx context.Context) {
	e.mu.Lock()
	e.calm = true
	e.mu.Unlock()
	if e.peer != nil {
		if _, slow := e.peer.Socket().NetConn().(*proxy.Link); slow {
			e.drop()
		}
	}
	for ctx.Err() == nil {
		if e.depart(ctx) {
			return
		}
		e.drop()
		e.pause(ctx, 200*time.Millisecond)
	}
	e.w.Book.Break(invariant.Alive, nil, "extension %d cannot leave: the pod does not serve it", e.number)
	e.drop()
}

// depart reports whether all sessions are closed.
func (e *Extension) depart(ctx context.Context) bool {
	if e.peer == nil || !e.peer.Living() {
		e.drop()
		open := false
		for _, s := range e.slots {
			open = open || s.id != ""
		}
		if !open {
			return true
		}
		e.lives++
		p, err := e.connect(ctx, e.w.Dice.Of("calm", e.number, e.lives))
		if err != nil {
			return false
		}
		e.peer = p
		for _, s := range e.slots {
			if s.id != "" && e.enter(ctx, p, s) != nil {
				return false
			}
		}
	}
	e.release(ctx)
	for _, s := range e.slots {
		if s.id != "" && !e.close(ctx, s) {
			return false
		}
	}
	if e.lost > 0 {
		e.find(ctx)
	}
	p := e.peer
	for end := time.Now().Add(DisconnectGrace); p.Living() && p.Connections.Due() > 0 && time.Now().Before(end); {
		e.pause(ctx, 20*time.Millisecond)
	}
	p.Check(time.Now().Add(DisconnectGrace), DisconnectGrace)
	p.Do(func(s *wire.Socket) error { return s.Close(1000, "") })
	select {
	case <-p.Gone():
	case <-time.After(5 * time.Second):
	}
	e.drop()
	return true
}

// release waits until every call that was never answered is taken back: nobody waits for one any more.
func (e *Extension) release(ctx context.Context) {
	p := e.peer
	held := func() (n int) {
		for _, s := range e.known() {
			n += s.Held(p)
		}
		return n
	}
	bound := e.w.Limits.Tunnel + e.w.Limits.Orphan + DisconnectGrace
	for end := time.Now().Add(min(bound, time.Minute)); p.Living() && held() > 0 && time.Now().Before(end); {
		e.pause(ctx, 20*time.Millisecond)
	}
	if bound <= time.Minute && ctx.Err() == nil {
		for _, s := range e.known() {
			s.Overdue(time.Now(), e.w.Limits.Tunnel+e.w.Limits.Orphan)
		}
	}
}

// find closes sessions that were opened for us and whose ids were lost with a socket.
func (e *Extension) find(ctx context.Context) {
	reply, err := e.peer.Call(ctx, acp.MethodSessionList, []byte("{}"), Patience)
	if err != nil || reply.Error != nil {
		return
	}
	for _, id := range idsOf(reply.Result) {
		resumed, err := e.peer.Call(ctx, acp.MethodSessionResume, e.sessionParams(id, nil), Patience)
		if err != nil || resumed.Error != nil {
			continue
		}
		_, _ = e.peer.Call(ctx, acp.MethodSessionClose, append(jsonrpc.AppendString([]byte(`{"sessionId":`), id), '}'), Patience)
		e.w.Doings.Count("found_and_closed")
	}
}

// close closes a session and looks whether its token is dead.
func (e *Extension) close(ctx context.Context, s *slot) bool {
	s.ending = true
	reply, err := e.peer.Call(ctx, acp.MethodSessionClose, append(jsonrpc.AppendString([]byte(`{"sessionId":`), s.id), '}'), Patience)
	if err != nil {
		return false
	}
	if reply.Error != nil {
		e.w.Doings.Count("close_refused")
		if reply.Error.Code != jsonrpc.InvalidParams {
			return false
		}
		e.forget(s) // an earlier close was done, and its answer lost
		return true
	}
	e.w.Doings.Count("closed")
	e.peer.Connections.Over(s.server.ID, time.Now())
	entry := s.entry
	e.forget(s)
	if entry != nil && entry.Token != "" {
		e.w.Book.Check(invariant.TokensBalance, []string{entry.Place}, e.w.Revoked(ctx, entry.URL, entry.Token))
	}
	return true
}

// renew closes one session and opens another in its place, as clients do.
func (e *Extension) renew(ctx context.Context) {
	if len(e.slots) == 0 {
		return
	}
	s := e.slots[e.ticks%len(e.slots)]
	if s.id != "" && !e.close(ctx, s) {
		return
	}
	if e.peer != nil && e.open(ctx, e.peer, s) != nil {
		e.drop()
	}
}

// list asks which sessions there are: only its own may be told.
func (e *Extension) list(ctx context.Context) {
	reply, err := e.peer.Call(ctx, acp.MethodSessionList, []byte("{}"), Patience)
	if err != nil || reply.Error != nil {
		return
	}
	for _, id := range idsOf(reply.Result) {
		e.w.Sessions.Listed(id, e.number)
	}
}

// idsOf reads the answer of session/list.
func idsOf(result []byte) (ids []string) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return nil
	}
	raw, _ := o.Get("sessions")
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return nil
	}
	for _, element := range elements {
		if one, err := jsonrpc.ParseObject(element); err == nil {
			raw, _ := one.Get("sessionId")
			if id, ok := jsonrpc.String(raw); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
