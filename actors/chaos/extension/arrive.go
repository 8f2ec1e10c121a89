package extension

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/proxy"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// arrive connects and takes the sessions up, or opens them.
func (e *Extension) arrive(ctx context.Context, r *rand.Rand) error {
	p, err := e.connect(ctx, r)
	if err != nil {
		return err
	}
	e.peer = p
	for _, s := range e.slots {
		if err := e.enter(ctx, p, s); err != nil {
			return err
		}
	}
	return nil
}

// connect opens a socket and initializes it.
func (e *Extension) connect(ctx context.Context, r *rand.Rand) (*peer.Peer, error) {
	dial := wire.Dial{URL: e.w.ACP, Key: e.w.Key, ByProtocol: r.IntN(2) == 0, Timeout: Patience}
	if !e.isCalm() && e.w.Faults.On("slowread") && r.IntN(4) == 0 {
		dial.ReceiveBuffer = 4 << 10
	}
	if !e.isCalm() && r.IntN(4) == 0 && (e.w.Faults.On("halfopen") || e.w.Faults.On("drop") || e.w.Faults.On("slowwrite")) {
		dial.Net = e.network(r)
	}
	socket, err := wire.Open(ctx, dial)
	if err != nil {
		if refused, ok := errors.AsType[*wire.Refused](err); ok {
			e.w.Doings.Count(fmt.Sprintf("upgrade_%d", refused.Status))
		}
		return nil, err
	}
	e.mu.Lock()
	clear(e.odd)
	e.mu.Unlock()
	p := peer.New(socket, peer.Options{
		Name: fmt.Sprintf("extension %d, socket %d (conn %s)", e.number, e.lives, socket.ConnectionID()), Book: e.w.Book, Traffic: e.w.Traffic,
		Serve: e.serve, Odd: e.noteOdd,
	})
	name := `"extension"`
	if !e.isCalm() && r.IntN(4) == 0 && e.w.Faults.On("hostiletext") {
		name = string(jsonrpc.AppendString(nil, hostileText(r)))
		e.w.Faults.Injected("hostiletext", "client")
	}
	params := fmt.Appendf(nil, `{"protocolVersion":1,"clientInfo":{"name":%s,"version":"1"},"clientCapabilities":{},"_meta":{%q:%q}}`, name, acp.MetaClient, e.secret)
	reply, err := p.Call(ctx, acp.MethodInitialize, params, Patience)
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	if err != nil {
		p.Reset()
		p.Wait()
		return nil, err
	}
	return p, nil
}

// network is a way through a bad network: slow, or cut in the middle of some frame.
func (e *Extension) network(r *rand.Rand) func(context.Context, string, string) (net.Conn, error) {
	plan := proxy.Plan{Delay: time.Duration(r.Int64N(int64(5 * time.Millisecond)))}
	switch {
	case e.w.Faults.On("drop") && r.IntN(3) == 0:
		plan.CutAfter = 2000 + r.Int64N(20000)
		e.w.Faults.Injected("drop", "cut")
	case e.w.Faults.On("slowwrite") && r.IntN(3) == 0:
		plan.BytesPerS = 4000 + r.IntN(40000)
		e.w.Faults.Injected("slowwrite", "throttle")
	}
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		link, err := proxy.Dial(ctx, addr, plan)
		if err != nil {
			return nil, err
		}
		return link, nil
	}
}

// enter takes a session up on a socket, or opens one.
func (e *Extension) enter(ctx context.Context, p *peer.Peer, s *slot) error {
	if s.id != "" {
		reply, err := p.Call(ctx, acp.MethodSessionResume, e.sessionParams(s.id, s.server.Declaration()), Patience)
		switch {
		case err != nil:
			return err
		case reply.Error == nil:
			e.w.Doings.Count("resumed")
			e.opened(p, s, reply.Result)
			return nil
		case reply.Error.Code != jsonrpc.InvalidParams:
			e.w.Doings.Count(fmt.Sprintf("resume_%d", reply.Error.Code))
			return reply.Error
		}
		e.w.Doings.Count("resume_unknown")
		if s.ending {
			e.forget(s)
			return e.openUnlessCalm(ctx, p, s)
		}
		e.w.Book.Break(invariant.Alive, []string{s.entryPlace()}, "extension %d: its own session %d is unknown to the pod: %v", e.number, s.number, reply.Error)
		e.forget(s)
	}
	return e.openUnlessCalm(ctx, p, s)
}

