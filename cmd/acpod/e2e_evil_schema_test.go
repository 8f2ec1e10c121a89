package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// schemaTool is a tool with that input schema.
func schemaTool(name, schema string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema))
}

// Arguments are judged in the dialect that the schema declares, 2020-12 when it declares none; what is refused comes with every failing
// path and the schema, and never reaches the server.
func TestArgumentsAreJudgedInTheDeclaredDialect(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "strict", Raw: []json.RawMessage{
		schemaTool("draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"P":{"type":"string"}},"properties":{"p":{"$ref":"#/definitions/P"},"pair":{"items":[{"type":"number"},{"type":"string"}],"additionalItems":false}}}`),
		schemaTool("draft2020", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"P":{"type":"string"}},"properties":{"p":{"$ref":"#/$defs/P"},"pair":{"prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}}`),
		schemaTool("undeclared", `{"type":"object","$defs":{"P":{"type":"string"}},"properties":{"p":{"$ref":"#/$defs/P"},"pair":{"prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}}`),
		schemaTool("nullable", `{"type":"object","properties":{"p":{"type":["string","null"]}},"required":["p"]}`),
		schemaTool("recursive", `{"type":"object","properties":{"p":{"type":"string"},"child":{"$ref":"#"}}}`),
		schemaTool("several", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b","c"],"additionalProperties":false}`),
	}})
	_, a := startEvil(t, providersConfig, s)
	for _, row := range []struct{ tool, good, bad string }{
		{"draft7", `{"p":"x","pair":[1,"x"]}`, `{"p":7}`},
		{"draft7", `{"p":"x"}`, `{"pair":[1,"x",2]}`},
		{"draft2020", `{"p":"x","pair":[1,"x"]}`, `{"p":7}`},
		{"draft2020", `{"pair":[1]}`, `{"pair":[1,"x",2]}`},
		{"undeclared", `{"p":"x","pair":[1,"x"]}`, `{"pair":["x"]}`},
		{"undeclared", `{}`, `{"pair":[1,"x",2]}`},
		{"nullable", `{"p":null}`, `{"p":7}`},
		{"nullable", `{"p":"x"}`, `{}`},
		{"recursive", `{"child":{"child":{"p":"x"}}}`, `{"child":{"child":{"p":7}}}`},
	} {
		before := s.calls(row.tool)
		a.says(row.tool, row.good, row.tool+" "+row.good)
		a.refuses("bad_arguments", row.tool, row.bad)
		if s.calls(row.tool) != before+1 {
			t.Errorf("%s: %d calls came", row.tool, s.calls(row.tool)-before)
		}
	}
	told := a.refuses("bad_arguments", "several", `{"a":"x","b":7,"d":1}`).text()
	for _, part := range []string{"a", "b", "c", "d", `"required"`, `"additionalProperties"`} {
		if !strings.Contains(told, part) {
			t.Errorf("the refusal does not name %s: %s", part, told)
		}
	}
}

// No schema has anything fetched, read from a file, or worked on for long.
func TestAHostileSchemaCostsNothing(t *testing.T) {
	t.Parallel()
	fetched := atomic.Int32{}
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		fmt.Fprint(w, `{"type":"object"}`)
	}))
	t.Cleanup(remote.Close)
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 500) + `{}` + strings.Repeat(`}}`, 500)
	wide := `{"type":"object","anyOf":[` + strings.Repeat(`{"properties":{"a":{"const":1}}},`, 9_999) + `{}]}`
	s := newEvil(t, evilScript{Name: "hostile", Raw: []json.RawMessage{
		schemaTool("remote", `{"$ref":"`+remote.URL+`/x"}`),
		schemaTool("remote_inside", `{"type":"object","properties":{"a":{"$ref":"`+remote.URL+`/x#/y"}}}`),
		schemaTool("remote_dialect", `{"$schema":"`+remote.URL+`/schema","type":"object"}`),
		schemaTool("remote_id", `{"$id":"`+remote.URL+`/base","type":"object","properties":{"a":{"$ref":"x"}}}`),
		schemaTool("local_file", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`),
		schemaTool("loops", `{"type":"object","$ref":"#"}`),
		schemaTool("loops_two", `{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`),
		schemaTool("pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}`),
		schemaTool("lookahead", `{"type":"object","properties":{"a":{"type":"string","pattern":"(?=a)a"}}}`),
		schemaTool("deep", deep),
		schemaTool("wide", wide),
		schemaTool("explodes", `{"type":"object","$defs":{"l0":{},`+explosion(18)+`},"allOf":[{"$ref":"#/$defs/l18"}]}`),
		schemaTool("fine", `{"type":"object"}`),
	}})
	_, a := startEvil(t, providersConfig, s)
	a.says("fine", `{}`, `fine {}`)
	arguments := map[string]string{"pattern": `{"a":"` + strings.Repeat("a", 50_000) + `!"}`, "wide": `{"a":2}`, "deep": strings.Repeat(`{"a":`, 400) + `{}` + strings.Repeat(`}`, 400)}
	start := time.Now()
	for _, name := range []string{"remote", "remote_inside", "remote_dialect", "remote_id", "local_file", "loops", "loops_two", "pattern", "lookahead", "deep", "wide", "explodes"} {
		text := arguments[name]
		if text == "" {
			text = `{"a":1,"x":1}`
		}
		got := a.ask("hostile."+name, text)
		if got.took > 5*time.Second {
			t.Errorf("%s took %v", name, got.took)
		}
		if strings.HasPrefix(name, "remote") || name == "local_file" || name == "pattern" {
			if got.Result.refusal() == "" || s.calls(name) != 0 {
				t.Errorf("%s was called: %.300s", name, got.raw)
			}
		}
		noneOf(t, "the answer about "+name, got.raw, "root:x:0")
	}
	t.Logf("twelve hostile schemas took %v", time.Since(start))
	if fetched.Load() != 0 {
		t.Errorf("%d schemas were fetched", fetched.Load())
	}
	a.says("fine", `{"n":1}`, `fine {"n":1}`)
}

