package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWordsAreSplitWherePeopleSplitThem(t *testing.T) {
	for in, want := range map[string][]string{
		"katashiro.read_dom":       {"katashiro", "read", "dom"},
		"getHTTPServerStatus":      {"get", "http", "server", "status"},
		"list-open-tabs2":          {"list", "open", "tab", "2"},
		"Clicked, clicking, click": {"click", "click", "click"},
		"typing a typed type":      {"typ", "typ", "typ"},
		"queries query":            {"query", "query"},
		"größe żółć":               {"größ", "żółć"},
		"  -- ":                    nil,
		"the of and":               nil,
	} {
		if got := termsOf(in); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func docs() ([]Entry, []string) {
	var entries []Entry
	var names []string
	add := func(server, name, description, schema string) {
		entries = append(entries, Entry{NewDoc(name, description, []byte(schema)), server})
		names = append(names, name)
	}
	add("katashiro", "katashiro.click", "Clicks an element of the page", `{"properties":{"selector":{}}}`)
	add("katashiro", "katashiro.navigate", "Opens a URL in the active tab", `{"properties":{"url":{}}}`)
	add("katashiro", "katashiro.read_dom", "Reads the DOM of the page, or of one element", `{"properties":{"selector":{}}}`)
	add("katashiro", "katashiro.screenshot", "Takes a picture of the visible page", `{}`)
	add("katashiro", "katashiro.type", "Types text into a field", `{"properties":{"selector":{},"text":{}}}`)
	add("shop", "buy", "Buys what is in the basket", `{"properties":{"voucher":{}}}`)
	add("shop", "searchProducts", "Finds products by words", `{"properties":{"query":{},"page":{}}}`)
	return entries, names
}

func TestTheBestAnswerComesFirst(t *testing.T) {
	entries, names := docs()
	for query, want := range map[string]string{
		"click":                        "katashiro.click",
		"clicking a button":            "katashiro.click",
		"take a screenshot":            "katashiro.screenshot",
		"picture of the page":          "katashiro.screenshot",
		"read dom":                     "katashiro.read_dom",
		"open url":                     "katashiro.navigate",
		"type text into field":         "katashiro.type",
		"product search":               "searchProducts",
		"shop buy":                     "buy",
		"voucher":                      "buy",
		"KATASHIRO.CLICK":              "katashiro.click",
		"screen":                       "katashiro.screenshot",
		"what is in the basket please": "buy",
	} {
		got := Rank(query, entries)
		if len(got) == 0 || names[got[0]] != want {
			var list []string
			for _, i := range got {
				list = append(list, names[i])
			}
			t.Errorf("%q: got %q, want %s first", query, list, want)
		}
	}
}

func TestWhatSaysNothingFindsNothing(t *testing.T) {
	entries, _ := docs()
	for _, query := range []string{"zzz", "the", "...", "qqq www"} {
		if got := Rank(query, entries); query != "..." && len(got) != 0 {
			t.Errorf("%q found %v", query, got)
		}
	}
	if got := Rank("click", nil); len(got) != 0 {
		t.Errorf("found %v in nothing", got)
	}
}

func TestTheSameQueryGivesTheSameOrder(t *testing.T) {
	var entries []Entry
	for i := range 200 {
		entries = append(entries, Entry{NewDoc(fmt.Sprintf("tool%d", i), "does the same thing as all others", nil), "s"})
	}
	first := Rank("same thing", entries)
	if !slices.IsSorted(first) || len(first) != 200 {
		t.Fatalf("ties are not in the order given: %v", first)
	}
	for range 5 {
		if !slices.Equal(first, Rank("same thing", entries)) {
			t.Fatal("another order")
		}
	}
}

func TestASchemaOfWhateverKindCountsForNothingWorse(t *testing.T) {
	for _, schema := range []string{``, `null`, `[]`, `{"properties":[]}`, `{"properties":{"a":1,"a":2}}`, `{`} {
		if got := Rank("name", []Entry{{NewDoc("name", "", []byte(schema)), ""}}); len(got) != 1 {
			t.Errorf("%q: the tool is not found", schema)
		}
	}
}

func BenchmarkRankOver2000Tools(b *testing.B) {
	var entries []Entry
	for i := range 2000 {
		entries = append(entries, Entry{NewDoc(fmt.Sprintf("server%d.tool_%d", i%8, i), "Does one of many things with pages, files and messages", nil), fmt.Sprint("server", i%8)})
	}
	b.ReportAllocs()
	for b.Loop() {
		Rank("send a message with a file", entries)
	}
}

// What a stranger writes into a description or a query costs a bounded time and memory.
func TestHostileTextsAreIndexedAndAskedWithinBounds(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "w%dx ", i)
	}
	entries := make([]Entry, 2000)
	doc := NewDoc("shop.buy", text.String(), []byte(`{"properties":{"`+strings.Repeat("q", 60_000)+`":{}}}`))
	if len(doc.index.terms) > MaxTerms {
		t.Errorf("%d terms are kept", len(doc.index.terms))
	}
	for i := range entries {
		entries[i] = Entry{Doc: doc}
	}
	begun := time.Now()
	Rank(text.String(), entries)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("a query of %d bytes took %v", text.Len(), took)
	}
	if hits := Rank("buy "+strings.Repeat("nothing ", 1000), entries); len(hits) != len(entries) {
		t.Errorf("%d of %d entries were found", len(hits), len(entries))
	}
}
