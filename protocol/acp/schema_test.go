package acp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// schemas are the project's own, for what ACP's schema does not know.
const schemas = "../../testdata/schema"

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func valid(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s.Validate(v)
}

func TestEverySchemaOfOursCompiles(t *testing.T) {
	files, err := os.ReadDir(schemas)
	if err != nil || len(files) < 18 {
		t.Fatalf("%d schemas, %v", len(files), err)
	}
	for _, f := range files {
		schema(t, strings.TrimSuffix(f.Name(), ".json"))
	}
}

func TestWhatTheCodecsSendIsWhatTheSchemasSay(t *testing.T) {
	declared := Declared{Name: "n", ID: "acp:i"}
	check := func(method string, params []byte) {
		t.Helper()
		name := strings.ReplaceAll(method, "/", ".") + ".params"
		if err := valid(t, schema(t, name), params); err != nil {
			t.Errorf("%s %s: %v", method, params, err)
		}
	}
	for _, c := range []Codec{Gen0, GenA, GenB, GenC} {
		if method, params, ok := c.Connect(declared); ok {
			check(method, params)
		}
		for _, inner := range [][]byte{nil, []byte(`{"a":1}`)} {
			method, params := c.Message("c", "r", "tools/list", inner)
			check(method, params)
		}
		if method, params, _, ok := c.Disconnect("c"); ok {
			check(method, params)
		}
		for _, n := range c.CancelFrames(jsonrpc.IntID(7)) {
			if n.Method != MethodCancelRequest { // which ACP's own schema knows
				check(n.Method, n.Params)
			}
		}
	}
}

func TestTheSchemasRefuseTheOtherGenerations(t *testing.T) {
	for name, bad := range map[string][]string{
		"mcp.connect.params":     {`{}`, `{"acpId":"a","serverId":"a"}`, `{"acp_id":"acp:a"}`, `{"acpId":""}`},
		"mcp.message.params":     {`{"connectionId":"c"}`, `{"serverId":"s","method":"m"}`, `{"connectionId":"c","method":"m","requestId":"r"}`, `{"connectionId":"c","method":"m","params":null}`},
		"mcp.message.result.c":   {`{}`, `{"result":1,"error":{"code":1,"message":"m"}}`, `{"error":{}}`},
		"_mcp.connect.params":    {`{"acp_id":"x"}`, `{"acpId":"acp:x"}`},
		"_mcp.disconnect.params": {`{"connectionId":"c"}`},
		"_acpod.turn_ended.params": {
			`{"sessionId":"` + nilID + `"}`, `{"sessionId":"` + nilID + `","stopReason":"endTurn"}`, `{"sessionId":"x","stopReason":"end_turn"}`,
			`{"sessionId":"` + nilID + `","stopReason":"end_turn","error":{"code":1,"message":"m"}}`,
		},
		"error": {`{"code":-32000,"message":"m"}`, `{"code":-32000,"message":"m","data":{"scope":"sessions","limit":1}}`, `{"code":-32001,"message":"m","data":{"reason":"x"}}`, `{"code":-32603,"message":"m"}`},
	} {
		s := schema(t, name)
		for _, text := range bad {
			if valid(t, s, []byte(text)) == nil {
				t.Errorf("%s accepts %s", name, text)
			}
		}
	}
}

func TestEveryErrorOfOurOwnIsWhatTheSchemaSays(t *testing.T) {
	s := schema(t, "error")
	_, oversized := jsonrpc.ScanLimit([]byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`), 10)
	_, twice := jsonrpc.Scan([]byte(`{"id":1,"id":1}`))
	_, noVersion := ParseInitialize([]byte(`{}`))
	_, noCwd := ParseNew([]byte(`{}`), nil)
	for _, e := range []*jsonrpc.Error{
		oversized.Err(), twice.Err(), noVersion, noCwd, UnknownSession("x"), CheckPrompt([]byte(`{}`), PromptCapabilities{}), CheckServers([]Declared{{Form: FormID}}, 0),
		jsonrpc.Draining(0), jsonrpc.Draining(time.Second), jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: "sessions", RetryAfter: 1}), jsonrpc.BusyError(), jsonrpc.SupersededError(),
		jsonrpc.InternalError(jsonrpc.ReasonIdle, "m"), jsonrpc.UnknownMethod("x"), jsonrpc.NotInitializedError("x"), jsonrpc.CancelledError(),
	} {
		if err := valid(t, s, e.AppendObject(nil)); err != nil {
			t.Errorf("%s: %v", e.AppendObject(nil), err)
		}
	}
}
