package httplink

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
)

func TestTheEraWithoutAHandshake(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, g got) {
		w.Header().Set("Mcp-Session-Id", "not-wanted")
		startEvents(w, "id: 1\n"+event(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)+event(`{"jsonrpc":"2.0","id":`+string(g.rpc.ID.Raw())+`,"result":{}}`))
	})
	r := run(t, Options{URL: s.url, Era: mcp.VersionModern, Build: "7"}, 1<<20)
	r.awaitUp()
	r.request(1, MethodDiscover)
	r.answer("1")
	const arguments = `{ "s":"\ud800", "d":1,"d":2 }`
	id := jsonrpc.IntID(2)
	params := mcp.CallParams("grüße", nil, jsonrpc.IntID(2))
	head := jsonrpc.AppendRequestHead(nil, id, "tools/call")
	m := link.Message{ID: id, Method: "tools/call", Name: "grüße", Head: append(head, mcp.ArgumentsHead(params)...), Body: []byte(arguments), Tail: []byte("}}"),
		Headers: Fields([]Mirror{{"Mcp-Param-S", []string{"s"}}, {"Mcp-Param-D", []string{"d"}}}, []byte(`{"s":"a b","d":7}`))}
	r.send(m)
	r.answer("2")
	if r.refusals("request_without_era") != 2 {
		t.Errorf("refused %v", r.refused)
	}
	if err := r.link.Send(link.Message{Head: []byte(`{"jsonrpc":"2.0","id":9,"result":{}}`)}); !errors.Is(err, link.ErrUnsent) {
		t.Errorf("an answer is taken: %v", err)
	}
	id = jsonrpc.IntID(3)
	if err := r.link.Send(link.Message{ID: id, Method: "x", Head: jsonrpc.AppendRequest(nil, id, "x", nil), Headers: [][2]string{{"Authorization", "x"}}}); !errors.Is(err, errMirror) {
		t.Errorf("any header of a message may leave: %v", err)
	}
	r.end()
	if n := len(s.requests("GET")) + len(s.requests("DELETE")); n != 0 {
		t.Errorf("%d requests that this era does not have", n)
	}
	for _, g := range s.requests("POST") {
		var body struct {
			Params struct {
				Meta map[string]any `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(g.body, arguments, "{}")), &body); err != nil {
			t.Fatalf("%s: %v", g.body, err)
		}
		want := map[string]any{
			mcp.MetaProtocolVersion: mcp.VersionModern, mcp.MetaClientInfo: map[string]any{"name": "acpod", "version": "7"}, mcp.MetaClientCapabilities: map[string]any{},
		}
		if g.rpc.Method == "tools/call" {
			want["progressToken"] = 2.0
		}
		if fmt.Sprint(body.Params.Meta) != fmt.Sprint(want) {
			t.Errorf("_meta is %v, want %v", body.Params.Meta, want)
		}
		if h := g.header; h.Get("Mcp-Protocol-Version") != mcp.VersionModern || h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Method") != g.rpc.Method {
			t.Errorf("headers %v", h)
		}
	}
	call := s.called("tools/call")[0]
	if !strings.Contains(call.body, arguments) {
		t.Errorf("the arguments are not as they were: %s", call.body)
	}
	if h := call.header; h.Get("Mcp-Name") != "=?base64?Z3LDvMOfZQ==?=" || h.Get("Mcp-Param-S") != "a b" || h.Get("Mcp-Param-D") != "7" {
		t.Errorf("headers %v", h)
	}
}

func TestACancelledRequestOfTheModernEraLosesItsStream(t *testing.T) {
	over := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ got) {
		startEvents(w, "id: 1\ndata:\n\n")
		<-r.Context().Done()
		close(over)
	})
	r := run(t, Options{URL: s.url}, 1<<20)
	r.awaitUp()
	r.link.Speaks(mcp.VersionModern)
	r.request(2, "tools/call")
	await(t, "the request", func() bool { return len(s.called("tools/call")) == 1 })
	r.notify("notifications/cancelled", `{"requestId":2}`)
	r.failure("2")
	<-over
	r.notify("notifications/cancelled", `{"requestId":2}`)
	r.end()
	if n := len(s.seen); n != 1 {
		t.Errorf("the server saw %d requests", n)
	}
}

func TestAStreamOfTheModernEraIsNotTakenUpAgain(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ got) { startEvents(w, "id: 1\ndata:\n\n") })
	r := run(t, Options{URL: s.url, Era: mcp.VersionModern}, 1<<20)
	r.awaitUp()
	r.request(2, "tools/call")
	if err := r.failure("2"); errors.Is(err, link.ErrUnsent) || len(s.requests("GET")) != 0 {
		t.Errorf("it ends with %v", err)
	}
}

func TestValuesOfHeaders(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1": "us-west1", "": "", "us west 1": "us west 1", "SELECT * FROM users": "SELECT * FROM users",
		"Hello, 世界": "=?base64?SGVsbG8sIOS4lueVjA==?=", " padded ": "=?base64?IHBhZGRlZCA=?=", " us-west1": "=?base64?IHVzLXdlc3Qx?=",
		"line1\r\nline2": "=?base64?bGluZTENCmxpbmUy?=", "\tindented": "=?base64?CWluZGVudGVk?=", "a\x00b": "=?base64?YQBi?=", "a\x7fb": "=?base64?YX9i?=",
		"=?base64?YQ==?=": "=?base64?PT9iYXNlNjQ/WVE9PT89?=", "=?base64?": "=?base64?",
	} {
		if got := fieldOf(in); got != want || !isFieldValue(got) {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestMirrors(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`:  "",
		`{"properties":[1]}`: "",
		`{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"q":{"type":"string"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`: "Mcp-Param-Region [region]; Mcp-Param-N [o n]",
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                            "!",
		`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`:                                                           "!",
		`{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}`:                                                            "!",
		`{"properties":{"a":{"type":"null","x-mcp-header":"A"}}}`:                                                             "!",
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                           "!",
		`{"properties":{"a":{"x-mcp-header":"A"}}}`:                                                                           "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":7}}}`:                                                             "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"A"}}}`:                  "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"MyField"},"b":{"type":"string","x-mcp-header":"myf\u0069eld"}}}`: "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"My Region"}}}`:                                                   "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"Region:Primary"}}}`:                                              "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"Région"}}}`:                                                      "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"Region\t1"}}}`:                                                   "!",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nEvil: 1"}}}`:                                                "!",
		`[]`: "!",
	} {
		mirrors, err := Mirrors([]byte(schema))
		var list []string
		for _, m := range mirrors {
			list = append(list, fmt.Sprint(m.Header, " ", m.Path))
		}
		got := strings.Join(list, "; ")
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", schema, got, err, want)
		}
	}
}

