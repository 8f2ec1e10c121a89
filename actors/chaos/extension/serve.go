package extension

import (
	"maps"
	"slices"

	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/proxy"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// serve handles what the pod sends, on the goroutine that reads the socket.
func (e *Extension) serve(p *peer.Peer, f jsonrpc.Frame) {
	if server.IsCancel(f.Method) {
		_, proxied := p.Socket().NetConn().(*proxy.Link)
		for _, s := range e.known() {
			if s.Cancel(p, f.Params, proxied || p.Paused()) {
				return
			}
		}
		return
	}
	if f.Method == acp.MethodSessionUpdate {
		e.mu.Lock()
		talks := slices.Collect(maps.Values(e.talks))
		e.mu.Unlock()
		for _, t := range talks {
			t.Hear(f.Params)
		}
		return
	}
	id, tunnelled := server.Target(f)
	switch {
	case tunnelled:
		e.mu.Lock()
		s := e.servers[id]
		e.mu.Unlock()
		if s != nil {
			s.Serve(p, f)
			return
		}
		if f.Kind == jsonrpc.Request {
			p.Respond(f.ID, nil, &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: "there is no such server"})
		}
	case f.Method == acp.MethodPermission && f.Kind == jsonrpc.Request: // nobody is there to choose
		p.Respond(f.ID, acp.CancelledOutcome(), nil)
	case f.Kind == jsonrpc.Request:
		p.Respond(f.ID, nil, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "there is no such method"})
	}
}

// noteOdd counts an error with the id null.
func (e *Extension) noteOdd(err *jsonrpc.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.odd[err.Code]++
}

func (e *Extension) oddSeen(code int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.odd[code]
}
