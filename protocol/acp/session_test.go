package acp

import (
	"encoding/json/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

const nilID = "sess_00000000-0000-0000-0000-000000000000"

func TestOnlyTheCanonicalSessionIDIsOne(t *testing.T) {
	if id := SessionID([16]byte{0xab, 15: 0x01}); id != "sess_ab000000-0000-0000-0000-000000000001" || !ValidSessionID(id) {
		t.Errorf("made %s", id)
	}
	for _, id := range []string{"", "sess_", nilID[5:], "SESS_" + nilID[5:], nilID + "0", nilID[:40], "sess_AB000000-0000-0000-0000-000000000000", "sess_00000000000000000000000000000000",
		"sess_{0000000-0000-0000-0000-00000000000}", "acp_" + nilID[5:], " " + nilID, "sess_0000000000000-0000-0000-000000000000", "sess_0000000g-0000-0000-0000-000000000000"} {
		if ValidSessionID(id) {
			t.Errorf("%q is valid", id)
		}
	}
}

func TestTheTagIsTheSameEverywhere(t *testing.T) {
	for _, id := range []string{nilID, "acp_" + nilID[5:], nilID[5:]} {
		if SessionTag(id) != "#12b9377c" || TreeName(id) != "sess-12b9377c" {
			t.Errorf("%s: %s, %s", id, SessionTag(id), TreeName(id))
		}
		if sum := SessionSum(id); len(sum) != 64 || !strings.HasPrefix(sum, "12b9377c") {
			t.Errorf("%s: %s", id, sum)
		}
	}
	if bad := UnknownSession(nilID); bad.Code != jsonrpc.InvalidParams || strings.Contains(bad.Message, "0000") || !strings.Contains(bad.Message, "#12b9377c") {
		t.Errorf("the refusal is %v", bad)
	}
}

func TestSessionNewNeedsCwdAndServers(t *testing.T) {
	initial := []byte(`[{"i":1}]`)
	for name, tt := range map[string]struct {
		params  string
		initial []byte
		servers string // "" is refused
		reason  string
	}{
		"both":                                 {params: `{"cwd":"/","mcpServers":[ ]}`, servers: "[ ]"},
		"servers are kept to the byte":         {params: `{"cwd":"/","mcpServers":[{"a":"\u003c"}, 1]}`, servers: `[{"a":"\u003c"}, 1]`},
		"its own outweigh the initial ones":    {params: `{"cwd":"/","mcpServers":[1]}`, initial: initial, servers: "[1]"},
		"empty: the initial ones stand in":     {params: `{"cwd":"/","mcpServers":[ ]}`, initial: initial, servers: `[{"i":1}]`},
		"absent: the initial ones stand in":    {params: `{"cwd":"/"}`, initial: initial, servers: `[{"i":1}]`},
		"null: the initial ones stand in":      {params: `{"cwd":"/","mcpServers":null}`, initial: initial, servers: `[{"i":1}]`},
		"an empty initial array stands in too": {params: `{"cwd":"/"}`, initial: []byte("[]"), servers: "[]"},
		"absent":                               {params: `{"cwd":"/"}`},
		"null":                                 {params: `{"cwd":"/","mcpServers":null}`},
		"an object":                            {params: `{"cwd":"/","mcpServers":{}}`, initial: initial},
		"no cwd":                               {params: `{"mcpServers":[]}`, reason: "cwd"},
		"a cwd that is no string":              {params: `{"cwd":1,"mcpServers":[]}`, reason: "cwd"},
		"an empty cwd":                         {params: `{"cwd":"","mcpServers":[]}`, reason: "cwd"},
		"directories that are none":            {params: `{"cwd":"/","mcpServers":[],"additionalDirectories":["/a",1]}`, reason: "cwd"},
		"directories that are no array":        {params: `{"cwd":"/","mcpServers":[],"additionalDirectories":"/a"}`, reason: "cwd"},
		"two cwds":                             {params: `{"cwd":"/","c\u0077d":"/etc","mcpServers":[]}`},
		"two mcpServers":                       {params: `{"cwd":"/","mcpServers":[],"mcp\u0053ervers":[1]}`},
		"two _metas":                           {params: `{"cwd":"/","mcpServers":[],"_meta":{},"_meta":{}}`},
		"no object":                            {params: `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			p, bad := ParseNew([]byte(tt.params), tt.initial)
			if tt.servers == "" {
				if bad == nil || bad.Code != jsonrpc.InvalidParams || bad.Reason() != tt.reason {
					t.Fatalf("got %+v, %v, reason %q", p, bad, bad.Reason())
				}
				return
			}
			if bad != nil || string(p.Servers) != tt.servers || p.Cwd != "/" {
				t.Fatalf("got %+v, %v", p, bad)
			}
		})
	}
}

func TestOnlyAnArrayInAResumeSpeaksOfServers(t *testing.T) {
	for servers, want := range map[string]string{``: "", `,"mcpServers":null`: "", `,"mcpServers":{}`: "", `,"mcpServers":"x"`: "", `,"mcpServers":[]`: "[]", `,"mcpServers":[1]`: "[1]"} {
		p, bad := ParseResume([]byte(`{"sessionId":"s","cwd":"/"` + servers + `}`))
		if bad != nil || string(p.Servers) != want || (p.Servers == nil) != (want == "") || p.SessionID != "s" {
			t.Errorf("%s gave %+v, %v", servers, p, bad)
		}
	}
	for _, params := range []string{`{"cwd":"/"}`, `{"sessionId":1,"cwd":"/"}`, `{"sessionId":"s"}`, `{"sessionId":"s","sessionId":"t","cwd":"/"}`, `null`} {
		if p, bad := ParseResume([]byte(params)); bad == nil || bad.Code != jsonrpc.InvalidParams {
			t.Errorf("%s gave %+v", params, p)
		}
	}
	if _, bad := ParseSessionID(nil); bad == nil || bad.Code != jsonrpc.InvalidParams {
		t.Errorf("without params: %v", bad)
	}
}

func TestTheNumberOfDirectoriesIsBounded(t *testing.T) {
	params := func(n int) []byte {
		return []byte(`{"cwd":"/","mcpServers":[],"additionalDirectories":[` + strings.TrimSuffix(strings.Repeat(`"/a",`, n), ",") + `]}`)
	}
	if p, bad := ParseNew(params(MaxDirectories), nil); bad != nil || len(p.AdditionalDirectories) != MaxDirectories {
		t.Errorf("%v", bad)
	}
	if _, bad := ParseNew(params(MaxDirectories+1), nil); bad == nil || bad.Reason() != "cwd" {
		t.Errorf("%v", bad)
	}
}

func TestAnAgentGetsNothingThatIsNotListed(t *testing.T) {
	hostile := `{"cwd":"/w","additionalDirectories":["/w/a"],"mcpServers":[{"name":"x","command":"/bin/sh","args":[],"env":[]}],"MCPSERVERS":[{"command":"sh"}],"systemPrompt":"obey",
		"_meta":{"claudeCode":{"options":{"mcpServers":{"x":{"command":"sh"}}}},"traceparent":"00-a","tr\u0061cestate":"b=\u003c","keep":{"a":1, "a":2},"baggage":7,"TRACEPARENT":"x"}}`
	p, bad := ParseNew([]byte(hostile), nil)
	if bad != nil {
		t.Fatal(bad)
	}
	servers := append(HTTPServer([]byte("["), "openab", "http://127.0.0.1:8848/mcp", "Bearer t"), ']')
	got := string(AgentSession{Cwd: p.Cwd, AdditionalDirectories: p.AdditionalDirectories, Servers: servers, Meta: FilterMeta(p.Meta, []string{"keep", "traceparent", "absent"})}.Append(nil))
	want := `{"cwd":"/w","additionalDirectories":["/w/a"],"mcpServers":[{"type":"http","name":"openab","url":"http://127.0.0.1:8848/mcp","headers":[{"name":"Authorization","value":"Bearer t"}]}],` +
		`"_meta":{"traceparent":"00-a","tracestate":"b=\u003c","baggage":7,"keep":{"a":1, "a":2}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheBareSessionOfAnAgent(t *testing.T) {
	got := string(AgentSession{SessionID: `a"`, Cwd: "/w"}.Append(nil))
	if want := `{"sessionId":"a\"","cwd":"/w","mcpServers":[]}`; got != want {
		t.Errorf("got %s", got)
	}
	for _, meta := range []string{"", "null", "[]", "{}", `{"x":1}`} {
		if got := FilterMeta([]byte(meta), nil); got != nil {
			t.Errorf("%q left %s", meta, got)
		}
	}
}

func TestResultsKeepWhatIsNotOurs(t *testing.T) {
	entry := jsonrpc.Edit{Name: MetaServers, Value: []byte(`{"servers":[]}`)}
	for in, want := range map[string]string{
		`{"sessionId":"agent","modes":{ "x":"\ud800" },"_meta":{"theirs":1,"acpod.dev/servers":0}}`: `{"sessionId":"ours","modes":{ "x":"\ud800" },"_meta":{"theirs":1,"acpod.dev/servers":{"servers":[]}}}`,
		`{ "sessionId" : "agent" }`: `{ "sessionId" : "ours" ,"_meta":{"acpod.dev/servers":{"servers":[]}}}`,
		`{"_meta":7}`:               `{"_meta":{"acpod.dev/servers":{"servers":[]}},"sessionId":"ours"}`,
		`null`:                      `{"sessionId":"ours","_meta":{"acpod.dev/servers":{"servers":[]}}}`,
	} {
		got, err := WithMetaAnd([]byte(in), []jsonrpc.Edit{entry}, jsonrpc.Edit{Name: "sessionId", Value: []byte(`"ours"`)})
		if err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if _, err := WithMeta([]byte("[]"), entry); err == nil {
		t.Error("an array has no _meta")
	}
	if got, err := WithMeta([]byte(`{"a":1}`)); err != nil || string(got) != `{"a":1}` {
		t.Errorf("nothing to add made %s, %v", got, err)
	}
	if got, err := WithSessionID([]byte(`{"update":{"sessionId":"x"},"sessionId":"a","session\u0049d":"b"}`), "ours"); err != nil || string(got) != `{"update":{"sessionId":"x"},"sessionId":"ours"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestPromptBlocks(t *testing.T) {
	all := PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true}
	for name, tt := range map[string]struct {
		blocks string
		takes  PromptCapabilities
		says   string // part of the refusal; "" lets pass
	}{
		"text":                          {blocks: `[{"type":"text","text":"a"}]`},
		"text beside white space":       {blocks: `[{"type":"text","text":" \n"},{"type":"text","text":"a"}]`},
		"a link":                        {blocks: `[{"type":"resource_link","name":"n","uri":"file:///x"}]`},
		"a type in escapes":             {blocks: `[{"type":"te\u0078t","text":"a"}]`},
		"an image that is taken":        {blocks: `[{"type":"image","data":"","mimeType":"image/png"}]`, takes: all},
		"audio that is taken":           {blocks: `[{"type":"audio"}]`, takes: all},
		"a resource that is taken":      {blocks: `[{"type":"resource"}]`, takes: all},
		"what is carried is not judged": {blocks: `[{"type":"text","text":"\ud800","x":1,"x":2}]`},
		"an image":                      {blocks: `[{"type":"text","text":"a"},{"type":"image"}]`, says: "image"},
		"audio":                         {blocks: `[{"type":"audio"}]`, says: "audio"},
		"a resource":                    {blocks: `[{"type":"resource"}]`, says: "resource"},
		"an unknown type":               {blocks: `[{"type":"vid\neo"}]`, takes: all, says: `"vid\neo"`},
		"nothing":                       {blocks: `[]`, says: "empty"},
		"white space":                   {blocks: `[{"type":"text","text":" \t\n\u00a0\u3000"},{"type":"text","text":""}]`, says: "empty"},
		"no type":                       {blocks: `[{"text":"a"}]`, says: "no type"},
		"a type that is no string":      {blocks: `[{"type":1}]`, says: "string"},
		"text without text":             {blocks: `[{"type":"text"}]`, says: "no text"},
		"text that is no string":        {blocks: `[{"type":"text","text":null}]`, says: "string"},
		"a link without a name":         {blocks: `[{"type":"resource_link","uri":"u"}]`, says: "no name"},
		"a link without a uri":          {blocks: `[{"type":"resource_link","name":"n"}]`, says: "no uri"},
		"a block that is no object":     {blocks: `["a"]`, says: "object"},
		"two types":                     {blocks: `[{"type":"text","text":"a","typ\u0065":"image"}]`, says: "twice"},
		"no array":                      {blocks: `{"type":"text","text":"a"}`, says: "array"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := CheckPrompt([]byte(`{"sessionId":"s","prompt":`+tt.blocks+`}`), tt.takes)
			if tt.says == "" {
				if bad != nil {
					t.Errorf("refused: %v", bad)
				}
				return
			}
			if bad == nil || bad.Code != jsonrpc.InvalidParams || !strings.Contains(bad.Message, tt.says) || strings.Contains(bad.Message, "\n") {
				t.Errorf("got %v", bad)
			}
		})
	}
	for _, params := range []string{`{}`, `[]`, `{"prompt":[],"prompt":[{"type":"text","text":"a"}]}`} {
		if bad := CheckPrompt([]byte(params), all); bad == nil || bad.Code != jsonrpc.InvalidParams {
			t.Errorf("%s: %v", params, bad)
		}
	}
}

func TestStopReasonsAndUpdates(t *testing.T) {
	if r, ok := ParseStopReason(StopResult(StopCancelled)); !ok || r != "cancelled" {
		t.Errorf("%q, %v", r, ok)
	}
	for _, result := range []string{`{}`, `null`, `{"stopReason":1}`} {
		if r, ok := ParseStopReason([]byte(result)); ok {
			t.Errorf("%s: %q", result, r)
		}
	}
	for params, want := range map[string]string{
		`{"sessionId":"s","update":{"sessionUpdate":"tool_call"}}`: UpdateToolCall, `{"update":{"sessionUpdate":"new_kind"}}`: "new_kind", `{"update":[]}`: "", `{}`: "", `7`: "",
	} {
		if got := UpdateKind([]byte(params)); got != want {
			t.Errorf("%s: %q", params, got)
		}
	}
}

func TestPermissionOptionsAreFoundByKind(t *testing.T) {
	p, bad := ParsePermission([]byte(`{"sessionId":"a","toolCall":{"toolCallId":"t1","title":"Run"},"options":[
		{"optionId":"1","name":"Always","kind":"allow_always"},{"optionId":"2","name":"Never","kind":"reject_always"},
		{"optionId":"3","name":"Yes","kind":"allow_once"},{"optionId":"4","name":"No","kind":"reject_once"},{"optionId":"5","kind":7}]}`))
	if bad != nil || p.SessionID != "a" || p.ToolCallID != "t1" || p.Title != "Run" || len(p.Options) != 5 {
		t.Fatalf("got %+v, %v", p, bad)
	}
	if o, ok := p.Rejecting(); !ok || o.ID != "4" {
		t.Errorf("rejecting %+v", o)
	}
	if o, ok := p.Allowing(); !ok || o.ID != "3" {
		t.Errorf("allowing %+v", o)
	}
	if !p.Offers("5") || p.Offers("6") {
		t.Error("the wrong options are offered")
	}
	only, _ := ParsePermission([]byte(`{"options":[{"optionId":"1","kind":"allow_always"}]}`))
	if o, ok := only.Rejecting(); ok {
		t.Errorf("rejecting %+v", o)
	}
	for _, params := range []string{`{}`, `{"options":{}}`, `{"options":[{}]}`, `{"options":[1]}`, `{"options":[{"optionId":"1","optionId":"2"}]}`, `{"sessionId":1,"options":[]}`,
		`{"options":[` + strings.TrimSuffix(strings.Repeat(`{"optionId":"1"},`, MaxOptions+1), ",") + `]}`} {
		if p, bad := ParsePermission([]byte(params)); bad == nil || bad.Code != jsonrpc.InvalidParams {
			t.Errorf("%.80s gave %+v", params, p)
		}
	}
}

func TestAnOutcomeThatIsNoneNeverAllows(t *testing.T) {
	if id, cancelled, err := ParseOutcome(SelectedOutcome(`a"`)); id != `a"` || cancelled || err != nil {
		t.Errorf("%q, %v, %v", id, cancelled, err)
	}
	if _, cancelled, err := ParseOutcome(CancelledOutcome()); !cancelled || err != nil {
		t.Errorf("%v, %v", cancelled, err)
	}
	for _, result := range []string{``, `null`, `{}`, `{"outcome":"cancelled"}`, `{"outcome":{}}`, `{"outcome":{"outcome":"approved"}}`, `{"outcome":{"outcome":"selected"}}`,
		`{"outcome":{"outcome":"selected","optionId":1}}`, `{"outcome":{"outcome":"cancelled","outcome":"selected","optionId":"1"}}`, `{"outcome":{"outcome":"selected","optionId":"1","option\u0049d":"2"}}`,
		`{"outcome":{"outcome":"cancelled"},"outcome":{"outcome":"selected","optionId":"1"}}`} {
		if id, cancelled, err := ParseOutcome([]byte(result)); err == nil || id != "" || cancelled {
			t.Errorf("%s gave %q, %v, %v", result, id, cancelled, err)
		}
	}
}

func TestCancellationsNameTheRequestAsItWasSpelled(t *testing.T) {
	for _, raw := range []string{"0", "null", `"a\u0062"`, "9007199254740993"} {
		id, _ := jsonrpc.ParseID([]byte(raw))
		n := CancelRequest(id)
		if n.Method != "$/cancel_request" || string(n.Params) != `{"requestId":`+raw+`}` {
			t.Errorf("%+v", n)
		}
		if back, ok := ParseCancelRequest(n.Params); !ok || back != id {
			t.Errorf("%s came back as %s", raw, back)
		}
	}
	for _, params := range []string{``, `{}`, `{"requestId":1.5}`, `{"requestId":1,"requestId":2}`, `[]`} {
		if id, ok := ParseCancelRequest([]byte(params)); ok {
			t.Errorf("%s gave %s", params, id)
		}
	}
	if n := SessionCancel(nilID); n.Method != "session/cancel" || string(n.Params) != `{"sessionId":"`+nilID+`"}` {
		t.Errorf("%+v", n)
	}
}

func TestBuiltParamsAreStrictJSON(t *testing.T) {
	odd := "a\"\\\n\x00\xff😀"
	for _, text := range [][]byte{
		AgentSession{SessionID: odd, Cwd: odd, AdditionalDirectories: []string{odd, odd}}.Append(nil), HTTPServer(nil, odd, odd, odd), HTTPServer(nil, odd, odd, ""),
		SelectedOutcome(odd), StopResult(odd), SessionCancel(odd).Params, Offer{Build: odd}.Append(nil), AgentInitialize(nil, odd, nil),
	} {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !slices.Equal([]string{FormStdio.String(), Superseded.String()}, []string{"stdio", "superseded"}) {
		t.Error("names of forms and verdicts")
	}
}
