package capability

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"testing"
)

// page is a search's result as the contract has it.
type page struct {
	Capabilities []struct {
		Name         string         `json:"name"`
		Description  *string        `json:"description"`
		InputSchema  map[string]any `json:"input_schema"`
		Provider     string         `json:"provider"`
		Risk         string         `json:"risk"`
		Availability string         `json:"availability"`
	} `json:"capabilities"`
	Unavailable []struct {
		Provider string `json:"provider"`
		Error    string `json:"error"`
	} `json:"unavailable"`
	Pending    []string `json:"pending"`
	NextCursor string   `json:"next_cursor"`
	Total      int      `json:"total"`
}

func searched(t *testing.T, v *View, q Query) page {
	t.Helper()
	text, refusal := v.search(q)
	if refusal != nil {
		t.Fatalf("%+v: %v", q, refusal)
	}
	var p page
	if err := json.Unmarshal(text, &p, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func namesIn(p page) []string {
	var out []string
	for _, c := range p.Capabilities {
		out = append(out, c.Name)
	}
	return out
}

func TestSearchShowsTheContractsMembersAndNothingElse(t *testing.T) {
	v := viewOf(all("a", "b", "c", "d"), []string{"refused"},
		newSource("a", Ready, tools("a.read!", "a.write")), newSource("b", Detached, tools("b.x")), newSource("c", Connecting, nil), newSource("d", Failed, nil))
	p := searched(t, v, Query{})
	if got := namesIn(p); !slices.Equal(got, []string{"a.read", "a.write", "b.x"}) || p.Total != 3 {
		t.Fatalf("got %q, total %d", got, p.Total)
	}
	first, last := p.Capabilities[0], p.Capabilities[2]
	if first.Provider != "openab-browser" || first.Risk != "read" || first.Availability != "ready" || *first.Description != "does a.read" || first.InputSchema["type"] != "object" {
		t.Errorf("got %+v", first)
	}
	if p.Capabilities[1].Risk != "write" || last.Availability != "detached" {
		t.Errorf("got %+v", p.Capabilities)
	}
	if !slices.Equal(p.Pending, []string{"c"}) || len(p.Unavailable) != 1 || p.Unavailable[0].Provider != "openab-browser" {
		t.Errorf("pending %q, unavailable %+v", p.Pending, p.Unavailable)
	}
}

func TestDetailNamesLeavesSchemasAndDescriptionsOut(t *testing.T) {
	p := searched(t, viewOf(all("a"), nil, newSource("a", Ready, tools("a.x"))), Query{Names: true})
	if c := p.Capabilities[0]; c.Name != "a.x" || c.Description != nil || c.InputSchema != nil {
		t.Errorf("got %+v", c)
	}
}

func TestPagesFollowEachOtherWithoutGapsAndCursorsAreBoundToTheirQuery(t *testing.T) {
	var many []string
	for i := range 57 {
		many = append(many, fmt.Sprintf("tool.n%02d", i))
	}
	v := viewOf(all("a"), nil, newSource("a", Ready, tools(many...)))
	for _, text := range []string{"", "tool"} {
		var got []string
		q := Query{Text: text, Limit: 10}
		for pages := 0; ; pages++ {
			p := searched(t, v, q)
			got = append(got, namesIn(p)...)
			if p.Total != 57 {
				t.Fatalf("total %d", p.Total)
			}
			if p.NextCursor == "" {
				break
			}
			if pages > 6 {
				t.Fatal("no end")
			}
			q.Cursor = p.NextCursor
		}
		slices.Sort(got)
		if !slices.Equal(got, many) {
			t.Errorf("query %q: got %q", text, got)
		}
	}
	cursor := searched(t, v, Query{Text: "tool", Limit: 5}).NextCursor
	for _, q := range []Query{{Text: "other", Cursor: cursor}, {Cursor: "%%%"}, {Cursor: "LTEuYQ"}, {Limit: 101}, {Limit: -1}} {
		if _, refusal := v.search(q); refusal == nil || refusal.Code != BadArguments {
			t.Errorf("%+v: got %v", q, refusal)
		}
	}
	if p := searched(t, v, Query{}); len(p.Capabilities) != DefaultPage {
		t.Errorf("%d in a page without a limit", len(p.Capabilities))
	}
}

func TestAnAnonymousCallersSearchIsEmptyAndWellFormed(t *testing.T) {
	p := searched(t, Caller{}.view(), Query{Text: "anything"})
	if p.Total != 0 || p.Capabilities == nil || p.Unavailable == nil || p.Pending == nil {
		t.Errorf("got %+v", p)
	}
}
