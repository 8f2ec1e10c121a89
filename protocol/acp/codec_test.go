package acp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// generation is what one generation says on the wire, written by hand from its
// description.
var generations = []struct {
	codec                                           Codec
	declaration                                     string
	connect, connected, message, disconnect, cancel string
	inbound                                         string
	target                                          string
}{
	{
		codec: Gen0, declaration: `{"type":"http","name":"n","url":"acp:u-1","headers":[]}`,
		connect: `_mcp/connect {"acp_id":"acp:u-1"}`, connected: `{"connection_id":"c1","serverInfo":{}}`,
		message:    `_mcp/message {"connectionId":"c1","method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993,"s":"\ud800\u003c"}}}`,
		disconnect: `notification _mcp/disconnect {"connection_id":"c1"}`,
		cancel:     `$/cancel_request {"requestId":7}`,
		inbound:    `_mcp/message {"connectionId":"c1","method":"m","params":{"a": 1}}`, target: "c1",
	},
	{
		codec: GenA, declaration: `{"type":"acp","name":"n","id":"u-1"}`,
		connect: `mcp/connect {"acpId":"u-1"}`, connected: `{"connectionId":"c1"}`,
		message:    `mcp/message {"connectionId":"c1","method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993,"s":"\ud800\u003c"}}}`,
		disconnect: `request mcp/disconnect {"connectionId":"c1"}`,
		cancel:     `$/cancel_request {"requestId":7}, mcp/cancel {"requestId":7}`,
		inbound:    `mcp/message {"connectionId":"c1","method":"m","params":{"a": 1}}`, target: "c1",
	},
	{
		codec: GenB, declaration: `{"type":"acp","name":"n","serverId":"u-1"}`,
		connect: `mcp/connect {"serverId":"u-1"}`, connected: `{"connectionId":"c1","_meta":{}}`,
		message:    `mcp/message {"connectionId":"c1","method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993,"s":"\ud800\u003c"}}}`,
		disconnect: `request mcp/disconnect {"connectionId":"c1"}`,
		cancel:     `$/cancel_request {"requestId":7}`,
		inbound:    `mcp/message {"connectionId":"c1","method":"m","params":{"a": 1}}`, target: "c1",
	},
	{
		codec: GenC, declaration: `{"type":"acp","name":"n","serverId":"u-1"}`,
		message: `mcp/message {"serverId":"u-1","requestId":"r1","method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993,"s":"\ud800\u003c"}}}`,
		cancel:  `$/cancel_request {"requestId":7}`,
		inbound: `mcp/message {"serverId":"u-1","requestId":"r1","method":"m","params":{"a": 1}}`, target: "u-1",
	},
}

