package facade

import (
	"net/http"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestWhatAClientCanAskIsWhatItDeclares(t *testing.T) {
	for declared, want := range map[string]elicits{
		`{}`: 0, `{"elicitation":null}`: 0, `{"elicitation":true}`: 0, `{"elicitation":[]}`: 0, `{"elicitation":{}}`: elicitsForms,
		`{"elicitation":{"form":{}}}`: elicitsForms, `{"elicitation":{"url":{}}}`: elicitsURLs, `{"elicitation":{"url":{},"form":{}}}`: elicitsForms | elicitsURLs,
		`{"elicitation":{"form":false}}`: 0, `{"elicitation":{"voice":{}}}`: 0, `{"sampling":{}}`: 0,
	} {
		object, err := jsonrpc.ParseObject([]byte(declared))
		if got := elicitsOf(object); err != nil || got != want {
			t.Errorf("%s: %b, want %b", declared, got, want)
		}
	}
}

func TestOnlyAnAnswerIsTakenForOne(t *testing.T) {
	for result, want := range map[string]bool{
		`{"action":"accept","content":{"a":1}}`: true, `{"action":"decline"}`: true, `{"action":"cancel","content":null}`: true,
		`{"action":"Accept"}`: false, `{}`: false, `{"action":1}`: false, `[]`: false, `"accept"`: false, ``: false,
		`{"action":"decline","action":"accept"}`: false, `{"action":"accept","content":{},"content":{"a":1}}`: false,
	} {
		if got := isAnswer([]byte(result)); got != want {
			t.Errorf("%s: %t", result, got)
		}
	}
}

// Whatever a server asks: it is not put, or the user is told who asks, and it is one question of a kind that the client can put.
func FuzzAQuestionIsDeclinedOrSaysWhoAsks(f *testing.F) {
	for _, s := range []string{form, `{"message":"m","mode":"url","url":"https://a.example"}`, `{"message":"\ud800","requestedSchema":{},"task":{"ttl":1}}`,
		`{"message":"a","mess\u0061ge":"b","requestedSchema":{}}`, `{"mode":"form","requestedSchema":[]}`, `{"mode":1}`, `[]`, ``} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, can uint8) {
		params, ok := questionFor(capability.Elicitation{Provider: "mail", Params: raw}, elicits(can&3))
		if !ok {
			return
		}
		object, err := jsonrpc.ParseObject(params)
		if err != nil || !jsonrpc.Valid(params) || object.Unique("message", "mode", "url", "requestedSchema") != nil || object.Has("task") {
			t.Fatalf("%v %q", err, params)
		}
		message, _ := object.Text("message")
		mode, _ := object.Text("mode")
		url, _ := object.Text("url")
		if !strings.HasPrefix(message, "mail asks: ") || can&3 == 0 ||
			mode == "url" && (can&uint8(elicitsURLs) == 0 || !strings.HasPrefix(url, "https://")) || mode != "url" && can&uint8(elicitsForms) == 0 {
			t.Fatalf("%q", params)
		}
	})
}

// Whatever a request says of its version: it is refused, or header and body agree on everything that both say.
func FuzzARequestOfTheStatelessVersionAgreesWithItsHeaders(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, s := range []struct{ version, method, name, frame, params string }{
		{"2026-07-28", "tools/call", "a", "tools/call", `{"name":"a",` + meta + `}`}, {"2026-07-28", "tools/list", "", "tools/call", `{"name":"a",` + meta + `}`},
		{"", "", "", "ping", `{}`}, {"2025-11-25", "", "", "tools/list", `{` + meta + `}`}, {"v9", "x", "", "x", `{` + meta + `}`},
		{"2026-07-28", "tools/call", "=?base64?YQ==?=", "tools/call", `{"name":"a",` + meta + `}`}, {"2026-07-28", "tools/call", "b", "tools/call", `{"name":"b","name":"a",` + meta + `}`},
	} {
		f.Add(s.version, s.method, s.name, s.frame, []byte(s.params))
	}
	f.Fuzz(func(t *testing.T, version, method, name, frame string, params []byte) {
		if !jsonrpc.Valid(params) {
			return // Scan has judged this before
		}
		h := http.Header{"Mcp-Method": {method}, "Mcp-Name": {name}}
		modern, bad := eraOf(h, version, frame, params)
		switch {
		case bad != nil:
			if bad.status != 400 || bad.reason == "" || bad.err.Message == "" {
				t.Fatalf("%+v", bad)
			}
		case modern && (version != stateless || method != frame || frame == "tools/call" && name == ""):
			t.Fatalf("taken for stateless: %q %q %q %q", version, method, name, params)
		case !modern && version >= stateless:
			t.Fatalf("taken for an older one: %q", version)
		}
	})
}
