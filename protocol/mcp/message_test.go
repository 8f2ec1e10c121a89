package mcp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

func TestTheHandshakeAsksForOneVersionAndTakesThree(t *testing.T) {
	if got, want := string(InitializeParams(`v"1`)), `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"acpod","version":"v\"1"}}`; got != want {
		t.Errorf("got %s", got)
	}
	for _, version := range []string{"2025-06-18", "2025-03-26", "2024-11-05"} {
		s, err := ParseInitialized([]byte(`{"protocolVersion":"` + version + `","serverInfo":{"name":"n","title":"t","version":"v"},"capabilities":{"tools":{"listChanged":true}}}`))
		if err != nil || s != (Server{Version: version, Name: "n", Title: "t", Build: "v", Tools: true, ListChanged: true}) {
			t.Errorf("%s: %+v, %v", version, s, err)
		}
	}
	for _, result := range []string{`{"protocolVersion":"2025-11-25"}`, `{"protocolVersion":"2026-07-28"}`, `{"protocolVersion":1}`, `{"protocolVersion":null}`, `{}`} {
		_, err := ParseInitialized([]byte(result))
		if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "requested 2025-06-18, accepted 2025-06-18, 2025-03-26, 2024-11-05") {
			t.Errorf("%s: %v", result, err)
		}
	}
	if _, err := ParseInitialized([]byte(`{"protocolVersion":"x\ny"}`)); !strings.Contains(err.Error(), `answered`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	for _, result := range []string{``, `null`, `{"protocolVersion":"2025-06-18","protocolVersion":"2025-06-18"}`} {
		if s, err := ParseInitialized([]byte(result)); err == nil {
			t.Errorf("%s gave %+v", result, s)
		}
	}
}

