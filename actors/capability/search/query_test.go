package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAQueryIsReadIntoWhatIsWanted(t *testing.T) {
	terms := func(q asked) (list []string) {
		for _, w := range q.words {
			list = append(list, w.term)
		}
		return list
	}
	for query, want := range map[string][]string{
		"delete the page":         {"delet", "pag"},
		"look up a person":        {"search", "person"},
		"get rid of old branches": {"delet", "old", "branch", "oldbranch"},
		"who may read it":         {"user", "read"},
		"which files":             {"list", "fil"},
		"send send SENDING":       {"send", "sendsend"},
		"":                        nil,
		"the":                     nil,
		"reset password 12":       {"reset", "password", "resetpassword", "12", "password12"},
	} {
		got := terms(read(query))
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

func TestOfALongQueryOnlySoMuchCounts(t *testing.T) {
	var text strings.Builder
	for i := range 600 {
		fmt.Fprintf(&text, "w%c%cx_y ", 'a'+i%26, 'a'+i/26)
	}
	q := read(text.String())
	if len(q.words) != maxAsked || len(q.pieces) != maxAsked {
		t.Errorf("%d words and %d names are wanted", len(q.words), len(q.pieces))
	}
	if q := read(strings.Repeat("- ", maxText) + "word"); len(q.words) != 0 {
		t.Errorf("%d words of what comes late", len(q.words))
	}
}

func TestTheThesaurusIsSymmetricAndBounded(t *testing.T) {
	most, numbers := 0, map[int]bool{}
	for word, f := range families {
		if f.term != word || numbers[f.number] || f.number >= len(families) {
			t.Errorf("%s is %+v", word, f.relative)
		}
		numbers[f.number] = true
		most = max(most, len(f.kin))
		for _, other := range f.kin {
			if other.term == word || !slices.Contains(kin(other.term), f.relative) {
				t.Errorf("%s stands for %s, and not the other way round", other.term, word)
			}
		}
	}
	if most > 40 {
		t.Errorf("%d words stand for one", most)
	}
	for first, list := range idioms {
		for _, p := range list {
			if p.words[0] != first || len(p.means) == 0 {
				t.Errorf("idiom %q means %q", p.words, p.means)
			}
		}
	}
}
