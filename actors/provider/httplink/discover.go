package httplink

import (
	"fmt"
	"slices"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

// MethodDiscover asks a server of the era without a handshake what it is. It takes no params.
const MethodDiscover = "server/discover"

// CodeVersion is the error of a server that does not speak the version of a request; its data says which it speaks.
const CodeVersion = -32022

// Discovered reads the result of server/discover. A server that does not speak [mcp.VersionModern] is an error, which wraps [mcp.ErrVersion].
func Discovered(result []byte) (mcp.Server, error) {
	o, err := jsonrpc.ParseObject(result)
	if err != nil {
		return mcp.Server{}, fmt.Errorf("result of %s: %w", MethodDiscover, err)
	}
	if err := o.Unique("supportedVersions", "capabilities"); err != nil {
		return mcp.Server{}, fmt.Errorf("result of %s: %w", MethodDiscover, err)
	}
	raw, _ := o.Get("supportedVersions")
	if versions := texts(raw); !slices.Contains(versions, mcp.VersionModern) {
		return mcp.Server{}, fmt.Errorf("%w: the server speaks %s", mcp.ErrVersion, jsonrpc.Show(string(raw)))
	}
	s := mcp.Server{Version: mcp.VersionModern}
	info := member(o, "serverInfo")
	s.Name, _ = info.Text("name")
	s.Title, _ = info.Text("title")
	s.Build, _ = info.Text("version")
	capabilities := member(o, "capabilities")
	if raw, _ := capabilities.Get("tools"); jsonrpc.IsObject(raw) {
		s.Tools = true
		changed, _ := member(capabilities, "tools").Get("listChanged")
		s.ListChanged, _ = jsonrpc.Bool(changed)
	}
	return s, nil
}

// Supported are the versions that an error of [CodeVersion] names, and whether it is one.
func Supported(e *jsonrpc.Error) ([]string, bool) {
	if e == nil || e.Code != CodeVersion {
		return nil, false
	}
	data, err := jsonrpc.ParseObject(e.RawData)
	if err != nil {
		return nil, true
	}
	raw, _ := data.Get("supported")
	return texts(raw), true
}

// maxVersions bounds the list of versions that is read.
const maxVersions = 32

func texts(raw []byte) (list []string) {
	elements, err := jsonrpc.Elements(raw)
	if err != nil {
		return nil
	}
	for i, e := range elements {
		if s, ok := jsonrpc.String(e); ok {
			list = append(list, s)
		}
		if i == maxVersions {
			break
		}
	}
	return list
}

func member(o jsonrpc.Object, name string) jsonrpc.Object {
	raw, _ := o.Get(name)
	inner, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return jsonrpc.Object{}
	}
	return inner
}
