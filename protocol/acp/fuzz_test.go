package acp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// FuzzParams feeds one text to every reader of params and results: none may panic,
// and what one accepts keeps its promises.
func FuzzParams(f *testing.F) {
	for _, s := range []string{
		`{"protocolVersion":1,"clientInfo":{"name":"x"},"mcpServers":[],"_meta":{"acpod.dev/client":"0123456789abcdef"}}`,
		`{"cwd":"/w","mcpServers":[{"type":"acp","name":"a","id":"1"}],"additionalDirectories":["/w/a"],"_meta":{"traceparent":"x"}}`,
		`{"sessionId":"sess_00000000-0000-0000-0000-000000000000","prompt":[{"type":"text","text":"a"},{"type":"image"}]}`,
		`{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"1","name":"n","kind":"allow_once"}]}`,
		`{"outcome":{"outcome":"selected","optionId":"1"}}`, `{"requestId":"a"}`, `{"stopReason":"end_turn"}`,
		`{"connectionId":"c","method":"m","params":{}}`, `{"serverId":"s","requestId":"r","method":"m"}`, `{"connection_id":"c"}`, `{"result":{},"error":null}`,
		`{"error":{"code":1,"message":"m"}}`, "{\"cwd\":\"\xff\",\"mcpServers\":[]}", `null`, `[]`, `7`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		refused := func(bad *jsonrpc.Error) {
			if bad == nil {
				return
			}
			if bad.Code != jsonrpc.InvalidParams || !json.Valid(bad.AppendObject(nil)) || strings.ContainsAny(bad.Message, "\n\r\x1b") {
				t.Fatalf("refused with %s", bad.AppendObject(nil))
			}
		}
		_, bad := ParseInitialize(b)
		refused(bad)
		if p, bad := ParseNew(b, nil); bad == nil {
			checkStart(t, p)
		} else {
			refused(bad)
		}
		if p, bad := ParseResume(b); bad == nil {
			checkStart(t, p)
		} else {
			refused(bad)
		}
		refused(CheckPrompt(b, PromptCapabilities{}))
		if p, bad := ParsePermission(b); bad == nil {
			if o, ok := p.Rejecting(); ok && !p.Offers(o.ID) {
				t.Fatalf("%+v is not offered", o)
			}
		} else {
			refused(bad)
		}
		if id, cancelled, err := ParseOutcome(b); err != nil && (id != "" || cancelled) {
			t.Fatalf("%q, %v, %v", id, cancelled, err)
		}
		ParseCancelRequest(b)
		ParseStopReason(b)
		UpdateKind(b)
		if info, err := ParseAgentInfo(b); err == nil && info.Version != ProtocolVersion {
			t.Fatalf("version %d", info.Version)
		}
		for _, c := range []Codec{Gen0, GenA, GenB, GenC} {
			if id, err := c.ParseConnected(b); err == nil && (id == "" || len(id) > MaxConnectionID) {
				t.Fatalf("connection id %q", id)
			}
			if inner, e := c.Unwrap(b); c == GenC && e == nil && !json.Valid(inner) {
				t.Fatalf("unwrapped %q", inner)
			}
			for _, method := range []string{MethodMCPMessage, MethodMCPMessage0} {
				if in, err := c.ParseInbound(method, b); err == nil && (in.Target == "" || in.Method == "" || in.Params != nil && !json.Valid(in.Params)) {
					t.Fatalf("inbound %+v", in)
				}
			}
		}
	})
}

// checkStart builds what an agent is told from what was read.
func checkStart(t *testing.T, p SessionParams) {
	if p.Servers != nil {
		list, err := ParseServers(p.Servers)
		if err == nil {
			checkServers(t, list)
		}
	}
	meta := FilterMeta(p.Meta, []string{"a"})
	text := AgentSession{SessionID: p.SessionID, Cwd: p.Cwd, AdditionalDirectories: p.AdditionalDirectories, Meta: meta}.Append(nil)
	o, err := jsonrpc.ParseObject(text)
	if err != nil {
		t.Fatalf("an agent is told %q", text)
	}
	for name := range o.Members() {
		switch name {
		case "sessionId", "cwd", "additionalDirectories", "mcpServers", "_meta":
		default:
			t.Fatalf("an agent is told %q", text)
		}
	}
	if servers, _ := o.Get("mcpServers"); string(servers) != "[]" {
		t.Fatalf("an agent is told %q", text)
	}
}