// explosion is a chain of definitions each of which refers to the former twice.
func explosion(levels int) string {
	var parts []string
	for i := range levels {
		parts = append(parts, fmt.Sprintf(`"l%d":{"allOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]}`, i+1, i, i))
	}
	return strings.Join(parts, ",")
}

// Arguments in the forms that models send them: what is authorised is what the server gets, or nothing is sent.
func TestArgumentsInEveryFormAreTheServersOrRefused(t *testing.T) {
	t.Parallel()
	s := newEvil(t, evilScript{Name: "one", Offer: []string{"echo", "other"}})
	_, a := startEvil(t, providersConfig, s)
	a.says("echo", `{}`, `echo {}`)
	for _, row := range []struct{ what, call, want string }{ // want "" = a refusal or an error, and nothing is sent
		{"absent", `{"name":"echo"}`, `echo {}`},
		{"null", `{"name":"echo","arguments":null}`, `echo {}`},
		{"an object", `{"name":"echo","arguments":{"a":1}}`, `echo {"a":1}`},
		{"a string that holds an object", `{"name":"echo","arguments":"{\"a\":1}"}`, `echo {"a":1}`},
		{"a string that holds an array", `{"name":"echo","arguments":"[1]"}`, ""},
		{"a string that holds nothing", `{"name":"echo","arguments":""}`, ""},
		{"a string", `{"name":"echo","arguments":"text"}`, ""},
		{"an array", `{"name":"echo","arguments":[]}`, ""},
		{"a number", `{"name":"echo","arguments":0}`, ""},
		{"false", `{"name":"echo","arguments":false}`, ""},
		{"a name inside, too", `{"name":"echo","arguments":{"name":"other"}}`, `echo {"name":"other"}`},
		{"a call inside", `{"name":"echo","arguments":{"name":"other","arguments":{"x":1}}}`, `echo {"name":"other","arguments":{"x":1}}`},
		{"a name inside alone", `{"arguments":{"name":"other"}}`, ""},
		{"the name twice", `{"name":"echo","name":"other"}`, ""},
		{"the name in another case", `{"Name":"other","name":"echo"}`, ""},
		{"the name in another case alone", `{"Name":"echo"}`, ""},
		{"the arguments twice", `{"name":"echo","arguments":{"a":1},"arguments":{"a":2}}`, ""},
		{"the arguments in another case, too", `{"name":"echo","arguments":{"a":1},"ARGUMENTS":{"a":2}}`, ""},
		{"a member twice", `{"name":"echo","arguments":{"a":1,"a":2}}`, ""},
		{"a member twice, escaped", `{"name":"echo","arguments":{"a":1,"\u0061":2}}`, ""},
		{"a member twice, deep", `{"name":"echo","arguments":{"x":[{"y":{"a":1,"a":2}}]}}`, ""},
		{"members that differ in case", `{"name":"echo","arguments":{"path":"/safe","Path":"/etc"}}`, ""},
		{"a member twice in a string", `{"name":"echo","arguments":"{\"a\":1,\"a\":2}"}`, ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			before := len(s.journal("call"))
			_, body := a.do(a.request(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_capability","arguments":`+row.call+`}}`))
			var got answer
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("%v in %s", err, body)
			}
			sent := len(s.journal("call")) - before
			switch {
			case row.want == "" && (sent != 0 || !got.Result.IsError && got.Error == nil):
				t.Errorf("%d calls were sent: %s", sent, body)
			case row.want != "" && (sent != 1 || got.Result.text() != row.want):
				t.Errorf("%d calls were sent: %s", sent, body)
			}
		})
	}
	for _, call := range s.journal("call") {
		if strings.HasPrefix(call.about, "other") {
			t.Errorf("another tool was called: %s", call.about)
		}
	}
	// The envelope of JSON-RPC is as strict.
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_capabilities","name":"execute_capability","arguments":{"name":"echo"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"execute_capability","arguments":{"name":"echo"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"execute_capability","name":"search_capabilities","arguments":{"name":"echo"}}}`,
	} {
		before := len(s.journal("call"))
		_, answered := a.do(a.request(t.Context(), body))
		if len(s.journal("call")) != before {
			t.Errorf("%s was taken: %s", body, answered)
		}
	}

}

// What the facade says of its own tools promises no structured content.
func TestTheFacadesToolsPromiseNoStructuredContent(t *testing.T) {
	t.Parallel()
	_, a := startEvil(t, providersConfig, newEvil(t, evilScript{Name: "one"}))
	_, body := a.do(a.request(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if strings.Contains(string(body), "outputSchema") || !strings.Contains(string(body), "execute_capability") {
		t.Errorf("%s", body)
	}
	if n := len(body); n > 2000 {
		t.Errorf("the list of tools has %d bytes", n)
	}
	if result := a.tool("search_capabilities", `{}`); strings.Contains(result.raw, "structuredContent") {
		t.Errorf("%s", result.raw)
	}
}
