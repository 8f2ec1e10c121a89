package acp

import (
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// AgentSession is everything that an agent is told at the start of a session. There
// is no room in it for anything else of a client's.
type AgentSession struct {
	SessionID             string   // the agent's own id: load, resume and fork; "" for new
	Cwd                   string   // checked
	AdditionalDirectories []string // checked
	Servers               []byte   // the array with the facade's entry; nil is []
	Meta                  []byte   // what FilterMeta left; nil leaves it out
}

// Append appends the params of session/new or its like.
func (s AgentSession) Append(dst []byte) []byte {
	dst = append(dst, '{')
	if s.SessionID != "" {
		dst = append(dst, `"sessionId":`...)
		dst = jsonrpc.AppendString(dst, s.SessionID)
		dst = append(dst, ',')
	}
	dst = append(dst, `"cwd":`...)
	dst = jsonrpc.AppendString(dst, s.Cwd)
	if len(s.AdditionalDirectories) > 0 {
		dst = append(dst, `,"additionalDirectories":[`...)
		for n, dir := range s.AdditionalDirectories {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = jsonrpc.AppendString(dst, dir)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"mcpServers":`...)
	if s.Servers == nil {
		dst = append(dst, "[]"...)
	} else {
		dst = append(dst, s.Servers...)
	}
	if s.Meta != nil {
		dst = append(dst, `,"_meta":`...)
		dst = append(dst, s.Meta...)
	}
	return append(dst, '}')
}

// HTTPServer appends the entry of an MCP server over HTTP with one Authorization
// header, as mcpServers has it.
func HTTPServer(dst []byte, name, url, authorization string) []byte {
	dst = append(dst, `{"type":"http","name":`...)
	dst = jsonrpc.AppendString(dst, name)
	dst = append(dst, `,"url":`...)
	dst = jsonrpc.AppendString(dst, url)
	dst = append(dst, `,"headers":[`...)
	if authorization != "" {
		dst = append(dst, `{"name":"Authorization","value":`...)
		dst = jsonrpc.AppendString(dst, authorization)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