func checkServers(t *testing.T, list []Declared) {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, d := range list {
		if d.Verdict != Connect {
			if d.Reason == "" || strings.ContainsAny(d.Reason, "\n\r\x1b") || len(d.Name) > MaxNameBytes && d.Verdict != Repeated {
				t.Fatalf("%+v", d)
			}
			continue
		}
		if ids[d.ID] || names[d.Name] || d.ID == "" || len(d.ID) > MaxServerID || !ValidServerName(d.Name) || CodecFor(d) == nil {
			t.Fatalf("%+v of %+v", d, list)
		}
		ids[d.ID], names[d.Name] = true, true
		if d.Tools != nil && !json.Valid(d.Tools) {
			t.Fatalf("%+v", d)
		}
	}
}

// FuzzParseServers looks for declarations that break a rule and are connected.
func FuzzParseServers(f *testing.F) {
	for _, s := range []string{
		`[]`, `[{"type":"acp","name":"a","id":"1"},{"type":"acp","name":"b","serverId":"2","_meta":{"acpod.dev/tools":[]}}]`, `[{"type":"http","name":"a","url":"acp:1"}]`,
		`[{"name":"x","command":"sh"}]`, `[{"type":"acp","name":"a","id":"1"},{"type":"acp","name":"a","id":"2"},{"type":"acp","name":"b","id":"1"}]`, `[1,null,{}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseServers(b)
		if err != nil {
			return
		}
		checkServers(t, list)
		if n := CountServers(list); n > len(list) {
			t.Fatalf("%d of %d", n, len(list))
		}
	})
}

// FuzzMessage checks that whatever is sent through a tunnel arrives as it was.
func FuzzMessage(f *testing.F) {
	f.Add("c", "r", "tools/call", []byte(`{"a":"\ud800"}`))
	f.Add("\xff", "", "a\"b\n", []byte(`[1, 2]`))
	f.Fuzz(func(t *testing.T, target, request, method string, params []byte) {
		if !json.Valid(params) || params[0] == ' ' {
			return
		}
		params = bytes.TrimSpace(params)
		for _, c := range []Codec{Gen0, GenA, GenB, GenC} {
			outerMethod, outer := c.Message(target, request, method, params)
			o, err := jsonrpc.ParseObject(outer)
			if err != nil || !json.Valid(outer) {
				t.Fatalf("%s sends %q", c.Name(), outer)
			}
			if inner, _ := o.Get("params"); !bytes.Equal(inner, params) {
				t.Fatalf("%s sends %q of %q", c.Name(), inner, params)
			}
			if in, err := c.ParseInbound(outerMethod, outer); err == nil && in.Method != strings.ToValidUTF8(method, "\uFFFD") && !strings.Contains(in.Method, "\uFFFD") {
				t.Fatalf("%s reads %+v", c.Name(), in)
			}
		}
	})
}

func BenchmarkMessage(b *testing.B) {
	params := []byte(`{"name":"katashiro.click","arguments":{"selector":"#button"}}`)
	for _, c := range []Codec{GenA, GenC} {
		b.Run(c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, outer := c.Message("connection", "r1", "tools/call", params); len(outer) == 0 {
					b.Fatal("empty")
				}
			}
		})
	}
}

func BenchmarkParseNew(b *testing.B) {
	params := []byte(`{"cwd":"/","mcpServers":[{"type":"acp","name":"katashiro","id":"0b0e"}],"_meta":{"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"}}`)
	b.ReportAllocs()
	for b.Loop() {
		p, bad := ParseNew(params, nil)
		if bad != nil {
			b.Fatal(bad)
		}
		if _, err := ParseServers(p.Servers); err != nil {
			b.Fatal(err)
		}
	}
}
