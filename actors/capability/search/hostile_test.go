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

// Lists of which every word begins like every word of the query, or is one letter off: a query guesses so much and no more.
func TestAQueryGuessesWithinItsBudget(t *testing.T) {
	tools := make([]Tool, 2000)
	for i := range tools {
		var text strings.Builder
		for k := range 400 {
			fmt.Fprintf(&text, "abcd%c%c%c%c ", 'a'+i%26, 'a'+k%26, 'a'+k/26, 'a'+i/26%26)
		}
		tools[i] = Tool{Name: fmt.Sprint("tool", i), Description: text.String()}
	}
	entries := entriesOf("s", NewIndex(tools))
	for _, query := range []string{
		"abcd abcda abcdb abcdc abcdd abcde abcdf abcdg",
		"abcdzzzz abcdzzzy abcdzzzx bbcdaaaa bbcdaaab bbcdaaac",
	} {
		r := newRanking(&tuned, entries)
		for _, w := range read(query).words {
			r.word(w)
		}
		// The last guess may end one posting list over the budget.
		if most := maxGuess + len(entries); r.steps > most {
			t.Errorf("%q looked at %d terms and places, and may at %d", query, r.steps, most)
		}
		if r.guesses < 0 {
			t.Errorf("%q has %d guesses left", query, r.guesses)
		}
	}
	if got := Rank("abcd", entries); len(got) == 0 {
		t.Error("nothing is found any more")
	}
}
