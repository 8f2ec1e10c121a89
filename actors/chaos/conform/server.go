package conform

import (
	"crypto/rand"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// generation is one of the four ways in which MCP over ACP is spoken.
type generation byte

const (
	genA generation = 'A' // {type:acp, id}, mcp/connect {acpId}
	genB generation = 'B' // {type:acp, serverId}, mcp/connect {serverId}
	genC generation = 'C' // {type:acp, serverId}, mcp/connect unknown: mcp/message {serverId, requestId, …}, enveloped results
	gen0 generation = '0' // {type:http, url:"acp:…"}, _mcp/connect {acp_id}
)

// suffixes are the tools that a server of a run lists, behind its name. The first five are what the default config grants;
// the last is there to be withheld. They are the same in every run, so that a pod which pins what it has seen keeps them.
var suffixes = []string{"read_dom", "screenshot", "navigate", "click", "type", "wire_check"}

// server is one MCP server that a peer serves through its socket, and what came for it.
type server struct {
	name, id   string
	generation generation
	// run answers tools/call; nil echoes the arguments.
	run func(c toolCall) reply
	// connect answers mcp/connect otherwise; nil gives a connection id.
	connect func() reply

	connects    []string   // ids with which mcp/connect came
	connections []string   // connection ids given
	ended       []string   // connection ids that were disconnected
	initialized int        // notifications/initialized
	versions    []string   // of the inner initialize
	lists       int        // tools/list
	calls       []toolCall // tools/call
	cancels     []cancelled
	odd         []string // what does not fit this generation
}

// toolCall is a tools/call that came.
type toolCall struct {
	outer     string // literal of the outer id
	name      string
	arguments string // to the byte
}

// cancelled is a cancel that came for the peer.
type cancelled struct{ method, outer string }

// reply is the answer to one message: a result, an error object, or none yet.
type reply struct {
	result string
	err    string
	hold   bool
}

func newServer(name string, g generation) *server {
	return &server{name: name, generation: g, id: "wire-check-" + rand.Text()}
}

// tools are the tools that the server lists, as a JSON array.
func (s *server) tools() string {
	var list []string
	for _, suffix := range suffixes {
		list = append(list, fmt.Sprintf(`{"name":"%s.%s","description":"echoes its arguments","inputSchema":{"type":"object"}}`, s.name, suffix))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (s *server) declaration() jsontext.Value {
	name, id := literal(s.name), literal(s.id)
	switch s.generation {
	case genA:
		return fmt.Appendf(nil, `{"type":"acp","name":%s,"id":%s}`, name, id)
	case gen0:
		return fmt.Appendf(nil, `{"type":"http","name":%s,"url":%s,"headers":[]}`, name, literal("acp:"+s.id))
	}
	return fmt.Appendf(nil, `{"type":"acp","name":%s,"serverId":%s}`, name, id)
}

// textResult is a tool's result of one text block.
func textResult(text string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, literal(text))
}

// tunnelParams are the params of all that a pod sends through a tunnel, in all generations.
type tunnelParams struct {
	AcpID         string         `json:"acpId"`
	AcpIDSnake    string         `json:"acp_id"`
	ServerID      string         `json:"serverId"`
	ConnectionID  string         `json:"connectionId"`
	ConnectionIDs string         `json:"connection_id"`
	RequestID     jsontext.Value `json:"requestId"`
	Method        string         `json:"method"`
	Params        jsontext.Value `json:"params"`
}

// connection is the connection that a message names, in either spelling.
func (p tunnelParams) connection() string { return p.ConnectionID + p.ConnectionIDs }

// serve answers a request or notes a notification of the pod.
func (p *peer) serve(m message) {
	params, _ := decode[tunnelParams](m.Params)
	var r reply
	switch m.Method {
	case "mcp/connect", "_mcp/connect":
		r = p.connect(m.Method, params)
	case "mcp/disconnect", "_mcp/disconnect":
		r = p.disconnect(m, params)
	case "mcp/message", "_mcp/message":
		r = p.message(m, params)
	case "$/cancel_request", "mcp/cancel":
		for _, one := range p.servers {
			one.cancels = append(one.cancels, cancelled{m.Method, string(params.RequestID)})
		}
		return
	case "session/request_permission":
		r.result = `{"outcome":{"outcome":"cancelled"}}`
		if p.permit != "" {
			r.result = fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, p.permit)
		}
	default:
		r.err = `{"code":-32601,"message":"this client has no such method"}`
	}
	if m.Kind == jsonrpc.Request && !r.hold {
		p.reply(m.id(), r)
	}
}

func (p *peer) reply(id string, r reply) {
	member, value := "result", r.result
	if r.err != "" {
		member, value = "error", r.err
	}
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`, id, member, value))
}

const unknownServer = `{"code":-32602,"message":"this client declared no such server"}`

func (p *peer) connect(method string, params tunnelParams) reply {
	id := params.AcpID + strings.TrimPrefix(params.AcpIDSnake, "acp:") + params.ServerID
	at := slices.IndexFunc(p.servers, func(s *server) bool { return s.id == id })
	if at < 0 {
		p.fault("%s for a server that was not declared: %s", method, jsonrpc.Show(id))
		return reply{err: unknownServer}
	}
	s := p.servers[at]
	fits := map[generation]bool{
		genA: method == "mcp/connect" && params.AcpID != "",
		genB: method == "mcp/connect" && params.ServerID != "",
		genC: method == "mcp/connect" && params.ServerID != "",
		gen0: method == "_mcp/connect" && strings.HasPrefix(params.AcpIDSnake, "acp:"),
	}
	if !fits[s.generation] {
		s.odd = append(s.odd, method+" in the manner of another generation")
	}
	s.connects = append(s.connects, id)
	if s.connect != nil {
		return s.connect()
	}
	if s.generation == genC {
		return reply{err: `{"code":-32601,"message":"method not found"}`}
	}
	connection := fmt.Sprintf("%s#%d", s.id, len(s.connections)+1)
	s.connections = append(s.connections, connection)
	if s.generation == gen0 {
		return reply{result: fmt.Sprintf(`{"connection_id":%q}`, connection)}
	}
	return reply{result: fmt.Sprintf(`{"connectionId":%q}`, connection)}
}

// to finds the server that a message is for.
func (p *peer) to(params tunnelParams) *server {
	for _, s := range p.servers {
		if s.generation == genC && params.ServerID == s.id || slices.Contains(s.connections, params.connection()) {
			return s
		}
	}
	return nil
}

func (p *peer) disconnect(m message, params tunnelParams) reply {
	s := p.to(params)
	if s == nil {
		p.fault("%s of a connection that was never given: %s", m.Method, jsonrpc.Show(params.connection()))
		return reply{err: unknownServer}
	}
	if (s.generation == gen0) != (m.Method == "_mcp/disconnect" && m.Kind == jsonrpc.Notification) {
		s.odd = append(s.odd, m.Method+" in the manner of another generation")
	}
	s.ended = append(s.ended, params.connection())
	return reply{result: `{}`}
}

func (p *peer) message(m message, params tunnelParams) reply {
	s := p.to(params)
	if s == nil {
		p.fault("%s to a connection that was never given: %s", m.Method, jsonrpc.Show(params.connection()))
		return reply{err: unknownServer}
	}
	if slices.Contains(s.ended, params.connection()) && s.generation != genC {
		p.fault("%s to a connection that was disconnected", m.Method)
	}
	if (m.Method == "_mcp/message") != (s.generation == gen0) {
		s.odd = append(s.odd, m.Method+" in the manner of another generation")
	}
	r := s.inner(m, params)
	if s.generation == genC && m.Kind == jsonrpc.Request && !r.hold {
		return enveloped(r)
	}
	return r
}

// enveloped is how generation C answers: the inner result or error inside of the outer result.
func enveloped(r reply) reply {
	if r.err != "" {
		return reply{result: `{"error":` + r.err + `}`}
	}
	return reply{result: `{"result":` + r.result + `}`}
}

// inner answers one MCP message.
func (s *server) inner(m message, params tunnelParams) reply {
	switch params.Method {
	case "initialize":
		asked, _ := decode[struct {
			Version string `json:"protocolVersion"`
		}](params.Params)
		s.versions = append(s.versions, asked.Version)
		return reply{result: fmt.Sprintf(`{"protocolVersion":%s,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":%s,"version":"1"}}`,
			literal(asked.Version), literal(s.name))}
	case "notifications/initialized":
		s.initialized++
		return reply{}
	case "tools/list":
		s.lists++
		return reply{result: `{"tools":` + s.tools() + `}`}
	case "tools/call":
		asked, _ := decode[struct {
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"`
		}](params.Params)
		call := toolCall{m.id(), asked.Name, string(asked.Arguments)}
		s.calls = append(s.calls, call)
		if s.run != nil {
			return s.run(call)
		}
		return reply{result: textResult(call.name + " " + call.arguments)}
	}
	return reply{err: `{"code":-32601,"message":"method not found"}`}
}

// cancelledBy reports whether a cancel of that method came for the outer request.
func (s *server) cancelledBy(method, outer string) bool {
	return slices.Contains(s.cancels, cancelled{method, outer})
}