func TestFieldsOfACall(t *testing.T) {
	mirrors := []Mirror{{"Mcp-Param-A", []string{"a"}}, {"Mcp-Param-B", []string{"b", "c"}}}
	for arguments, want := range map[string]string{
		`{"a":"x","b":{"c":true}}`:                "[[Mcp-Param-A x] [Mcp-Param-B true]]",
		`{"a":42,"b":{"c":12345678901234567890}}`: "[[Mcp-Param-A 42] [Mcp-Param-B 12345678901234567890]]",
		`{"a":null,"b":{}}`:                       "[]",
		`{"a":{},"b":"c"}`:                        "[]",
		`{"a":[1]}`:                               "[]",
		`{}`:                                      "[]",
		`[]`:                                      "[]",
		`{"a":"x\r\nEvil: 1"}`:                    "[[Mcp-Param-A =?base64?eA0KRXZpbDogMQ==?=]]",
	} {
		if got := fmt.Sprint(Fields(mirrors, []byte(arguments))); got != want {
			t.Errorf("%s gives %s, want %s", arguments, got, want)
		}
	}
	for _, fields := range [][][2]string{{{"Mcp-Param-A", "x\ny"}}, {{"Authorization", "x"}}, {{"Mcp-Param-", strings.Repeat("x", maxMirrorBytes)}}, {{"Mcp-Param-A b", "x"}}} {
		if checkMirrored(fields) == nil {
			t.Errorf("%.60v may leave", fields)
		}
	}
}

