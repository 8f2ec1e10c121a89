package agent

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// protocolVersion is ACP's major version; no other is spoken.
const protocolVersion = 1

// initializeParams are ours: no file system, no terminal. What an agent may do, it does through the facade.
func initializeParams(version string) []byte {
	b := []byte(`{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"acpod","title":"acpod","version":`)
	b = jsonrpc.AppendString(b, version)
	return append(b, "}}"...)
}

// parseInfo reads the result of initialize. Only the version is insisted on: agents in the wild add and garble
// optional members, and a malformed one counts as absent.
func parseInfo(result []byte) (*Info, error) {
	info := &Info{Raw: bytes.Clone(result)}
	top, err := jsonrpc.ParseObject(info.Raw)
	if err != nil {
		return nil, errors.New("its answer to initialize is no object")
	}
	raw, _ := top.Get("protocolVersion")
	version, ok := jsonrpc.Int(raw)
	if !ok || version != protocolVersion {
		return nil, fmt.Errorf("it speaks ACP version %s, not %d; use an agent or adapter that does", shown(raw), protocolVersion)
	}
	info.ProtocolVersion = protocolVersion
	if capabilities := object(top, "agentCapabilities"); capabilities.Raw() != nil {
		if load, ok := capabilities.Get("loadSession"); ok {
			info.LoadSession = string(load) == "true"
		}
		info.PromptCapabilities = object(capabilities, "promptCapabilities").Raw()
		info.McpCapabilities = object(capabilities, "mcpCapabilities").Raw()
		info.SessionCapabilities = object(capabilities, "sessionCapabilities").Raw()
	}
	if methods, ok := top.Get("authMethods"); ok && len(methods) > 0 && methods[0] == '[' {
		info.AuthMethods = jsontext.Value(methods)
	}
	about := object(top, "agentInfo")
	info.Name, info.Title, info.Version = text(about, "name"), text(about, "title"), text(about, "version")
	return info, nil
}

func object(in jsonrpc.Object, name string) jsonrpc.Object {
	raw, _ := in.Get(name)
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return jsonrpc.Object{}
	}
	return o
}

// text is a short string member, "" when it is none.
func text(in jsonrpc.Object, name string) string {
	raw, _ := in.Get(name)
	s, _ := jsonrpc.String(raw)
	return s[:min(len(s), 256)]
}

func shown(raw []byte) string {
	if raw == nil {
		return "(none)"
	}
	return jsonrpc.Show(string(raw))
}
