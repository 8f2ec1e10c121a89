package facade

import (
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// versions are the protocol versions that the facade speaks, newest first. From stateless on, a request brings its
// version and its client's capabilities itself and the closing of its connection is a cancellation; the older ones begin
// with initialize. Serving both at once is safe because who calls is read from the bearer of each request in either, and
// nothing that a client chose, a session id least of all, is a key.
var versions = []string{stateless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// stateless is the first version without a handshake.
const stateless = "2026-07-28"

// JSON-RPC codes of the protocol versions from stateless on.
const (
	headerMismatch          = -32020
	missingClientCapability = -32021
	unsupportedVersion      = -32022
)

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
)

// fault is a refusal of a whole request: an HTTP status with a JSON-RPC error.
type fault struct {
	status int
	err    *jsonrpc.Error
	// reason counts it, a closed set of short words.
	reason string
}

func badRequest(reason string, code int, message string) *fault {
	return &fault{status: http.StatusBadRequest, reason: reason, err: &jsonrpc.Error{Code: code, Message: message}}
}

func unsupported(requested string) *fault {
	f := badRequest("protocol_version", unsupportedVersion, "unsupported protocol version "+jsonrpc.Show(requested)+", use one of data.supported")
	f.err.Data = struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{versions, cut(requested, 64)}
	return f
}

// headerVersion reads the header that names the protocol version; "" when there is none, as the first versions have none.
// A version that nobody speaks is told with the id of the request, see eraOf, which is why it is not refused here.
func headerVersion(h http.Header) (string, *fault) {
	switch values := h["Mcp-Protocol-Version"]; len(values) {
	case 0:
		return "", nil
	case 1:
		if values[0] == "" {
			return "", unsupported("")
		}
		return values[0], nil
	}
	return "", badRequest("protocol_version", headerMismatch, "the header MCP-Protocol-Version stands more than once")
}

// eraOf decides whether a request is a stateless one, and then holds it to what its version asks of every request: the
// version in header and body alike, the client's capabilities, and headers that name the method and the tool as the
// body does, so that whatever reads only headers on the way cannot be told another thing than we are.
func eraOf(h http.Header, header, method string, params []byte) (modern bool, f *fault) {
	object, err := jsonrpc.ParseObject(params)
	var meta jsonrpc.Object
	if err == nil {
		if raw, ok := object.Get("_meta"); ok {
			meta, _ = jsonrpc.ParseObject(raw)
		}
	}
	body := ""
	if raw, ok := meta.Get(metaVersion); ok {
		body, _ = jsonrpc.String(raw)
	}
	known := header == "" || slices.Contains(versions, header)
	if known && header < stateless && body < stateless {
		return false, nil
	}
	switch {
	case !known:
		return header >= stateless, unsupported(header)
	case header != "" && body != "" && header != body:
		return true, badRequest("stateless_headers", headerMismatch, "the header MCP-Protocol-Version and _meta name different versions")
	case body == "":
		return true, badRequest("stateless_headers", jsonrpc.InvalidParams, "_meta has no "+metaVersion)
	case !slices.Contains(versions, body):
		return true, unsupported(body)
	case header == "":
		return true, badRequest("stateless_headers", headerMismatch, "the header MCP-Protocol-Version is missing, it has to name the version of _meta")
	case h.Get("Last-Event-Id") != "":
		return true, badRequest("stateless_headers", headerMismatch, "streams cannot be resumed, send the request again without Last-Event-ID")
	case h.Get("Mcp-Method") != method:
		return true, badRequest("stateless_headers", headerMismatch, "the header Mcp-Method does not name the method of the body")
	}
	if raw, ok := meta.Get(metaCapabilities); !ok || !jsonrpc.IsObject(raw) {
		return true, badRequest("stateless_headers", jsonrpc.InvalidParams, "_meta has no object "+metaCapabilities)
	}
	if method == "tools/call" {
		raw, _ := object.Get("name")
		name, _ := jsonrpc.String(raw)
		if told, ok := mcp.DecodeHeaderValue(h.Get("Mcp-Name")); !ok || told == "" || told != name {
			return true, badRequest("stateless_headers", headerMismatch, "the header Mcp-Name does not name the tool of the body")
		}
	}
	return true, nil
}

// era is eraOf, or what a message in a line says alone.
func (x *exchange) era(frame jsonrpc.Frame) (modern bool, f *fault) {
	if !x.lines {
		return eraOf(x.header, x.version, frame.Method, frame.Params)
	}
	object, _ := jsonrpc.ParseObject(frame.Params)
	raw, _ := object.Get("_meta")
	meta, _ := jsonrpc.ParseObject(raw)
	raw, _ = meta.Get(metaVersion)
	version, _ := jsonrpc.String(raw)
	if version < stateless {
		return false, nil
	}
	if !slices.Contains(versions, version) {
		return true, unsupported(version)
	}
	if raw, ok := meta.Get(metaCapabilities); !ok || !jsonrpc.IsObject(raw) {
		return true, badRequest("stateless_headers", jsonrpc.InvalidParams, "_meta has no object "+metaCapabilities)
	}
	x.header = http.Header{"Mcp-Protocol-Version": {version}, "Mcp-Method": {frame.Method}} // for who reads only headers
	return true, nil
}

// cut shortens what a peer wrote to n bytes for an answer to that peer.
func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
