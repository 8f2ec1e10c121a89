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
	for _, s := range e.slots {
		if s.id != "" && !e.close(ctx, s) {
			return false
		}
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
	o, err := jsonrpc.ParseObject(reply.Result)
	if err != nil {
		return
	}
	raw, _ := o.Get("sessions")
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return
	}
	for _, element := range elements {
		if one, err := jsonrpc.ParseObject(element); err == nil {
			raw, _ := one.Get("sessionId")
			id, _ := jsonrpc.String(raw)
			e.w.Sessions.Listed(id, e.number)
		}
	}
}
