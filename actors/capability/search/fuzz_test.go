package search

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// Whatever strangers write and ask: no panic, the same answer twice, each tool at most once, and first a tool whose name is the query.
func FuzzRank(f *testing.F) {
	f.Add("read file", "read_file", "Reads a file", `{"properties":{"path":{}}}`, "disk")
	f.Add("屏幕 截图 x", "スクリーン-ショット", "e\u0301 \xff\xfe İ", `{"properties":{"":{}}}`, "")
	f.Add("pull requests, drop-down", "--", "pull-request drop-down.", `[`, "a.b")
	f.Add("_", "_", "_-_", `{}`, "_")
	f.Add("x", "x", "", ``, "ẞ")
	f.Fuzz(func(t *testing.T, query, name, description, schema, server string) {
		index := NewIndex([]Tool{
			{"list_pages", "Lists the pages that are open.", nil},
			{name, description, []byte(schema)},
			{query, description, nil},
		})
		entries := []Entry{{index.Doc(0), "browser"}, {index.Doc(1), server}, {index.Doc(2), server}, {index.Doc(1), "other"}, {NewDoc(description, name, nil), query}}
		got := Rank(query, entries)
		if !slices.Equal(got, Rank(query, entries)) {
			t.Fatal("the same query gave another order")
		}
		seen := map[int]bool{}
		for _, i := range got {
			if i < 0 || i >= len(entries) || seen[i] {
				t.Fatalf("got %v of %d", got, len(entries))
			}
			seen[i] = true
		}
		if joined(query) != "" && len(query) <= maxText {
			if len(got) == 0 || !seen[2] {
				t.Fatalf("%q: got %v, and not the tool of that name", query, got)
			}
		}
		for i := range index.ends {
			if term := index.term(i); term == "" || i > 0 && term <= index.term(i-1) {
				t.Fatalf("term %d is %q", i, term)
			}
		}
		if len(index.ends) > 3*MaxTerms {
			t.Fatalf("%d terms of three tools", len(index.ends))
		}
		eachWord(query, func(w string, _ bool) bool {
			if w == "" || utf8.ValidString(query) && !utf8.ValidString(w) {
				t.Fatalf("%q has the word %q", query, w)
			}
			return true
		})
	})
}
