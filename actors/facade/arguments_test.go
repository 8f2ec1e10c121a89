package facade

import (
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Whatever a client sends: it is refused with a reason, or what goes on to a capability is a whole JSON value within
// what was sent.
func FuzzParamsOfACallAreRefusedOrWhole(f *testing.F) {
	for _, s := range []string{
		`{"name":"execute_capability","arguments":{"name":"a.b","arguments":{"x":"\ud800"},"idempotency_key":"k"}}`,
		`{"name":"search_capabilities","arguments":{"query":"q","limit":5,"cursor":"c","detail":"names"}}`,
		`{"name":"execute_capability","arguments":{"name":"a.b","arguments":null},"_meta":{"progressToken":1}}`,
		`{"name":"execute_capability","name":"x"}`, `{}`, `[]`,
		`{"name":"katashiro.read","arguments":{"name":1},"requestState":"s","inputResponses":{"answer":{"action":"accept"}}}`, `{"name":"katashiro.read","arguments":"{}"}`,
		`{"name":"execute_capability","arguments":{"Name":"a.b","name":"c.d"}}`, `{"name":"execute_capability","arguments":{"arguments":{"name":"a.b"}}}`, `{"name":"execute_capability","arguments":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		if !jsonrpc.Valid(params) {
			return // Scan has judged this before
		}
		call, bad := parseToolCall(params, func(name string) bool { return name == "katashiro.read" })
		if bad != nil {
			if bad.Code != jsonrpc.InvalidParams || bad.Message == "" {
				t.Fatalf("%+v", bad)
			}
			return
		}
		if call.progressToken != nil && !jsonrpc.Valid(call.progressToken) {
			t.Fatalf("token %q", call.progressToken)
		}
		if call.tool == "katashiro.read" {
			if call.raw != nil && !jsonrpc.Valid(call.raw) {
				t.Fatalf("arguments %q", call.raw)
			}
			return
		}
		if !reserved(call.tool) || call.raw != nil {
			t.Fatalf("tool %q with %q", call.tool, call.raw)
		}
		if q, refusal := parseQuery(call.arguments); refusal == nil && (q.Limit < 0 || q.Limit > 100) {
			t.Fatalf("%+v", q)
		}
		req, refusal := parseExecution(call.arguments)
		if refusal != nil {
			if refusal.Code != "bad_arguments" || refusal.Text == "" {
				t.Fatalf("%+v", refusal)
			}
			return
		}
		if req.Arguments != nil && (jsonrpc.IsNull(req.Arguments) || !jsonrpc.Valid(req.Arguments)) {
			t.Fatalf("arguments %q", req.Arguments)
		}
	})
}
