package capability

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// shownPage is a search's result as the contract has it.
type shownPage struct {
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

func searched(t *testing.T, v *View, q Query) shownPage {
	t.Helper()
	found, refusal := v.search(q)
	if refusal != nil {
		t.Fatalf("%+v: %v", q, refusal)
	}
	text := found.text()
	if int64(len(text)) > found.size {
		t.Fatalf("%d bytes were written where %d were reckoned", len(text), found.size)
	}
	var p shownPage
	if err := json.Unmarshal(text, &p, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func namesIn(p shownPage) []string {
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

// oddTools are tools whose texts take many more bytes in JSON than they have.
func oddTools(n, size int) *List {
	var raw []string
	for i := range n {
		raw = append(raw, fmt.Sprintf(`{"name":"tool.n%02d","description":%q,"inputSchema":{"type":"object","x":%q}}`, i, strings.Repeat("<", size), strings.Repeat("y", size)))
	}
	text := strings.ReplaceAll(strings.Join(raw, ","), "<<", `\u0001\"`)
	list, bad, err := mcp.ParseTools([]byte("["+text+"]"), 10_000)
	if err != nil || len(bad) > 0 {
		panic(fmt.Sprint(err, bad))
	}
	return NewList(list, false)
}

// TestAPageEndsAtItsBytesAndItsCursorLeadsOn: whole entries, at least one, and none is left out or shown twice.
func TestAPageEndsAtItsBytesAndItsCursorLeadsOn(t *testing.T) {
	v := viewOf(all("a"), nil, newSource("a", Ready, oddTools(20, 1000)))
	for most, perPage := range map[int64]int{1: 1, 4 << 10: 1, 16 << 10: 3, 1 << 30: 20} {
		v.pageBytes = most
		var got []string
		for q := (Query{Limit: 100}); ; {
			p := searched(t, v, q)
			if len(p.Capabilities) == 0 || len(p.Capabilities) > perPage || p.Total != 20 {
				t.Fatalf("%d bytes: %d entries of %d in a page", most, len(p.Capabilities), p.Total)
			}
			got = append(got, namesIn(p)...)
			if p.NextCursor == "" {
				break
			}
			q.Cursor = p.NextCursor
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 20 || len(got) != 20 {
			t.Errorf("%d bytes: got %q", most, got)
		}
	}
}

// TestASearchIsPaidForBeforeItIsWritten: a caller whose account has no room is told so, and pays nothing.
func TestASearchIsPaidForBeforeItIsWritten(t *testing.T) {
	k := kerneltest.Start(t, kernel.Options{})
	v := viewOf(all("a"), nil, newSource("a", Ready, oddTools(20, 1000)))
	published := new(atomic.Pointer[View])
	published.Store(v)
	whole, _ := v.search(Query{Limit: 100})
	for _, row := range []struct {
		limit int64
		fits  bool
	}{{whole.size - 1, false}, {whole.size, true}} {
		account := k.Account().Child("session_bytes", row.limit+v.searchBytes())
		text, lease, err := Search(t.Context(), Caller{View: published, Account: account}, Query{Limit: 100})
		var refusal *Refusal
		if row.fits && (err != nil || account.Used() < int64(len(text))) {
			t.Errorf("%d bytes paid for %d: %v", account.Used(), len(text), err)
		}
		if !row.fits && (!errors.As(err, &refusal) || refusal.Code != TooMuch || !strings.Contains(refusal.Text, "session_bytes")) {
			t.Errorf("without room: %v", err)
		}
		lease.Release()
		if account.Used() != 0 {
			t.Errorf("%d bytes are still used", account.Used())
		}
		account.Close()
	}
}

// TestAnEarlyListThatHasNoNamesYetIsWaitedFor: a source publishes its list before the desk has named what is in it, and a search that
// comes between the two would find nothing.
func TestAnEarlyListThatHasNoNamesYetIsWaitedFor(t *testing.T) {
	src := newSource("a", Connecting, nil)
	before := viewOf(all("a"), nil, src)
	src.set.Store(&Toolset{State: Connecting, List: listOf(true, "a.tool")})
	if !before.Unsettled() {
		t.Error("a search goes on with a list that has no names")
	}
	if after := viewOf(all("a"), nil, src); after.Unsettled() || len(after.Catalog()) != 1 {
		t.Errorf("a search waits for what is there: %v", after.Catalog())
	}
}

func TestWhatIsMissingOfTheListOfAClientsServerIsTold(t *testing.T) {
	const left = "its list was cut after 256 tools (tools_per_server)"
	s := shop("shop.buy")
	s.set.Store(&Toolset{State: Ready, List: s.Tools().List, Reason: left})
	got := viewOf(all("shop"), nil, s).Unavailable()
	if len(got) != 1 || got[0] != (Unavailable{Provider: BrowserProvider, Error: "shop: " + left}) {
		t.Errorf("got %+v", got)
	}
	if got := viewOf(all("bank"), nil, s).Unavailable(); len(got) != 0 {
		t.Errorf("of a server without a grant it says %+v", got)
	}
}
