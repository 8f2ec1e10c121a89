package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// generation is how an extension declares its server and what it expects on the wire.
type generation byte

const (
	genA generation = 'A' // {type:acp, id}, mcp/connect {acpId}
	genB generation = 'B' // {type:acp, serverId}, mcp/connect {serverId}
	genC generation = 'C' // {type:acp, serverId}, no connect: mcp/message {serverId, requestId, …}, enveloped results
	gen0 generation = '0' // {type:http, url:"acp:…"}, _mcp/connect {acp_id}
)

// mcpServer is one MCP server that an extension serves through its socket.
type mcpServer struct {
	name, id   string
	generation generation
	tools      []object
	// run answers tools/call: a result, or an error, or nothing (hold: the answer never comes).
	run func(name string, arguments json.RawMessage) (result any, failure *rpcError, hold bool)
	// handshake may answer connect, initialize and tools/list otherwise: nil means as usual.
	handshake func(method string, params json.RawMessage) (result any, failure *rpcError, hold, handled bool)
	early     []object // tools in the declaration's _meta
	// deaf leaves mcp/disconnect unanswered (it is noted all the same).
	deaf bool

	mu          sync.Mutex
	connected   []string // connection ids given, in order
	disconnects []string // connection ids ended, in order
	calls       []string // names called, in order
	cancels     []string // outer ids cancelled
	initialized int
	versions    []string // inner protocol versions asked for
}

// newServer is a server with tools that echo their arguments: result text "NAME arguments".
func newServer(name string, generation generation, tools ...string) *mcpServer {
	s := &mcpServer{name: name, id: fmt.Sprintf("id-%s-%p", name, new(int)), generation: generation}
	for _, tool := range tools {
		s.tools = append(s.tools, object{"name": tool, "description": "echoes what it is given", "inputSchema": object{"type": "object"}})
	}
	s.run = func(name string, arguments json.RawMessage) (any, *rpcError, bool) {
		return textResult(fmt.Sprintf("%s %s", name, arguments)), nil, false
	}
	return s
}

func textResult(text string) object {
	return object{"content": []any{object{"type": "text", "text": text}}}
}

func (s *mcpServer) declaration() object {
	d := object{"type": "acp", "name": s.name}
	switch s.generation {
	case genA:
		d["id"] = s.id
	case gen0:
		d["type"], d["url"], d["headers"] = "http", "acp:"+s.id, []any{}
	default:
		d["serverId"] = s.id
	}
	if s.early != nil {
		d["_meta"] = object{"acpod.dev/tools": s.early}
	}
	return d
}

// snapshot reads what the server has seen.
func (s *mcpServer) snapshot(read func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read()
}

func (s *mcpServer) callCount() (n int) { s.snapshot(func() { n = len(s.calls) }); return n }
func (s *mcpServer) connects() (n int)  { s.snapshot(func() { n = len(s.connected) }); return n }
func (s *mcpServer) ended() (ids []string) {
	s.snapshot(func() { ids = append(ids, s.disconnects...) })
	return ids
}
func (s *mcpServer) cancelled() (n int) { s.snapshot(func() { n = len(s.cancels) }); return n }

var methodNotFound = &rpcError{Code: -32601, Message: "method not found"}

// serve answers a request or notification of the pod.
func (e *extension) serve(f frame) {
	if f.Method == "$/cancel_request" || f.Method == "mcp/cancel" {
		var params struct{ RequestID json.RawMessage }
		_ = json.Unmarshal(f.Params, &params)
		e.mu.Lock()
		servers := make([]*mcpServer, 0, len(e.servers))
		for _, server := range e.servers {
			servers = append(servers, server)
		}
		e.mu.Unlock()
		for _, server := range servers {
			server.snapshot(func() { server.cancels = append(server.cancels, f.Method+" "+string(params.RequestID)) })
		}
		e.poke()
		return
	}
	result, failure, answer := e.dispatch(f)
	e.poke()
	if f.ID == nil || !answer {
		return
	}
	if failure != nil {
		raw, _ := json.Marshal(failure)
		e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, f.ID, raw))
		return
	}
	text, ok := result.(json.RawMessage)
	if !ok {
		raw, err := json.Marshal(result)
		if err != nil {
			e.t.Error(err)
			return
		}
		text = raw
	}
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, text))
}

// poke wakes waiters that look at a server's counters.
func (e *extension) poke() {
	e.mu.Lock()
	e.changed.Broadcast()
	e.mu.Unlock()
}

