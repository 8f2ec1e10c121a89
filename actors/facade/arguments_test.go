package facade

import (
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Whatever a client sends: it is refused with a reason, or what goes on to a capability is a whole JSON object within
// what was sent.
func FuzzParamsOfACallAreRefusedOrWhole(f *testing.F) {
	for _, s := range []string{
		`{"name":"execute_capability","arguments":{"name":"a.b","arguments":{"x":"\ud800"},"idempotency_key":"k"}}`,
		`{"name":"search_capabilities","arguments":{"query":"q","limit":5,"cursor":"c","detail":"names"}}`,
		`{"name":"execute_capability","arguments":{"name":"a.b","arguments":null},"_meta":{"progressToken":1}}`,
		`{"name":"execute_capability","name":"x"}`, `{}`, `[]`, `{"name":"execute_capability","arguments":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		if !jsonrpc.Valid(params) {
			return // Scan has judged this before
		}
		call, bad := parseToolCall(params)
		if bad != nil {
			if bad.Code != jsonrpc.InvalidParams || bad.Message == "" {
				t.Fatalf("%+v", bad)
			}
			return
		}
		if call.tool != searchTool && call.tool != executeTool {
			t.Fatalf("tool %q", call.tool)
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
		if req.Arguments != nil && (!isObject(req.Arguments) || !jsonrpc.Valid(req.Arguments)) {
			t.Fatalf("arguments %q", req.Arguments)
		}
	})
}