func TestDiscovery(t *testing.T) {
	s, err := Discovered([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"n","version":"1"}}`))
	if want := (mcp.Server{Version: mcp.VersionModern, Name: "n", Build: "1", Tools: true, ListChanged: true}); err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	for _, result := range []string{`{}`, `[]`, `{"supportedVersions":["2025-11-25"]}`, `{"supportedVersions":["2026-07-28"],"supportedVersions":[]}`, `{"supportedVersions":{"2026-07-28":1}}`} {
		if s, err := Discovered([]byte(result)); err == nil {
			t.Errorf("%s is %+v", result, s)
		}
	}
	versions, ok := Supported(jsonrpc.ParseError([]byte(`{"code":-32022,"message":"no","data":{"supported":["a",1,"2026-07-28"],"requested":"b"}}`)))
	if !ok || !slices.Equal(versions, []string{"a", "2026-07-28"}) {
		t.Errorf("%v, %v", versions, ok)
	}
	if _, ok := Supported(&jsonrpc.Error{Code: -32601}); ok {
		t.Error("any error names versions")
	}
}

// TestConfigurations: what no connection is made with, and that the reason names no value.
func TestConfigurations(t *testing.T) {
	const ok = "http://127.0.0.1:1/mcp"
	for name, c := range map[string]struct {
		url     string
		headers map[string]string
		bad     bool
	}{
		"plain":           {ok, map[string]string{"X-Api-Key": "secret", "Cookie": "a=secret", "X-Tab": "a\tb", "X-Latin": "caf\xe9"}, false},
		"user agent":      {ok, map[string]string{"user-agent": "secret"}, false},
		"line feed":       {ok, map[string]string{"X-A": "secret\nX-B: 1"}, true},
		"carriage return": {ok, map[string]string{"X-A": "secret\r"}, true},
		"NUL":             {ok, map[string]string{"X-A": "secret\x00"}, true},
		"name":            {ok, map[string]string{"X A": "secret"}, true},
		"name break":      {ok, map[string]string{"X-A\r\nX-B": "secret"}, true},
		"no name":         {ok, map[string]string{"": "secret"}, true},
		"twice":           {ok, map[string]string{"X-A": "secret", "x-a": "secret"}, true},
		"accept":          {ok, map[string]string{"accept": "secret"}, true},
		"session":         {ok, map[string]string{"MCP-session-ID": "secret"}, true},
		"last event":      {ok, map[string]string{"last-event-id": "secret"}, true},
		"version":         {ok, map[string]string{"mcp-protocol-version": "secret"}, true},
		"param":           {ok, map[string]string{"mcp-param-x": "secret"}, true},
		"length":          {ok, map[string]string{"content-length": "1"}, true},
		"host":            {ok, map[string]string{"Host": "secret"}, true},
		"scheme":          {"ftp://secret/", nil, true},
		"no host":         {"http:///secret", nil, true},
		"user":            {"http://u:secret@h/", nil, true},
		"no url":          {"http://secret\x7f/", nil, true},
		"empty":           {"", nil, true},
	} {
		o := Options{URL: c.url, Headers: c.headers}
		err := o.Check()
		if _, config := errors.AsType[*ConfigError](err); config != c.bad || (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			continue
		}
		if strings.Contains(err.Error(), "secret") || strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Errorf("%s: the error tells a value: %q", name, err)
		}
		if got := New(o).Run(t.Context(), nil); got == nil || got.Error() != err.Error() {
			t.Errorf("%s: Run says %v", name, got)
		}
	}
	if err := (Options{URL: ok, Era: "2027"}).Check(); err == nil {
		t.Error("an era that nobody knows is taken")
	}
	for name := range maps.Keys(map[string]int{"Accept": 1, "Mcp-Session-Id": 1, "Last-Event-Id": 1}) {
		if !slices.Contains(reserved, http.CanonicalHeaderKey(name)) {
			t.Errorf("%s is not reserved", name)
		}
	}
}
