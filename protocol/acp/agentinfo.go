package acp

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// AgentInfo is what an agent said of itself in the result of initialize.
type AgentInfo struct {
	Version     int // protocolVersion
	Name        string
	Title       string
	Build       string
	LoadSession bool
	Prompt      PromptCapabilities
	MCP         MCPCapabilities
	Session     SessionCapabilities
	Logout      bool   // agentCapabilities.auth.logout
	AuthMethods []byte // the array, nil when absent
	Raw         []byte // the whole result
}

// MCPCapabilities are the ways beside stdio in which an agent reaches MCP servers.
type MCPCapabilities struct{ HTTP, SSE, ACP bool }

// SessionCapabilities are marked by an object; null or absent is no.
type SessionCapabilities struct{ List, Delete, Resume, Close, Fork, AdditionalDirectories, Status, Title bool }

// ErrAgentVersion says that an agent does not speak the pod's version of ACP.
var ErrAgentVersion = errors.New("the agent speaks another protocol version")

// ParseAgentInfo reads an agent's result of initialize. Only the version is
// required and must be ours; whatever else is malformed is its default. The bytes
// alias result.
func ParseAgentInfo(result []byte) (*AgentInfo, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return nil, fmt.Errorf("result of initialize: %w", err)
	}
	raw, ok := o.Get("protocolVersion")
	if !ok {
		return nil, errors.New("result of initialize: protocolVersion is missing")
	}
	version, ok := jsonrpc.Int(raw)
	if !ok || version != ProtocolVersion {
		return nil, fmt.Errorf("%w: %s, not %d", ErrAgentVersion, jsonrpc.Show(string(raw)), ProtocolVersion)
	}
	info := &AgentInfo{Version: int(version), Raw: result}
	who, _ := member(o, "agentInfo")
	info.Name, _ = who.Text("name")
	info.Title, _ = who.Text("title")
	info.Build, _ = who.Text("version")
	if raw, _ := o.Get("authMethods"); jsonrpc.IsArray(raw) {
		info.AuthMethods = raw
	}
	caps, _ := member(o, "agentCapabilities")
	info.LoadSession = flag(caps, "loadSession")
	prompt, _ := member(caps, "promptCapabilities")
	info.Prompt = PromptCapabilities{Image: flag(prompt, "image"), Audio: flag(prompt, "audio"), EmbeddedContext: flag(prompt, "embeddedContext")}
	mcp, _ := member(caps, "mcpCapabilities")
	info.MCP = MCPCapabilities{HTTP: flag(mcp, "http"), SSE: flag(mcp, "sse"), ACP: flag(mcp, "acp")}
	session, _ := member(caps, "sessionCapabilities")
	info.Session = SessionCapabilities{
		List: marker(session, "list"), Delete: marker(session, "delete"), Resume: marker(session, "resume"),
		Close: marker(session, "close"), Fork: marker(session, "fork"), AdditionalDirectories: marker(session, "additionalDirectories"),
		Status: marker(session, "status"), Title: marker(session, "title"),
	}
	auth, _ := member(caps, "auth")
	info.Logout = marker(auth, "logout")
	return info, nil
}

// AgentInitialize appends the params of initialize that an agent is sent. client is the
// clientCapabilities that it reads, an object as AgentClient gave it; nil claims nothing.
func AgentInitialize(dst []byte, build string, client []byte) []byte {
	dst = append(dst, `{"protocolVersion":`...)
	dst = strconv.AppendInt(dst, ProtocolVersion, 10)
	dst = append(dst, `,"clientCapabilities":`...)
	if client == nil {
		client = []byte("{}")
	}
	dst = append(dst, client...)
	dst = append(dst, `,"clientInfo":{"name":"acpod","title":"acpod","version":`...)
	dst = jsonrpc.AppendString(dst, build)
	return append(dst, "}}"...)
}

func flag(o jsonrpc.Object, name string) bool {
	raw, _ := o.Get(name)
	value, _ := jsonrpc.Bool(raw)
	return value
}

func marker(o jsonrpc.Object, name string) bool {
	raw, _ := o.Get(name)
	return jsonrpc.IsObject(raw)
}