func (e *extension) dispatch(f frame) (result any, failure *rpcError, answer bool) {
	var params struct {
		AcpID         string          `json:"acpId"`
		AcpIDSnake    string          `json:"acp_id"`
		ServerID      string          `json:"serverId"`
		ConnectionID  string          `json:"connectionId"`
		ConnectionIDS string          `json:"connection_id"`
		RequestID     string          `json:"requestId"`
		Method        string          `json:"method"`
		Params        json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(f.Params, &params)
	connection := params.ConnectionID + params.ConnectionIDS
	switch f.Method {
	case "mcp/connect", "_mcp/connect":
		server := e.server(params.AcpID + strings.TrimPrefix(params.AcpIDSnake, "acp:") + params.ServerID)
		if server == nil {
			return nil, &rpcError{Code: -32602, Message: "unknown server"}, true
		}
		if server.handshake != nil {
			if result, failure, hold, handled := server.handshake(f.Method, f.Params); handled {
				return result, failure, !hold
			}
		}
		if wrong := server.wrongConnect(f.Method, params.AcpID, params.ServerID); wrong != nil {
			return nil, wrong, true
		}
		id := fmt.Sprintf("%s#%d", server.id, server.connects())
		server.snapshot(func() { server.connected = append(server.connected, id) })
		if server.generation == gen0 {
			return object{"connection_id": id}, nil, true
		}
		return object{"connectionId": id}, nil, true
	case "mcp/disconnect", "_mcp/disconnect":
		if server := e.serverOf(connection); server != nil {
			server.snapshot(func() { server.disconnects = append(server.disconnects, connection) })
			if server.deaf {
				return nil, nil, false
			}
		} else {
			e.t.Errorf("a disconnect of an unknown connection: %s", f.raw)
		}
		return object{}, nil, true
	case "mcp/message", "_mcp/message":
		server := e.serverOf(connection)
		if params.ServerID != "" {
			server = e.server(params.ServerID)
		}
		if server == nil {
			return nil, &rpcError{Code: -32602, Message: "unknown connection"}, true
		}
		result, failure, answer = server.message(f.ID != nil, params.Method, params.Params)
		if server.generation == genC && f.ID != nil && answer { // the envelope of generation C
			if failure != nil {
				return object{"error": failure}, nil, true
			}
			return object{"result": result}, nil, true
		}
		return result, failure, answer
	}
	if e.other != nil {
		return e.other(f)
	}
	if f.ID == nil {
		return nil, nil, false
	}
	return nil, methodNotFound, true
}

// wrongConnect says what is wrong about a connect for this generation.
func (s *mcpServer) wrongConnect(method, acpID, serverID string) *rpcError {
	switch {
	case s.generation == genC:
		return methodNotFound
	case s.generation == gen0 && method != "_mcp/connect", s.generation != gen0 && method != "mcp/connect",
		s.generation == genA && acpID == "", s.generation == genB && serverID == "":
		return &rpcError{Code: -32602, Message: "a connect of another generation"}
	}
	return nil
}

func (e *extension) server(id string) *mcpServer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[id]
}

func (e *extension) serverOf(connection string) *mcpServer {
	id, _, _ := strings.Cut(connection, "#")
	return e.server(id)
}

// message answers one inner MCP message.
func (s *mcpServer) message(request bool, method string, params json.RawMessage) (result any, failure *rpcError, answer bool) {
	if s.handshake != nil {
		if result, failure, hold, handled := s.handshake(method, params); handled {
			return result, failure, request && !hold
		}
	}
	switch method {
	case "initialize":
		var asked struct{ ProtocolVersion string }
		_ = json.Unmarshal(params, &asked)
		s.snapshot(func() { s.versions = append(s.versions, asked.ProtocolVersion) })
		return object{"protocolVersion": asked.ProtocolVersion, "capabilities": object{"tools": object{}}, "serverInfo": object{"name": s.name, "version": "1"}}, nil, true
	case "notifications/initialized":
		s.snapshot(func() { s.initialized++ })
		return nil, nil, false
	case "tools/list":
		tools := []object{}
		s.snapshot(func() { tools = append(tools, s.tools...) })
		return object{"tools": tools}, nil, true
	case "tools/call":
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		_ = json.Unmarshal(params, &call)
		s.snapshot(func() { s.calls = append(s.calls, call.Name) })
		result, failure, hold := s.run(call.Name, call.Arguments)
		return result, failure, !hold
	}
	return nil, methodNotFound, request
}
