package mcp

import (
	"fmt"
	"strings"
	"testing"
)

func TestOneOddToolHidesNoneOfItsSiblings(t *testing.T) {
	const first = `{ "name":"a.b" ,"inputSchema":{"type":"object","x-odd":[9007199254740993,"\u003c\ud800"],"x-odd":2}, "future":{"k":1}}`
	const last = `{"inputSchema":{},"name":"\u007a"}`
	odd := map[string]string{
		`7`:                                    "object",
		`null`:                                 "object",
		`{"inputSchema":{}}`:                   "name",
		`{"name":null,"inputSchema":{}}`:       "name",
		`{"name":"","inputSchema":{}}`:         "name",
		`{"name":"a\u00a0b","inputSchema":{}}`: "name",
		`{"name":"a\tb","inputSchema":{}}`:     "name",
		`{"name":"a\u200bb","inputSchema":{}}`: "name",
		`{"name":"a\nb","inputSchema":{}}`:     "name",
		`{"name":"a\u202eb","inputSchema":{}}`: "name",
		`{"name":"a\ud800","inputSchema":{}}`:  "name",
		`{"name":"` + strings.Repeat("x", MaxToolName+1) + `","inputSchema":{}}`: "name",
		`{"name":"n"}`:                                                  "inputSchema",
		`{"name":"n","inputSchema":null}`:                               "inputSchema",
		`{"name":"n","inputSchema":true}`:                               "inputSchema",
		`{"name":"n","inputSchema":[]}`:                                 "inputSchema",
		`{"name":"n","n\u0061me":"m","inputSchema":{}}`:                 "twice",
		`{"name":"n","inputSchema":{},"inputSchema":{"type":"object"}}`: "twice",
		`{"name":"n","inputSchema":{},"annotations":{"readOnlyHint":false,"readOnlyHint":true}}`: "twice",
	}
	for entry, why := range odd {
		page := `{"tools":[` + first + `,` + entry + `,` + last + `],"nextCursor":"c\u0032"}`
		tools, bad, next, err := ParseToolsPage([]byte(page), 1000)
		if err != nil {
			t.Fatalf("%.60s: %v", entry, err)
		}
		if len(tools) != 2 || string(tools[0].Raw) != first || string(tools[1].Raw) != last || tools[1].Name != "z" || next != "c2" {
			t.Errorf("%.60s: %d tools, next %q", entry, len(tools), next)
		}
		if len(bad) != 1 || bad[0].Index != 1 || !strings.Contains(bad[0].Why, why) || strings.ContainsAny(bad[0].Why, "\n\x1b") {
			t.Errorf("%.60s: %+v, want it to tell of %q", entry, bad, why)
		}
	}
}

func TestWhatIsReadOfATool(t *testing.T) {
	tools, bad, next, err := ParseToolsPage([]byte(`{"tools":[{"name":"n","title":"T","description":"D","inputSchema":{ "type":"object" },"outputSchema":{"x":1},
		"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":"yes","title":"other"},"execution":{"taskSupport":"required"}},
		{"name":"m","title":5,"description":null,"inputSchema":{},"outputSchema":true,"annotations":{"title":"A"}}],"nextCursor":null,"_meta":{}}`), 1000)
	if err != nil || len(bad) != 0 || next != "" || len(tools) != 2 {
		t.Fatalf("%v, %+v, %q, %v", tools, bad, next, err)
	}
	n, m := tools[0], tools[1]
	if n.Title != "T" || n.Description != "D" || string(n.InputSchema) != `{ "type":"object" }` || string(n.OutputSchema) != `{"x":1}` || n.TaskSupport != "required" {
		t.Errorf("%+v", n)
	}
	if (n.Annotations != Annotations{ReadOnly: Yes, Destructive: No}) || !n.Annotations.ReadOnly.True() || n.Annotations.Destructive.True() || n.Annotations.OpenWorld.True() {
		t.Errorf("%+v", n.Annotations)
	}
	if m.Title != "A" || m.Description != "" || m.OutputSchema != nil || m.Annotations != (Annotations{}) || m.TaskSupport != "" {
		t.Errorf("%+v", m)
	}
}

