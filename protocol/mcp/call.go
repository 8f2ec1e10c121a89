package mcp

import (
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// CallParams are the params of tools/call with the arguments spliced to the byte;
// nil arguments leave the member out. A zero token asks for no progress.
func CallParams(name string, arguments []byte, token jsonrpc.ID) []byte {
	dst := jsonrpc.AppendString([]byte(`{"name":`), name)
	if arguments != nil {
		dst = append(dst, `,"arguments":`...)
		dst = append(dst, arguments...)
	}
	if !token.IsZero() {
		dst = append(dst, `,"_meta":{"`+MetaProgressToken+`":`...)
		dst = token.Append(dst)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// ArgumentsHead opens the params of tools/call, which have no arguments yet, for
// arguments that are written apart: it is what stands before them. One closing brace
// stands behind them.
func ArgumentsHead(params []byte) []byte {
	head := params[: len(params)-1 : len(params)-1]
	return append(head, `,"arguments":`...)
}

// ListParams are the params of tools/list: nil for the first page.
func ListParams(cursor string) []byte {
	if cursor == "" {
		return nil
	}
	return append(jsonrpc.AppendString([]byte(`{"cursor":`), cursor), '}')
}

// ModernParams returns the params of a request of the modern era: the same with the
// protocol version and the pod's capabilities in their _meta, every other byte as it
// was. nil stands for {}.
func ModernParams(params []byte, build string) ([]byte, error) {
	var o jsonrpc.Object
	if params != nil {
		var err error
		if o, err = jsonrpc.ParseObject(params); err != nil {
			return nil, err
		}
	}
	info := append(jsonrpc.AppendString([]byte(`{"name":"acpod","version":`), build), '}')
	meta := object(o, "_meta").Apply(nil,
		jsonrpc.Edit{Name: MetaProtocolVersion, Value: []byte(`"` + VersionModern + `"`)},
		jsonrpc.Edit{Name: MetaClientInfo, Value: info},
		jsonrpc.Edit{Name: MetaClientCapabilities, Value: []byte("{}")},
	)
	return o.Set("_meta", meta), nil
}

// ParseProgress reads the token of notifications/progress.
func ParseProgress(params []byte) (token jsonrpc.ID, ok bool) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil || o.Unique(MetaProgressToken) != nil {
		return jsonrpc.ID{}, false
	}
	raw, _ := o.Get(MetaProgressToken)
	token, ok = jsonrpc.ParseID(raw)
	return token, ok && !token.IsNull()
}

// ProgressToken reads _meta.progressToken of a request's params.
func ProgressToken(params []byte) (token jsonrpc.ID, ok bool) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	raw, ok := object(o, "_meta").Get(MetaProgressToken)
	if !ok {
		return jsonrpc.ID{}, false
	}
	token, ok = jsonrpc.ParseID(raw)
	return token, ok && !token.IsNull()
}

// ParseCancelled reads the request id of notifications/cancelled.
func ParseCancelled(params []byte) (jsonrpc.ID, bool) {
	o, err := jsonrpc.ParseObject(params)
	if err != nil || o.Unique("requestId") != nil {
		return jsonrpc.ID{}, false
	}
	raw, _ := o.Get("requestId")
	return jsonrpc.ParseID(raw)
}
