package tunnel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/mcp"
)

func tool(name string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)
}

func listed(t *Tunnel) (names []string) {
	for _, x := range t.Tools().List.All() {
		names = append(names, x.Name)
	}
	return names
}

// handshake takes the tunnel to its first page.
func (l *lab) handshake() {
	l.t.Helper()
	l.answer(l.request("mcp/connect", ""), connected)
	l.answer(l.request("mcp/message", ""), initialized)
}

func TestAllPagesAreFetchedAndSchemasStayAsTheyCame(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.handshake()
		odd := `{"name":"b","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#", "oneOf":[{}],"x":1e0},"extra":true}`
		l.answer(l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list"}`), `{"tools":[`+tool("a")+`],"nextCursor":"p2"}`)
		l.answer(l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list","params":{"cursor":"p2"}}`), `{"tools":[`+odd+`],"nextCursor":"p3"}`)
		l.state(Connecting)
		l.answer(l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list","params":{"cursor":"p3"}}`), `{"tools":[`+tool("c")+`]}`)
		l.state(Ready)
		if got := fmt.Sprint(listed(l.tunnel)); got != "[a b c]" {
			t.Errorf("got %s", got)
		}
		if b, _ := l.tunnel.Tools().List.Tool("b"); string(b.Raw) != odd {
			t.Errorf("got %s", b.Raw)
		}
	})
}

func TestAnOddToolDoesNotHideItsSiblingsAndBoundsHold(t *testing.T) {
	for _, tc := range []struct {
		what   string
		limits Limits
		pages  []string
		want   string
		count  string // refusal counted
		told   string
	}{
		{"an entry that is no tool", Limits{}, []string{`{"tools":[` + tool("a") + `,{"name":5},null,{"name":"n"},` + tool("b") + `]}`}, "[a b]", "tool_malformed", "3 of its tools are left out (tool_malformed)"},
		{"a schema that is too large", Limits{SchemaBytes: 64}, []string{`{"tools":[` + tool("a") + `,{"name":"big","inputSchema":{"d":"` + strings.Repeat("x", 100) + `"}}]}`}, "[a]", "tool_schema_bytes", "1 of its tools are left out (tool_schema_bytes)"},
		{"a tool that is too large", Limits{SchemaBytes: 64}, []string{`{"tools":[` + tool("a") + `,{"name":"big","inputSchema":{},"description":"` + strings.Repeat("x", 200) + `"}]}`}, "[a]", "tool_schema_bytes", "1 of its tools are left out (tool_schema_bytes)"},
		{"too many tools", Limits{Tools: 3}, []string{`{"tools":[` + tool("a") + `,` + tool("b") + `],"nextCursor":"2"}`, `{"tools":[` + tool("c") + `,` + tool("d") + `],"nextCursor":"3"}`}, "[a b c]", "tools_per_server", "its list was cut after 3 tools (tools_per_server)"},
		{"too many pages", Limits{Pages: 2}, []string{`{"tools":[` + tool("a") + `],"nextCursor":"2"}`, `{"tools":[` + tool("b") + `],"nextCursor":"3"}`}, "[a b]", "tool_pages", "its list was cut after 2 tools (tool_pages)"},
		{"a cursor that comes again", Limits{}, []string{`{"tools":[` + tool("a") + `],"nextCursor":"2"}`, `{"tools":[` + tool("b") + `],"nextCursor":"2"}`}, "[a b]", "tool_cursor", "its list was cut after 2 tools (tool_cursor)"},
		{"the same name twice", Limits{}, []string{`{"tools":[` + tool("a") + `,` + tool("a") + `]}`}, "[a]", "", ""},
		{"no tools", Limits{}, []string{`{"tools":[]}`}, "[]", "", ""},
		{"an empty cursor ends the list", Limits{}, []string{`{"tools":[` + tool("a") + `],"nextCursor":""}`}, "[a]", "", ""},
	} {
		run(t, declaredA, tc.limits, func(l *lab) {
			l.handshake()
			for _, page := range tc.pages {
				l.answer(l.request("mcp/message", ""), page)
			}
			l.state(Ready)
			if got := fmt.Sprint(listed(l.tunnel)); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.what, got, tc.want)
			}
			if tc.count != "" && l.refused(tc.count) == 0 {
				t.Errorf("%s: %q is not counted", tc.what, tc.count)
			}
			if now := l.tunnel.Status().Reason; now != tc.told {
				t.Errorf("%s: it says %q, want %q", tc.what, now, tc.told)
			}
			l.quiet()
		})
	}
}

// refused is a counter of the tunnel in the tree.
func (l *lab) refused(scope string) int64 {
	for _, child := range l.k.Tree().Children {
		if child.Name == "tunnel-1" {
			return child.Refused[scope]
		}
	}
	return -1
}