func TestAPageThatIsNone(t *testing.T) {
	for _, page := range []string{``, `null`, `[]`, `{}`, `{"tools":{}}`, `{"tools":null}`, `{"tools":[],"tools":[]}`, `{"tools":[],"nextCursor":5}`, `{"tools":[],"nextCursor":"a","nextCursor":"b"}`} {
		if tools, bad, next, err := ParseToolsPage([]byte(page), 1000); err == nil {
			t.Errorf("%s gave %v, %v, %q", page, tools, bad, next)
		}
	}
	if tools, bad, next, err := ParseToolsPage([]byte(`{"tools":[]}`), 1000); err != nil || len(tools)+len(bad) != 0 || next != "" {
		t.Errorf("the empty page: %v", err)
	}
}

func TestACloneOwnsItsBytes(t *testing.T) {
	page := []byte(`{"tools":[{"name":"n","inputSchema":{"a":1},"outputSchema":{"b":2},"annotations":{"readOnlyHint":true}}]}`)
	tools, _, _, err := ParseToolsPage(page, 1000)
	if err != nil {
		t.Fatal(err)
	}
	own := tools[0].Clone()
	for i := range page {
		page[i] = 'X'
	}
	if string(own.InputSchema) != `{"a":1}` || string(own.OutputSchema) != `{"b":2}` || !own.Annotations.ReadOnly.True() || own.Name != "n" || own.Size() < len(own.Raw) {
		t.Errorf("%+v", own)
	}
}

func TestEarlyToolsAreReadLikeAPage(t *testing.T) {
	tools, bad, err := ParseTools([]byte(`[{"name":"a","inputSchema":{}},1]`), 1000)
	if err != nil || len(tools) != 1 || len(bad) != 1 {
		t.Errorf("%v, %v, %v", tools, bad, err)
	}
	if _, _, err := ParseTools(nil, 1000); err == nil {
		t.Error("nothing is no array")
	}
}

func FuzzParseToolsPage(f *testing.F) {
	for _, s := range []string{
		`{"tools":[{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}],"nextCursor":"x"}`, `{"tools":[1,{"name":"\ud800","inputSchema":{}}]}`,
		`{"tools":[{"name":"a","inputSchema":{},"execution":{"taskSupport":"optional"}}],"resultType":"complete"}`, `{}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tools, bad, _, err := ParseToolsPage(b, 1000)
		if err != nil && (tools != nil || bad != nil) {
			t.Fatal("an error and tools")
		}
		for _, tool := range tools {
			if tool.Name == "" || len(tool.Name) > MaxToolName || tool.InputSchema == nil {
				t.Fatalf("%+v", tool)
			}
			if again, err := parseTool(tool.Raw); err != nil || fmt.Sprint(again) != fmt.Sprint(tool) || fmt.Sprint(tool.Clone()) != fmt.Sprint(tool) {
				t.Fatalf("%+v, then %+v, %v", tool, again, err)
			}
		}
		for _, tool := range bad {
			if tool.Why == "" || strings.ContainsAny(tool.Why, "\n\r\x1b") {
				t.Fatalf("%+v", tool)
			}
		}
	})
}

// Of a page only as many entries are read as anybody could list, whatever a server writes.
func TestAPageOfAMillionEntriesIsReadNoFurtherThanNeeded(t *testing.T) {
	for _, row := range []struct {
		entry      string
		tools, bad int
	}{{`{}`, 0, MaxBadTools}, {`0`, 0, MaxBadTools}, {`{"name":"a","inputSchema":{}}`, 11, 0}} {
		page := []byte(`{"tools":[` + strings.TrimSuffix(strings.Repeat(row.entry+",", 1_000_000), ",") + `]}`)
		tools, bad, _, err := ParseToolsPage(page, 10)
		if err != nil || len(tools) != row.tools || len(bad) != row.bad {
			t.Errorf("%s: %d tools, %d that are none: %v", row.entry, len(tools), len(bad), err)
		}
	}
}
