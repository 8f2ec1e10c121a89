package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// InitializeParams are the params of initialize: a client that claims no
// capabilities, because the pod serves none to a server.
func InitializeParams(build string) []byte {
	dst := []byte(`{"protocolVersion":"` + VersionRequested + `","capabilities":{},"clientInfo":{"name":"acpod","version":`)
	return append(jsonrpc.AppendString(dst, build), "}}"...)
}

// A Server is what a server said of itself in its answer to initialize.
type Server struct {
	Version     string // protocolVersion
	Name        string
	Title       string
	Build       string
	Tools       bool // it has tools
	ListChanged bool // it tells when they change
}

// ErrVersion says that a server answered with a version that the pod does not speak.
var ErrVersion = errors.New("unsupported MCP version")

// ParseInitialized reads the result of initialize. The version must be one that is
// accepted; everything else is optional and degrades to its default.
func ParseInitialized(result []byte) (Server, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return Server{}, fmt.Errorf("result of initialize: %w", err)
	}
	if err := o.Unique("protocolVersion"); err != nil {
		return Server{}, fmt.Errorf("result of initialize: %w", err)
	}
	raw, _ := o.Get("protocolVersion")
	version, ok := jsonrpc.String(raw)
	if !ok || !slices.Contains(acceptedVersions, version) {
		answered := "nothing"
		if len(raw) > 0 {
			answered = jsonrpc.Show(string(raw))
		}
		return Server{}, fmt.Errorf("%w: answered %s, requested %s, accepted %s", ErrVersion, answered, VersionRequested, strings.Join(acceptedVersions, ", "))
	}
	s := Server{Version: version}
	info := object(o, "serverInfo")
	s.Name, _ = info.Text("name")
	s.Title, _ = info.Text("title")
	s.Build, _ = info.Text("version")
	if raw, _ := object(o, "capabilities").Get("tools"); jsonrpc.IsObject(raw) {
		s.Tools = true
		s.ListChanged = boolean(object(object(o, "capabilities"), "tools"), "listChanged") == Yes
	}
	return s, nil
}

// object is the view of a member that is an object; the zero Object when it is none.
func object(o jsonrpc.Object, name string) jsonrpc.Object {
	raw, _ := o.Get(name)
	inner, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return jsonrpc.Object{}
	}
	return inner
}
