package search

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What a stranger writes into a description or a query costs a bounded time and memory.
func TestHostileTextsAreIndexedAndAskedWithinBounds(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "w%dx ", i)
	}
	entries := make([]Entry, 2000)
	doc := NewDoc("shop.buy", text.String(), []byte(`{"properties":{"`+strings.Repeat("q", 60_000)+`":{}}}`))
	if len(doc.index.ends) > MaxTerms {
		t.Errorf("%d terms are kept", len(doc.index.ends))
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

// Lists of which every word begins like every word of the query, and stands in every tool, or is one letter off, and stands nowhere
// else: a query guesses so much and no more.
func TestAQueryGuessesWithinItsBudget(t *testing.T) {
	crowd := func(tools, words int, word func(tool, n int) string) []Entry {
		list := make([]Tool, tools)
		for i := range list {
			var text strings.Builder
			for n := range words {
				text.WriteString(word(i, n) + " ")
			}
			list[i] = Tool{Name: fmt.Sprint("tool", i), Description: text.String()}
		}
		return entriesOf("s", NewIndex(list))
	}
	letters := func(n int) string { return string([]byte{'a' + byte(n%26), 'a' + byte(n/26%26), 'a' + byte(n/676%26)}) }
	for query, entries := range map[string][]Entry{
		"abcd abcde abcdf abcdg":               crowd(600, 200, func(_, n int) string { return "abcd" + letters(n) + "abcdeabcdfabcdg"[n%3*5:][:5] + "x" }),
		"abcdzzzz abcdzzzy abcdzzzx abcdzzzzz": crowd(400, 200, func(tool, n int) string { return "abcd" + letters(tool) + letters(n) }),
	} {
		r := newRanking(&tuned, entries)
		for _, w := range read(query).words {
			r.word(w)
		}
		// The last guess may end one list of places over the budget.
		if r.steps < maxGuess || r.steps > maxGuess+len(entries) {
			t.Errorf("%q looked at %d terms and places: that is not the budget of %d", query, r.steps, maxGuess)
		}
		if r.guesses != 0 {
			t.Errorf("%q has %d guesses left", query, r.guesses)
		}
	}
}
