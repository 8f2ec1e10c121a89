package server

import (
	"strings"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// request is an inner or outer request of the pod that is about to be answered.
type request struct {
	p     *peer.Peer
	f     jsonrpc.Frame
	inner bool // it came inside mcp/message: generation C answers in an envelope
	call  bool // a tool call: it is held until it is answered or taken back
	nonce int  // its number
}

// Target reads whose server a message of the pod is for: a server id, or the id of a connection, which begins with it.
func Target(f jsonrpc.Frame) (serverID string, ok bool) {
	switch f.Method {
	case acp.MethodMCPConnect, acp.MethodMCPMessage, acp.MethodMCPDisconnect, acp.MethodMCPConnect0, acp.MethodMCPMessage0, acp.MethodMCPDisconnect0:
	default:
		return "", false
	}
	o, err := jsonrpc.ParseObject(f.Params)
	if err != nil {
		return "", true
	}
	for _, member := range []string{"acpId", "serverId", "acp_id", "connectionId", "connection_id"} {
		if raw, has := o.Get(member); has {
			text, _ := jsonrpc.String(raw)
			id, _, _ := strings.Cut(strings.TrimPrefix(text, "acp:"), "#")
			return id, true
		}
	}
	return "", true
}

// Serve answers one message of the pod that is for this server.
func (s *Server) Serve(p *peer.Peer, f jsonrpc.Frame) {
	o, err := jsonrpc.ParseObject(f.Params)
	if err != nil {
		s.Book.Break(invariant.Told, []string{p.Name()}, "%s: the params of the pod's %s are no object", p.Name(), f.Method)
		return
	}
	r := request{p: p, f: f}
	switch f.Method {
	case acp.MethodMCPConnect, acp.MethodMCPConnect0:
		if s.Generation == GenC {
			p.Respond(f.ID, nil, &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "there is no mcp/connect here"})
			return
		}
		d := s.step("connect")
		s.answer(r, d, func() []byte { return s.connect(p, d) })
	case acp.MethodMCPDisconnect, acp.MethodMCPDisconnect0:
		for _, member := range []string{"connectionId", "connection_id"} {
			if raw, has := o.Get(member); has {
				id, _ := jsonrpc.String(raw)
				p.Connections.Disconnect(id)
			}
		}
		if !f.ID.IsZero() {
			p.Respond(f.ID, []byte("{}"), nil)
		}
	default:
		raw, _ := o.Get("connectionId")
		if id, named := jsonrpc.String(raw); named && p.Connections.Ended(id) {
			if !f.ID.IsZero() {
				p.Respond(f.ID, nil, &jsonrpc.Error{Code: jsonrpc.InvalidParams, Message: "this connection was disconnected"})
			}
			return
		}
		raw, _ = o.Get("method")
		method, _ := jsonrpc.String(raw)
		params, _ := o.Get("params")
		r.inner = true
		s.message(r, method, params)
	}
}

func (s *Server) message(r request, method string, params []byte) {
	if r.f.ID.IsZero() {
		return // initialized, cancelled: nothing is owed for a notification
	}
	switch method {
	case "initialize":
		s.answer(r, s.step(method), func() []byte {
			return []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"katashiro","version":"1"}}`)
		})
	case "tools/list":
		s.answer(r, s.step(method), func() []byte {
			tools := s.Tools
			if tools == nil {
				tools = FiveTools
			}
			return append(append([]byte(`{"tools":`), tools...), '}')
		})
	case "tools/call":
		r.call = true
		s.call(r, params)
	case "ping":
		s.answer(r, Deed{}, func() []byte { return []byte("{}") })
	default:
		s.answer(r, Deed{Error: &jsonrpc.Error{Code: jsonrpc.MethodNotFound, Message: "method not found"}}, nil)
	}
}

func (s *Server) step(method string) Deed {
	if s.Behaviour.Step == nil {
		return Deed{}
	}
	return s.Behaviour.Step(method)
}

// answer does the deed. result is made when the answer is written.
func (s *Server) answer(r request, d Deed, result func() []byte) {
	switch {
	case d.Never:
		if r.call {
			s.hold(r.p, r.f.ID, r.nonce, d.Cancelled)
		}
		return
	case d.After > 0:
		if r.call {
			s.hold(r.p, r.f.ID, r.nonce, d.Cancelled)
		}
		time.AfterFunc(d.After, func() {
			s.mu.Lock()
			_, wanted := s.held[key(r.p, r.f.ID)]
			delete(s.held, key(r.p, r.f.ID))
			s.mu.Unlock()
			if wanted || !r.call || d.Twice { // one that was taken back is answered all the same when the deed is to say too much
				s.write(r, d, result)
			}
		})
		return
	}
	s.write(r, d, result)
	if !d.Twice {
		return
	}
	again := func() {
		s.write(r, d, func() []byte { return []byte(`{"content":[{"type":"text","text":"this answer came too much"}]}`) })
	}
	if d.Behind == 0 {
		again()
		return
	}
	time.AfterFunc(d.Behind, again) // then the pod has forgotten the request, and has asked for other things
}

func (s *Server) write(r request, d Deed, result func() []byte) {
	if !r.p.Living() {
		return
	}
	envelope := r.inner && s.Generation == GenC
	switch {
	case d.Error != nil && envelope:
		r.p.Respond(r.f.ID, append(d.Error.AppendObject([]byte(`{"error":`)), '}'), nil)
	case d.Error != nil:
		r.p.Respond(r.f.ID, nil, d.Error)
	default:
		body := d.Result
		if body == nil {
			body = result()
		}
		if envelope {
			body = append(append([]byte(`{"result":`), body...), '}')
		}
		r.p.Respond(r.f.ID, body, nil)
	}
}