// openUnlessCalm opens a new session for one that is gone; an extension that leaves needs none.
func (e *Extension) openUnlessCalm(ctx context.Context, p *peer.Peer, s *slot) error {
	if e.isCalm() {
		return nil
	}
	return e.open(ctx, p, s)
}

// open opens a new session.
func (e *Extension) open(ctx context.Context, p *peer.Peer, s *slot) error {
	s.number = e.w.nextSession()
	r := e.opening()
	s.server = e.newServer(s.number, fmt.Sprintf("srv-%d-%d", e.number, s.number), r)
	declared, check := e.declare(s, r)
	reply, err := p.Call(ctx, acp.MethodSessionNew, e.newParams(declared), Patience)
	if err == nil && reply.Error != nil {
		e.w.Doings.Count(fmt.Sprintf("new_%d", reply.Error.Code))
		return reply.Error
	}
	if err != nil {
		e.lost++
		return err
	}
	o, err := jsonrpc.ParseObject(reply.Result)
	if err != nil {
		return err
	}
	raw, _ := o.Get("sessionId")
	s.id, _ = jsonrpc.String(raw)
	e.w.Secret(s.id)
	e.w.Sessions.Opened(s.id, e.number)
	e.w.Doings.Count("opened")
	if check != nil {
		check(reply.Result)
	}
	e.opened(p, s, reply.Result)
	return nil
}

// opening is what chance has for the next session that it opens, by its own count.
func (e *Extension) opening() *rand.Rand { return e.w.Dice.Of("open", e.number, e.servings) }

func (e *Extension) newServer(number int, id string, r *rand.Rand) *server.Server {
	e.servings++ // and not number, which depends on who of all extensions comes first
	s := &server.Server{
		Session: number, ID: id, Generation: server.Generation("0ABC"[e.number%4]), Calls: e.w.Calls, Book: e.w.Book,
		Behaviour: e.behaviour(e.number<<20 | e.servings),
	}
	s.Tools = e.tools(r)
	e.mu.Lock()
	e.servers[id] = s
	e.mu.Unlock()
	return s
}

// opened reads what the pod gave with a session, and tells the callers.
func (e *Extension) opened(p *peer.Peer, s *slot, result []byte) {
	url, token := facadeOf(result)
	entry := &Entry{Session: s.number, Extension: e.number, URL: url, Token: token, Place: acp.TreeName(s.id)}
	resumed := s.entry != nil
	s.entry = entry
	switch {
	case token != "":
		e.w.Secret(token)
		e.w.Sessions.Token(token, e.number)
	case e.w.Prompted:
		entry.Turns = NewTurns(p, s.id, resumed)
		e.mu.Lock()
		e.talks[s.id] = entry.Turns
		e.mu.Unlock()
	default:
		return
	}
	e.w.Directory[s.index].Store(entry)
}

func (s *slot) entryPlace() string {
	if s.entry == nil {
		return ""
	}
	return s.entry.Place
}

// forget ends a session for its callers.
func (e *Extension) forget(s *slot) {
	e.w.Directory[s.index].Store(nil)
	e.mu.Lock()
	delete(e.talks, s.id)
	e.mu.Unlock()
	s.id, s.server, s.entry, s.ending = "", nil, nil, false
}

// facadeOf reads `_meta["acpod.dev/facade"]`.
func facadeOf(result []byte) (url, token string) {
	o, err := jsonrpc.ParseObject(result)
	for _, member := range []string{"_meta", acp.MetaFacade} {
		if err != nil {
			return "", ""
		}
		raw, _ := o.Get(member)
		o, err = jsonrpc.ParseObject(raw)
	}
	if err != nil {
		return "", ""
	}
	raw, _ := o.Get("url")
	url, _ = jsonrpc.String(raw)
	raw, _ = o.Get("token")
	token, _ = jsonrpc.String(raw)
	return url, token
}

func (e *Extension) newParams(declared []byte) []byte {
	return append(append([]byte(`{"cwd":"/","mcpServers":[`), declared...), "]}"...)
}

func (e *Extension) sessionParams(id string, declared []byte) []byte {
	params := jsonrpc.AppendString([]byte(`{"sessionId":`), id)
	params = append(params, `,"cwd":"/","mcpServers":[`...)
	return append(append(params, declared...), "]}"...)
}