func TestEachGenerationSpeaksItsOwnWire(t *testing.T) {
	for _, g := range generations {
		t.Run(g.codec.Name(), func(t *testing.T) {
			list, err := ParseServers([]byte("[" + g.declaration + "]"))
			if err != nil || list[0].Verdict != Connect {
				t.Fatalf("%+v, %v", list, err)
			}
			codec := CodecFor(list[0])
			if g.codec == GenC {
				codec, _ = Fallback(codec, &jsonrpc.Error{Code: jsonrpc.MethodNotFound})
			}
			if codec != g.codec {
				t.Fatalf("the declaration leads to %v", codec)
			}
			target := list[0].ID
			if method, params, ok := codec.Connect(list[0]); ok {
				expect(t, "connect", method+" "+string(params), g.connect)
				if target, err = codec.ParseConnected([]byte(g.connected)); err != nil {
					t.Fatal(err)
				}
			} else if g.connect != "" {
				t.Error("no connect")
			}
			expect(t, "target", target, g.target)
			method, params := codec.Message(target, "r1", "tools/call", []byte(`{"name":"x","arguments":{"n":9007199254740993,"s":"\ud800\u003c"}}`))
			expect(t, "message", method+" "+string(params), g.message)
			if _, params := codec.Message(target, "r1", "m", nil); strings.Contains(string(params), "params") || !jsonrpc.Valid(params) {
				t.Errorf("without params: %s", params)
			}
			got := ""
			if method, params, request, ok := codec.Disconnect(target); ok {
				got = map[bool]string{true: "request ", false: "notification "}[request] + method + " " + string(params)
			}
			expect(t, "disconnect", got, g.disconnect)
			var cancels []string
			for _, n := range codec.CancelFrames(jsonrpc.IntID(7)) {
				cancels = append(cancels, n.Method+" "+string(n.Params))
			}
			expect(t, "cancel", strings.Join(cancels, ", "), g.cancel)
			method, inner, _ := strings.Cut(g.inbound, " ")
			for name, parse := range map[string]func(string, []byte) (Inbound, error){"its own": codec.ParseInbound, "any": ParseInbound} {
				in, err := parse(method, []byte(inner))
				if err != nil || in.Target != g.target || in.Method != "m" || string(in.Params) != `{"a": 1}` || in.Stateless != codec.Stateless() || (in.RequestID == "r1") != codec.Stateless() {
					t.Errorf("%s reads %+v, %v", name, in, err)
				}
			}
		})
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}

func TestAConnectionIDIsAStringOf1To1024Bytes(t *testing.T) {
	for _, codec := range []Codec{Gen0, GenA, GenB} {
		name := "connectionId"
		if codec == Gen0 {
			name = "connection_id"
		}
		answer := func(value string) []byte { return []byte(fmt.Sprintf(`{%q:%s}`, name, value)) }
		for _, good := range []string{`"x"`, `"` + strings.Repeat("x", MaxConnectionID) + `"`} {
			if _, err := codec.ParseConnected(answer(good)); err != nil {
				t.Errorf("%s: %.10s: %v", codec.Name(), good, err)
			}
		}
		for _, bad := range [][]byte{answer(`""`), answer("1"), answer("null"), answer(`"` + strings.Repeat("x", MaxConnectionID+1) + `"`), []byte(`{}`), []byte(`null`), nil,
			[]byte(fmt.Sprintf(`{%q:"a",%q:"b"}`, name, name))} {
			if id, err := codec.ParseConnected(bad); !errors.Is(err, ErrConnected) {
				t.Errorf("%s: %.40s gave %q, %v", codec.Name(), bad, id, err)
			}
		}
	}
	if _, err := GenC.ParseConnected([]byte(`{"connectionId":"x"}`)); !errors.Is(err, ErrConnected) {
		t.Error("generation C has connections")
	}
}

func TestOnlyAnUnknownMethodLeadsFromBToC(t *testing.T) {
	notFound := &jsonrpc.Error{Code: jsonrpc.MethodNotFound}
	for _, from := range []Codec{Gen0, GenA, GenC} {
		if c, ok := Fallback(from, notFound); ok {
			t.Errorf("%s leads to %s", from.Name(), c.Name())
		}
	}
	for _, e := range []*jsonrpc.Error{nil, {Code: jsonrpc.InvalidParams}, {Code: jsonrpc.Internal}, {Code: CodeServerUnavailable}} {
		if c, ok := Fallback(GenB, e); ok {
			t.Errorf("%v leads to %s", e, c.Name())
		}
	}
	if c, ok := Fallback(GenB, notFound); !ok || c != GenC {
		t.Errorf("B leads to %v", c)
	}
}

func TestInnerResultsAndErrorsPassToTheByte(t *testing.T) {
	const result = `{"content":[],"x":"\ud800","n":1e400, "d":1,"d":2}`
	const failure = `{ "code":-32042,"message":"\u003c","data":{"a":1,"a":2}}`
	for _, codec := range []Codec{Gen0, GenA, GenB} {
		if inner, e := codec.Unwrap([]byte(result)); e != nil || string(inner) != result {
			t.Errorf("%s: %s, %v", codec.Name(), inner, e)
		}
		if BindingFailure(codec, &jsonrpc.Error{}) {
			t.Errorf("%s: an outer error is the server's own", codec.Name())
		}
	}
	for in, want := range map[string]string{
		`{"result":` + result + `}`:              result,
		`{"_meta":{}, "result": null }`:          "null",
		`{"result":` + result + `,"error":null}`: result,
		`{"error":` + failure + `}`:              "error " + failure,
		`{"result":1,"error":` + failure + `}`:   "error " + failure,
		`{}`:                                     "internal",
		`null`:                                   "internal",
		`[]`:                                     "internal",
		`{"result":1,"r\u0065sult":2}`:           "internal",
		`{"error":` + failure + `,"error":` + failure + `}`: "internal",
		`{"error":null}`: "internal",
	} {
		inner, e := GenC.Unwrap([]byte(in))
		got := string(inner)
		switch {
		case e != nil && e.Raw() != nil:
			got = "error " + string(e.Raw())
		case e != nil && e.Code == jsonrpc.Internal && e.Reason() == "internal":
			got = "internal"
		}
		if got != want {
			t.Errorf("%s gave %s, want %s", in, got, want)
		}
	}
	if !BindingFailure(GenC, &jsonrpc.Error{Code: CodeServerUnavailable}) || BindingFailure(GenC, nil) {
		t.Error("in generation C an outer error is the binding's")
	}
}

func TestWhatComesInIsReadByItsAddress(t *testing.T) {
	for _, bad := range []string{
		`mcp/message {"method":"m"}`, `mcp/message {"connectionId":"","method":"m"}`, `mcp/message {"connectionId":1,"method":"m"}`, `mcp/message {"connectionId":"c"}`,
		`mcp/message {"connectionId":"c","method":""}`, `mcp/message {"connectionId":"c","connection\u0049d":"d","method":"m"}`, `mcp/message {"serverId":"s","method":"m"}`,
		`mcp/message {"connectionId":"c","method":"m","params":1,"params":2}`, `_mcp/message {"serverId":"s","requestId":"r","method":"m"}`, `mcp/message []`, `mcp/connect {"connectionId":"c","method":"m"}`,
	} {
		method, params, _ := strings.Cut(bad, " ")
		if in, err := ParseInbound(method, []byte(params)); !errors.Is(err, ErrInbound) {
			t.Errorf("%s gave %+v, %v", bad, in, err)
		}
	}
	for _, params := range []string{`{"connectionId":"c","method":"m"}`, `{"connectionId":"c","method":"m","params":null}`} {
		if in, err := GenA.ParseInbound(MethodMCPMessage, []byte(params)); err != nil || in.Params != nil {
			t.Errorf("%s gave %+v, %v", params, in, err)
		}
	}
	if _, err := GenA.ParseInbound(MethodMCPMessage0, []byte(`{"connectionId":"c","method":"m"}`)); !errors.Is(err, ErrInbound) {
		t.Error("generation A took a message of generation 0")
	}
	if in, err := ParseInbound(MethodMCPMessage, []byte(`{"connectionId":"c","serverId":"s","requestId":"r","method":"m"}`)); err != nil || in.Stateless || in.Target != "c" {
		t.Errorf("both addresses gave %+v, %v", in, err)
	}
}
