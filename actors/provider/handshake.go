package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// versions are those that a server may answer with, newest first. The first is the one that is asked for. What is sent to a
// server (initialize, tools/list, tools/call, ping, logging/setLevel and the notifications) means the same in all of them.
var versions = []string{"2025-11-25", mcp.VersionRequested, "2025-03-26", "2024-11-05"}

// methodSetLevel and the answer of a user who was not asked; names that only a configured server meets.
const methodSetLevel = "logging/setLevel"

// errHandshake is wrapped by what is wrong with a server's answers. Its transport works.
var errHandshake = errors.New("the server does not speak MCP as it should")

// errModern is a server that answers the handshake with the version that has none.
var errModern = errors.New("it answered with " + mcp.VersionModern + ", which has no handshake")

// initializeParams say what servers may ask of the pod: its roots, and a question to the user behind a call.
func initializeParams(build string) []byte {
	dst := []byte(`{"protocolVersion":"` + versions[0] + `","capabilities":{"roots":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"acpod","version":`)
	return append(jsonrpc.AppendString(dst, build), "}}"...)
}

// greeting is what a server said of itself.
type greeting struct {
	version string
	tools   bool
	logging bool
	changes bool // it tells when its tools change, to who listens
}

// parseGreeting reads the result of initialize. Only the version must be there; the rest is a claim that may be absent.
func parseGreeting(result []byte) (greeting, error) {
	o, err := jsonrpc.ParseObject(result)
	if err == nil {
		err = o.Unique("protocolVersion", "capabilities")
	}
	if err != nil {
		return greeting{}, fmt.Errorf("%w: result of initialize: %w", errHandshake, err)
	}
	raw, _ := o.Get("protocolVersion")
	version, _ := jsonrpc.String(raw)
	if version == mcp.VersionModern { // which no handshake agrees on
		return greeting{}, fmt.Errorf("%w: result of initialize: %w", errHandshake, errModern)
	}
	if !slices.Contains(versions, version) {
		answered := "no version"
		if version != "" {
			answered = jsonrpc.Show(version)
		}
		return greeting{}, fmt.Errorf("%w: it answered with %s, and the pod speaks %s", errHandshake, answered, strings.Join(versions, ", "))
	}
	g := greeting{version: version}
	capabilities := member(o, "capabilities")
	raw, _ = capabilities.Get("tools")
	g.tools = jsonrpc.IsObject(raw)
	raw, _ = member(capabilities, "tools").Get("listChanged")
	g.changes, _ = jsonrpc.Bool(raw)
	raw, _ = capabilities.Get("logging")
	g.logging = jsonrpc.IsObject(raw)
	return g, nil
}

// member is a member that is an object; the zero Object when it is none.
func member(o jsonrpc.Object, name string) jsonrpc.Object {
	raw, _ := o.Get(name)
	inner, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return jsonrpc.Object{}
	}
	return inner
}
