package httplink

import (
	"errors"
	"fmt"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Bounds of what a tool has repeated in headers.
const (
	maxMirrors     = 32
	maxMirrorDepth = 8
	maxMirrorBytes = 16 << 10 // all names and values of one call
)

// Mirror is an argument of a tool that the era without a handshake repeats in a header (x-mcp-header in the tool's schema).
type Mirror struct {
	Header string   // Mcp-Param-…
	Path   []string // of members from the arguments down
}

// Mirrors reads them from a tool's input schema, in its order. An error says that the schema asks for what is not allowed: the tool must not be
// offered.
func Mirrors(schema []byte) ([]Mirror, error) {
	o, err := jsonrpc.ParseObject(schema)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return mirrorsOf(o, nil, nil)
}

func mirrorsOf(schema jsonrpc.Object, path []string, found []Mirror) ([]Mirror, error) {
	raw, ok := schema.Get("properties")
	if !ok || !jsonrpc.IsObject(raw) || len(path) == maxMirrorDepth {
		return found, nil
	}
	properties, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	for name, value := range properties.Members() {
		if !jsonrpc.IsObject(value) {
			continue
		}
		inner, err := jsonrpc.ParseObject(value)
		if err != nil {
			return nil, fmt.Errorf("input schema: %w", err)
		}
		at := append(path[:len(path):len(path)], name)
		if header, ok := inner.Get("x-mcp-header"); ok {
			m, err := mirror(header, inner, at)
			if err != nil {
				return nil, err
			}
			for _, other := range found {
				if strings.EqualFold(other.Header, m.Header) {
					return nil, fmt.Errorf("x-mcp-header %s stands twice", jsonrpc.Show(m.Header))
				}
			}
			if found = append(found, m); len(found) > maxMirrors {
				return nil, fmt.Errorf("more than %d parameters have x-mcp-header", maxMirrors)
			}
		}
		if found, err = mirrorsOf(inner, at, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func mirror(header []byte, schema jsonrpc.Object, path []string) (Mirror, error) {
	name, ok := jsonrpc.String(header)
	if !ok || !isToken(name) {
		return Mirror{}, fmt.Errorf("x-mcp-header %s is no name of a header", jsonrpc.Show(string(header)))
	}
	switch kind, _ := schema.Text("type"); kind {
	case "string", "integer", "boolean":
		return Mirror{Header: "Mcp-Param-" + name, Path: path}, nil
	}
	return Mirror{}, fmt.Errorf("x-mcp-header %s is on a parameter that is no string, integer or boolean", jsonrpc.Show(name))
}

// Fields are the headers of a call with these arguments, one JSON object. What is absent or null has none.
func Fields(mirrors []Mirror, arguments []byte) [][2]string {
	var fields [][2]string
	for _, m := range mirrors {
		if v, ok := field(m.Path, arguments); ok {
			fields = append(fields, [2]string{m.Header, fieldOf(v)})
		}
	}
	return fields
}

func field(path []string, value []byte) (string, bool) {
	for _, name := range path {
		if !jsonrpc.IsObject(value) {
			return "", false
		}
		o, err := jsonrpc.ParseObject(value)
		if err != nil {
			return "", false
		}
		var ok bool
		if value, ok = o.Get(name); !ok {
			return "", false
		}
	}
	switch {
	case len(value) == 0 || jsonrpc.IsNull(value) || jsonrpc.IsObject(value) || jsonrpc.IsArray(value):
		return "", false
	case value[0] == '"':
		return jsonrpc.String(value)
	}
	return string(value), true // a number as it was written, true, false
}

var errMirror = errors.New("the arguments that the tool wants repeated in headers do not fit there")

// checkMirrored is the last look at headers of a message before they leave.
func checkMirrored(fields [][2]string) error {
	size := 0
	for _, f := range fields {
		if size += len(f[0]) + len(f[1]); size > maxMirrorBytes || !isToken(f[0]) || !isFieldValue(f[1]) || !strings.HasPrefix(f[0], "Mcp-Param-") {
			return errMirror
		}
	}
	return nil
}
