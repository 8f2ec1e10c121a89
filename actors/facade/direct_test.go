package facade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

func directCall(name, more string) string {
	return `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"` + name + `"` + more + `}}`
}

func TestADirectToolIsListedAndCalledByWhoMayExecuteIt(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Direct = []string{"katashiro.write", "nobody.has_it"} })
	s, other := w.session("alice", capability.Ready, echo), w.session("bob", capability.Connecting, echo)
	names := func(header map[string]string) (names []string, body string) {
		got := w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: header})
		frame, _ := jsonrpc.Scan([]byte(got.body))
		tools, bad, _, err := mcp.ParseToolsPage(frame.Result, 100)
		if err != nil || len(bad) > 0 {
			t.Fatal(err, bad, got.body)
		}
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		return names, got.body
	}
	listed, body := names(bearer(s.token))
	if fmt.Sprint(listed) != "[search_capabilities execute_capability katashiro.write]" {
		t.Errorf("listed %v", listed)
	}
	if !strings.Contains(body, `{"name":"katashiro.write","description":"writes the page","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`) {
		t.Errorf("not as it was published: %s", body)
	}
	for name, header := range map[string]map[string]string{"nobody": nil, "a dead token": bearer("x"), "who has no such tool": bearer(other.token)} {
		if listed, _ := names(header); len(listed) != 2 {
			t.Errorf("%s sees %v", name, listed)
		}
	}
	// A call is an execution: what is checked, sent and recorded is the same.
	const arguments = `{"n": 9007199254740993 ,"s":"\u003c"}`
	got := w.do(request{body: directCall("katashiro.write", `,"arguments":`+arguments), header: bearer(s.token)})
	executed := w.do(request{body: executeBody("3", "katashiro.write", arguments), header: bearer(s.token)})
	if got.body != executed.body || !strings.Contains(got.body, arguments) {
		t.Errorf("got  %s\nwant %s", got.body, executed.body)
	}
	var seen []string
	for _, e := range w.audit.all() {
		seen = append(seen, fmt.Sprintf("%s %s %x %s", e.Event, e.Tool, e.ArgsSHA[:4], e.Outcome))
	}
	if len(seen) != 4 || seen[0] != seen[2] || seen[1] != seen[3] {
		t.Errorf("audit: %q", seen)
	}
	if got := w.do(request{body: directCall("katashiro.write", ""), header: bearer(s.token)}); !strings.Contains(got.body, `"got":{}`) {
		t.Errorf("without arguments: %s", got.body)
	}
	if got := w.do(request{body: directCall("katashiro.write", `,"arguments":{"n":"five"}`), header: bearer(s.token)}); refusalOf(t, got) != "bad_arguments" {
		t.Errorf("arguments against the schema: %s", got.body)
	}
	// For who may not see it, it is a tool that there is not.
	want := w.do(request{body: directCall("katashiro.read", ""), header: bearer(s.token)})
	for name, c := range map[string]struct{ tool, token string }{
		"one that is not configured": {"katashiro.read", s.token}, "without a token": {"katashiro.write", ""},
		"of another session": {"katashiro.write", "x"}, "one that nobody has": {"nobody.has_it", s.token},
	} {
		got := w.do(request{body: directCall(c.tool, ""), header: bearer(c.token)})
		if got.status != want.status || got.body != strings.Replace(want.body, "katashiro.read", c.tool, 1) || !strings.Contains(got.body, "-32602") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestADirectToolIsToldInTheStatelessVersions(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Direct = []string{"katashiro.write"} })
	s := w.session("alice", capability.Ready, echo)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	header := with(bearer(s.token), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
	list := w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, header: header})
	if !strings.Contains(list.body, `"ttlMs":1000,"cacheScope":"private","tools":[{"name":"search_capabilities"`) || !strings.Contains(list.body, `"name":"katashiro.write"`) {
		t.Errorf("%s", list.body)
	}
	header = with(header, "Mcp-Method", "tools/call", "Mcp-Name", "katashiro.write")
	if got := w.do(request{body: directCall("katashiro.write", `,"arguments":{"n":1},`+meta), header: header}); !strings.Contains(got.body, `"got":{"n":1}`) {
		t.Errorf("%s", got.body)
	}
	if got := w.do(request{body: directCall("katashiro.write", `,`+meta), header: with(header, "Authorization", "")}); got.status != 400 || !strings.Contains(got.body, "-32602") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestNoDirectToolTakesTheNameOfABuiltInOne(t *testing.T) {
	f := &front{cfg: Config{Direct: []string{"search_capabilities", "a.b", "plain"}}}
	for name, want := range map[string]bool{
		"search_capabilities": false, "execute_capability": false, "mail.search_capabilities": true, "mail.execute_capability": false,
		"a.b": true, "plain": true, "mail.plain": false, "": false, ".": false,
	} {
		if got := f.isDirect(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	tools, bad, err := mcp.ParseTools([]byte(`[{"name":"search_capabilities","title":"T","inputSchema":{"type":"object"},"outputSchema":{"type":"object","x":1.0},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}]`), 10)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	entry, err := directEntry(capability.Capability{Tool: &capability.Tool{Tool: tools[0]}}, "mail.search_capabilities")
	if want := `{"name":"mail.search_capabilities","title":"T","inputSchema":{"type":"object"},"outputSchema":{"type":"object","x":1.0},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`; err != nil || string(entry) != want {
		t.Errorf("%v %s", err, entry)
	}
}

// Another reader, one that ignores case or takes the last of two, would see another call.
func TestAnEnvelopeThatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	s := w.session("alice", capability.Ready, func(_ *kernel.Ctx, call capability.Call, q *kernel.Question) {
		t.Errorf("%s was called", call.Tool)
		q.Answer(capability.Result{Raw: []byte(`{}`)}, nil)
	})
	params := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for _, p := range []string{
		`{"Name":"search_capabilities","name":"execute_capability"}`, `{"NAME":"execute_capability"}`, `{"name":"execute_capability","Arguments":{"name":"katashiro.read"}}`,
		`{"name":"execute_capability","arguments":{"name":"katashiro.read"},"\u0041rguments":{}}`, `{"name":"execute_capability","_META":{},"arguments":{"name":"katashiro.read"}}`,
	} {
		if got := w.do(request{body: params(p), header: bearer(s.token)}); !strings.Contains(got.body, "-32602") {
			t.Errorf("%s: %s", p, got.body)
		}
	}
	for _, a := range []string{
		`{"Name":"katashiro.write","name":"katashiro.read"}`, `{"name":"katashiro.read","NAME":"katashiro.write"}`, `{"Name":"katashiro.read"}`,
		`{"name":"katashiro.read","arguments":{},"Arguments":{"a":1}}`, `{"name":"katashiro.read","Idempotency_Key":"k"}`, `{"n\u0061me":"katashiro.read","name":"katashiro.read"}`,
		`{"arguments":{"name":"katashiro.read"}}`, `{"name":null,"arguments":{"name":"katashiro.read","arguments":{}}}`, `{"arguments":{"name":"katashiro.read"},"idempotency_key":"k"}`,
	} {
		got := w.do(request{body: params(`{"name":"execute_capability","arguments":` + a + `}`), header: bearer(s.token)})
		if refusalOf(t, got) != "bad_arguments" {
			t.Errorf("%s: %s", a, got.body)
		}
		if nested := strings.Contains(a, `"arguments":{"name"`); nested && !strings.Contains(got.body, "not inside") {
			t.Errorf("%s: what to do is not said: %s", a, got.body)
		}
	}
	if entries := w.audit.all(); len(entries) != 9 {
		t.Errorf("%d refusals of 9 executions are in the audit", len(entries))
	}
}

func TestAStatelessClientIsToldOfEmptyListsAndHowLongThatHolds(t *testing.T) {
	w := newWorld(t, nil)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	ask := func(method, more string) reply {
		return w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + meta + more + `}}`,
			header: map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}})
	}
	for method, member := range map[string]string{"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"} {
		want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"oab-mcp-facade","version":"test"}},"ttlMs":300000,"cacheScope":"public","` + member + `":[]}}`
		if got := ask(method, ""); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %s", method, got.status, got.body)
		}
		if got := w.do(request{body: `{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`}); !strings.Contains(got.body, "-32601") {
			t.Errorf("%s before the stateless versions: %s", method, got.body)
		}
	}
	if got := ask("tools/list", ""); !strings.Contains(got.body, `"ttlMs":300000,"cacheScope":"public","tools":[`) {
		t.Errorf("%s", got.body)
	}
	if got := ask("tools/list", `,"cursor":"2"`); got.status != 400 || !strings.Contains(got.body, "-32602") {
		t.Errorf("a page that there is not: %d %s", got.status, got.body)
	}
	if got := ask("server/discover", ""); !strings.Contains(got.body, `"ttlMs":300000,"cacheScope":"public"`) || !strings.Contains(got.body, `"prompts":{}`) {
		t.Errorf("%s", got.body)
	}
}