func TestMalformedServerInfoDegrades(t *testing.T) {
	s, err := ParseInitialized([]byte(`{"protocolVersion":"2025-06-18","serverInfo":7,"capabilities":{"tools":true}}`))
	if err != nil || s != (Server{Version: "2025-06-18"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestArgumentsPassToTheByte(t *testing.T) {
	const arguments = `{ "n":9007199254740993,"s":"\ud800\u003c","d":1,"d":2}`
	for want, got := range map[string][]byte{
		`{"name":"a\"b","arguments":` + arguments + `}`: CallParams(`a"b`, []byte(arguments), jsonrpc.ID{}),
		`{"name":"a"}`: CallParams("a", nil, jsonrpc.ID{}),
		`{"name":"a","arguments":` + arguments + `,"_meta":{"progressToken":"t"}}`: CallParams("a", []byte(arguments), jsonrpc.StringID("t")),
		`{"name":"a","_meta":{"progressToken":7}}`:                                 CallParams("a", nil, jsonrpc.IntID(7)),
		`{"cursor":"c\n"}`: ListParams("c\n"),
	} {
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if ListParams("") != nil {
		t.Error("the first page has params")
	}
}

func TestModernRequestsSayTheirVersion(t *testing.T) {
	const ours = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"acpod","version":"v"},"io.modelcontextprotocol/clientCapabilities":{}`
	for in, want := range map[string]string{
		``: `{"_meta":{` + ours + `}}`,
		`{"name":"a","arguments":{"s":"\ud800", "d":1,"d":2}}`: `{"name":"a","arguments":{"s":"\ud800", "d":1,"d":2},"_meta":{` + ours + `}}`,
		`{"_meta":{"progressToken":7},"name":"a"}`:             `{"_meta":{"progressToken":7,` + ours + `},"name":"a"}`,
		`{"_meta":null}`: `{"_meta":{` + ours + `}}`,
		`{"_meta":{"io.modelcontextprotocol\/protocolVersion":"old"}}`: `{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28",` + strings.SplitN(ours, ",", 2)[1] + `}}`,
	} {
		var params []byte
		if in != "" {
			params = []byte(in)
		}
		got, err := ModernParams(params, "v")
		if err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if _, err := ModernParams([]byte("[]"), "v"); err == nil {
		t.Error("an array has no _meta")
	}
}

func TestTokensAndIDsInNotifications(t *testing.T) {
	if token, ok := ParseProgress([]byte(`{"progressToken":"a\u0062","progress":1}`)); !ok || token.Key() != jsonrpc.StringID("ab").Key() {
		t.Errorf("%s, %v", token, ok)
	}
	if token, ok := ProgressToken(CallParams("a", nil, jsonrpc.IntID(7))); !ok || token != jsonrpc.IntID(7) {
		t.Errorf("%s, %v", token, ok)
	}
	if id, ok := ParseCancelled([]byte(`{"requestId":0,"reason":"x"}`)); !ok || id != jsonrpc.IntID(0) {
		t.Errorf("%s, %v", id, ok)
	}
	for _, params := range []string{``, `{}`, `[]`, `{"progressToken":null,"requestId":1.5,"_meta":{"progressToken":null}}`, `{"progressToken":1,"progressToken":2,"requestId":1,"requestId":2,"_meta":[]}`} {
		if token, ok := ParseProgress([]byte(params)); ok {
			t.Errorf("%s: progress of %s", params, token)
		}
		if token, ok := ProgressToken([]byte(params)); ok {
			t.Errorf("%s: asks for progress of %s", params, token)
		}
		if id, ok := ParseCancelled([]byte(params)); ok {
			t.Errorf("%s: cancels %s", params, id)
		}
	}
}

func TestAResultIsLookedAtAndLeftAlone(t *testing.T) {
	const raw = `{ "content":[ {"type":"image","data":"\u003c"} ],"structuredContent":{"a":1,"a":2},"isError":true,"_meta":{"m":1},"more":"\ud800","content":[1] }`
	r, err := ParseResult([]byte(" " + raw + "\n"))
	if err != nil || string(r.Raw) != raw || string(r.Content) != "[1]" || string(r.StructuredContent) != `{"a":1,"a":2}` || string(r.Meta) != `{"m":1}` || !r.IsError || !r.Final() {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = ParseResult([]byte(`{"content":{},"structuredContent":null,"isError":"true","_meta":[],"resultType":"input_required"}`))
	if err != nil || r.Content != nil || r.StructuredContent != nil || r.Meta != nil || r.IsError || r.Final() {
		t.Errorf("%+v, %v", r, err)
	}
	for _, raw := range []string{``, `null`, `[]`, `{"isError":false,"is\u0045rror":true}`, `{"resultType":"complete","resultType":"x"}`} {
		if r, err := ParseResult([]byte(raw)); err == nil {
			t.Errorf("%s gave %+v", raw, r)
		}
	}
}

func TestRefusalsAreResults(t *testing.T) {
	for want, got := range map[string][]byte{
		`{"content":[{"type":"text","text":"no \"x\""}],"isError":true,"_meta":{"acpod.dev/refusal":"unknown"}}`: ErrorResult(`no "x"`, "unknown"),
		`{"content":[{"type":"text","text":"no"}],"isError":true}`:                                               ErrorResult("no", ""),
		`{"content":[{"type":"text","text":"yes"}]}`:                                                             TextResult("yes"),
	} {
		if string(got) != want {
			t.Errorf("got %s", got)
		}
		if r, err := ParseResult(got); err != nil || r.IsError != strings.Contains(want, "isError") {
			t.Errorf("read back: %+v, %v", r, err)
		}
	}
}

func FuzzResults(f *testing.F) {
	for _, s := range []string{`{"content":[],"isError":true}`, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}`, `{"progressToken":1}`, `{"requestId":"a"}`, `{"_meta":{"progressToken":1}}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseResult(b); err == nil && (!json.Valid(r.Raw) || r.Content != nil && r.Content[0] != '[' || r.Meta != nil && r.Meta[0] != '{') {
			t.Fatalf("%+v", r)
		}
		if _, err := ParseInitialized(b); err != nil && strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Fatalf("%q", err)
		}
		ParseProgress(b)
		ProgressToken(b)
		ParseCancelled(b)
		if out, err := ModernParams(b, "v"); err == nil && !json.Valid(out) {
			t.Fatalf("%q", out)
		}
		if !json.Valid(ErrorResult(string(b), string(b))) || !json.Valid(CallParams(string(b), nil, jsonrpc.ID{})) {
			t.Fatal("built no JSON")
		}
	})
}

func BenchmarkCallParams(b *testing.B) {
	arguments := []byte(`{"selector":"#button"}`)
	b.ReportAllocs()
	for b.Loop() {
		if len(CallParams("katashiro.click", arguments, jsonrpc.ID{})) == 0 {
			b.Fatal("empty")
		}
	}
}

func BenchmarkParseResult(b *testing.B) {
	raw := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 1000) + `"}],"isError":false}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseResult(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnOverloadSaysWhatWasFull(t *testing.T) {
	data := jsonrpc.OverloadData{Scope: "session_bytes", Limit: 10, Used: 9, Size: 2, RetryAfter: time.Second}
	want := `{"content":[{"type":"text","text":"no room"}],"isError":true,"_meta":{"acpod.dev/refusal":"overloaded",` +
		`"acpod.dev/overload":{"scope":"session_bytes","limit":10,"used":9,"size":2,"retry_after_ms":1000}}}`
	if got := string(OverloadResult("no room", "overloaded", data)); got != want {
		t.Errorf("got %s", got)
	}
}
