package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// workshop makes the tools of one server, some of whose words are everywhere and some nowhere else.
func workshop(server string, n int) (string, []Tool) {
	list := make([]Tool, n)
	for i := range list {
		list[i] = Tool{
			Name:        fmt.Sprintf("%s_job_%d", server, i),
			Description: fmt.Sprintf("Does job %d of the workshop %s with hammer and w%dx.", i, server, i%7),
			Schema:      fmt.Appendf(nil, `{"properties":{"wood":{},"nail%d":{}}}`, i%3),
		}
	}
	return server, list
}

func entriesOf(server string, index *Index) []Entry {
	var list []Entry
	for i := range index.docs {
		list = append(list, Entry{index.Doc(i), server})
	}
	return list
}

func TestAnIndexOfAListRanksLikeItsToolsOneByOne(t *testing.T) {
	var together, apart []Entry
	for _, name := range []string{"north", "south"} {
		server, tools := workshop(name, 20)
		together = append(together, entriesOf(server, NewIndex(tools))...)
		for _, tool := range tools {
			apart = append(apart, Entry{NewDoc(tool.Name, tool.Description, tool.Schema), server})
		}
	}
	for _, query := range []string{"hammer", "job 7 of south", "north w3x", "nail2", "craft with wood", "wodo", "w3"} {
		if a, b := Rank(query, together), Rank(query, apart); !slices.Equal(a, b) || len(a) == 0 {
			t.Errorf("%q: got %v from two indexes and %v from many", query, a, b)
		}
	}
}

func TestTheOrderDoesNotDependOnWhatIsNotShown(t *testing.T) {
	server, tools := workshop("north", 30)
	whole, half := NewIndex(tools), NewIndex(tools[:15])
	var fromWhole, fromHalf []Entry
	for i := range 15 {
		fromWhole = append(fromWhole, Entry{whole.Doc(i), server})
		fromHalf = append(fromHalf, Entry{half.Doc(i), server})
	}
	for _, query := range []string{"hammer w3x", "job 12", "nail1 north"} {
		if a, b := Rank(query, fromWhole), Rank(query, fromHalf); !slices.Equal(a, b) {
			t.Errorf("%q: got %v beside tools that are not shown, and %v without them", query, a, b)
		}
	}
	if got := Rank("job 29", fromWhole); len(got) > 0 && slices.Max(got) >= 15 {
		t.Errorf("got %v: a tool that is not shown is found", got)
	}
}

func TestAListThatIsReplacedLeavesTheIndexesOfOthersAsTheyAre(t *testing.T) {
	north, tools := workshop("north", 10)
	old := NewIndex(tools)
	_, more := workshop("south", 10)
	other := entriesOf("south", NewIndex(more))
	before := append(entriesOf(north, old), other...)
	tools[3].Description = "Bakes bread"
	after := append(entriesOf(north, NewIndex(tools)), other...)
	if got := Rank("bake bread", before); len(got) != 0 {
		t.Errorf("got %v before the list changed", got)
	}
	if got := Rank("bake bread", after); len(got) != 1 || got[0] != 3 {
		t.Errorf("got %v after the list changed", got)
	}
	if got := Rank("hammer", after); len(got) != 19 {
		t.Errorf("%d tools still have their hammer", len(got))
	}
}

func TestATermIsCountedInEachFieldOfATool(t *testing.T) {
	index := NewIndex([]Tool{
		{Name: "other"},
		{Name: "saw_saw", Description: "Saws. Sawing is done by a saw.", Schema: []byte(`{"properties":{"saw":{},"sawed":{}}}`)},
	})
	list := index.find("saw")
	want := posting{doc: 1, count: [fields]uint8{inName: 2, inHead: 1, inRest: 2, inParam: 2}}
	if len(list) != 1 || list[0] != want {
		t.Errorf("got %+v, want %+v", list, want)
	}
	for i := range index.ends[1:] {
		if index.term(i) >= index.term(i+1) {
			t.Errorf("%q stands before %q", index.term(i), index.term(i+1))
		}
	}
	if index.find("hammer") != nil {
		t.Error("found what is in no tool")
	}
}

func TestASearchMaySeeAnyMixOfToolsInAnyOrder(t *testing.T) {
	server, tools := workshop("north", 40)
	index := NewIndex(tools)
	rng := rand.New(rand.NewPCG(7, 7))
	for range 50 {
		var entries []Entry
		for range rng.IntN(30) {
			entries = append(entries, Entry{index.Doc(rng.IntN(len(tools))), server}) // some twice
		}
		entries = append(entries, Entry{Server: "of a tool that is nothing"})
		got := Rank("hammer", entries)
		if len(got) != len(entries)-1 {
			t.Fatalf("%d of %d entries are found", len(got), len(entries))
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != len(entries)-1 {
			t.Fatal("an entry is found twice")
		}
	}
}

func TestOfALongToolOnlySoMuchIsRead(t *testing.T) {
	long := strings.Repeat("- ", maxText/2)
	var schema strings.Builder
	schema.WriteString(`{"properties":{"first":{}`)
	for i := range maxParams {
		fmt.Fprintf(&schema, `,"p%cx%c":{}`, 'a'+i%26, 'a'+i/26)
	}
	schema.WriteString(`,"last":{},"` + long + `late":{}}}`)
	index := NewIndex([]Tool{
		{Name: "short" + long + "zebra", Description: "early" + long + "yak", Schema: []byte(schema.String())},
		{Name: strings.Repeat("ox_", 300), Schema: []byte(`{"properties":{"` + long + `late":{}}}`)},
	})
	for term, want := range map[string]bool{"short": true, "early": true, "first": true, "zebra": false, "yak": false, "last": false, "lat": false} {
		if got := index.find(term) != nil; got != want {
			t.Errorf("%s: found %v, want %v", term, got, want)
		}
	}
	if ox := index.find("ox"); len(ox) != 1 || ox[0].count[inName] != 255 || index.docs[1].sizes[inName] != 300 {
		t.Errorf("300 times one word are %+v", ox)
	}
}

func TestAWordIsTheBeginningOfSoManyTerms(t *testing.T) {
	tools := make([]Tool, 2*maxPrefix)
	for i := range tools {
		tools[i].Name = fmt.Sprintf("abcd%c%cq", 'a'+i%26, 'a'+i/26)
	}
	entries := entriesOf("s", NewIndex(tools))
	found := 0
	r := newRanking(&tuned, entries)
	r.word(wanted{term: "abcd"})
	for _, score := range r.scores {
		if score > 0 {
			found++
		}
	}
	if found != maxPrefix {
		t.Errorf("found %d of %d", found, maxPrefix)
	}
}