func TestAChangedListIsFetchedAgainOneRunningAndOneWaiting(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		changed := acp.Inbound{Target: "conn-1", Method: "notifications/tools/list_changed"}
		for range 5 {
			l.inbound(changed)
		}
		first := l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list"}`)
		l.quiet()
		l.answer(first, `{"tools":[`+tool("second")+`]}`)
		second := l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list"}`)
		if got := fmt.Sprint(listed(l.tunnel)); got != "[second]" {
			t.Errorf("got %s", got)
		}
		l.answer(second, `{"tools":[`+tool("third")+`]}`)
		l.quiet()
		if got := fmt.Sprint(listed(l.tunnel)); got != "[third]" {
			t.Errorf("got %s", got)
		}
	})
}

func TestARefetchThatFailsLeavesTheListBefore(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		l.inbound(acp.Inbound{Method: "notifications/tools/list_changed"})
		l.fault(l.request("mcp/message", ""), -32603, "not now")
		l.inbound(acp.Inbound{Method: "notifications/tools/list_changed"})
		q := l.request("mcp/message", "")
		time.Sleep(31 * time.Second)
		l.cancelled(q)
		l.state(Ready)
		if got := fmt.Sprint(listed(l.tunnel)); got != "[katashiro.click]" {
			t.Errorf("got %s", got)
		}
	})
}

func TestToolsOfTheDeclarationAreListedAtOnceUntilTheRealListReplacesThem(t *testing.T) {
	d := declaredA
	d.Tools = []byte(`[` + tool("early") + `,{"name":7}]`)
	run(t, d, Limits{}, func(l *lab) {
		if s := l.tunnel.Tools(); s.State != capability.Connecting || !s.List.Early || fmt.Sprint(listed(l.tunnel)) != "[early]" {
			t.Errorf("got %+v %v", s, listed(l.tunnel))
		}
		l.ready(oneTool)
		if s := l.tunnel.Tools(); s.List.Early || fmt.Sprint(listed(l.tunnel)) != "[katashiro.click]" {
			t.Errorf("got %v", listed(l.tunnel))
		}
	})
}

func TestASessionWithoutRoomForItsToolsFailsTheTunnelAndKeepsNothing(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.handshake()
		q := l.request("mcp/message", "")
		lease, err := l.k.Account().Acquire(l.k.Account().Limit() - l.k.Account().Used() - 16<<10)
		if err != nil {
			t.Fatal(err)
		}
		var many []string
		for i := range 200 {
			many = append(many, fmt.Sprintf(`{"name":"t%d","inputSchema":{},"description":"%s"}`, i, strings.Repeat("x", 200)))
		}
		result := `{"tools":[` + strings.Join(many, ",") + `]}`
		q.Answer(Reply{Result: []byte(result)}, nil)
		l.over()
		lease.Release()
		l.state(Failed)
		if r := l.tunnel.Status().Reason; !strings.Contains(r, "session_bytes") {
			t.Errorf("the reason is %q", r)
		}
	})
}

func FuzzPagesOfAnyServer(f *testing.F) {
	f.Add([]byte(oneTool), []byte(`{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"x"}`))
	f.Add([]byte(`{"tools":[null,5,{"name":"a"}]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		l := &listing{limits: Limits{Tools: 4, SchemaBytes: 256, Pages: 3}.withDefaults(), cursors: map[string]struct{}{}}
		account := accountFor(t)
		for _, page := range [][]byte{a, b, a, b} {
			tools, bad, next, err := mcp.ParseToolsPage(page, 4)
			if err != nil {
				continue
			}
			why, _ := l.take(account, tools, bad, next)
			if len(l.tools) > 4 || l.pages > 3 {
				t.Fatalf("%d tools of %d pages", len(l.tools), l.pages)
			}
			for _, x := range l.tools {
				if len(x.InputSchema) > 256 || len(x.Raw) > 512 {
					t.Fatalf("%s has %d bytes", x.Name, len(x.Raw))
				}
			}
			if why != notYet {
				break
			}
		}
		l.release()
		if n := account.Used(); n != 0 {
			t.Fatalf("%d bytes are still charged", n)
		}
	})
}

func TestAChangedListThatCouldNotBeHadIsAskedForAgain(t *testing.T) {
	run(t, declaredA, Limits{}, func(l *lab) {
		l.ready(oneTool)
		l.inbound(acp.Inbound{Method: "notifications/tools/list_changed"})
		l.fault(l.request("mcp/message", ""), -32603, "not now")
		q := l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list"}`) // nor is that answered
		time.Sleep(Limits{}.withDefaults().Connect)
		l.cancelled(q)
		begun := time.Now()
		l.answer(l.request("mcp/message", `{"connectionId":"conn-1","method":"tools/list"}`), `{"tools":[`+tool("second")+`]}`)
		if got := fmt.Sprint(listed(l.tunnel)); got != "[second]" || time.Since(begun) != capability.RelistAfter(2) {
			t.Errorf("got %s after %v", got, time.Since(begun))
		}
		time.Sleep(time.Hour)
		l.quiet()
	})
}
