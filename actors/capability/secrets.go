package capability

import (
	"github.com/acpod/acpod/actors/capability/redact"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// withoutSecrets is a configured server's error without what looks like a credential. One without any is the same value: it passes as it
// came.
func withoutSecrets(e *jsonrpc.Error) *jsonrpc.Error {
	raw := e.Raw()
	if raw == nil {
		raw = e.AppendObject(nil)
	}
	if masked := redact.Text(string(raw)); masked != string(raw) {
		if out := []byte(masked); jsonrpc.Valid(out) {
			return jsonrpc.ParseError(out)
		}
		return &jsonrpc.Error{Code: e.Code, Message: redact.Text(e.Message)}
	}
	if masked := redact.Text(e.Message); masked != e.Message { // it was hidden by how it was escaped
		return &jsonrpc.Error{Code: e.Code, Message: masked}
	}
	return e
}
