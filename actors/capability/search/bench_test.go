package search

import (
	"fmt"
	"testing"
)

// manyServers is 555 tools of 37 servers, 15 each, every description of some twenty words.
func manyServers() []Entry {
	var entries []Entry
	verbs := []string{"create", "list", "get", "update", "delete", "search", "send", "move", "copy", "open", "close", "run", "stop", "export", "check"}
	things := []string{"page", "file", "message", "issue", "branch", "table", "record", "user", "channel", "folder", "image", "event", "task", "label", "pod"}
	for s := range 37 {
		var tools []Tool
		for i, verb := range verbs {
			thing, other := things[(s+i)%len(things)], things[(s*3+i*2)%len(things)]
			tools = append(tools, Tool{
				Name:        verb + "_" + thing,
				Description: fmt.Sprintf("Will %s a %s of the account number %d. Use it when the %s is known already; the answer has its id, name, owner and the %s that it belongs to.", verb, thing, s, thing, other),
				Schema:      []byte(`{"properties":{"` + thing + `_id":{},"limit":{},"cursor":{},"` + other + `Name":{}}}`),
			})
		}
		entries = append(entries, entriesOf(fmt.Sprintf("server-%d", s), NewIndex(tools))...)
	}
	return entries
}

func BenchmarkRank555Tools(b *testing.B) {
	entries := manyServers()
	for _, query := range []string{"send a message with a file", "screnshot", "which people were at the meeting, and what did they say about the new release"} {
		b.Run(fmt.Sprint(len(query)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Rank(query, entries)
			}
		})
	}
}

func BenchmarkIndex100Tools(b *testing.B) {
	_, tools := workshop("north", 100)
	b.ReportAllocs()
	for b.Loop() {
		NewIndex(tools)
	}
}

// A search allocates a few arrays over the catalog, however many words there are and places they stand in.
func TestASearchAllocatesLittle(t *testing.T) {
	entries := manyServers()
	if n := testing.AllocsPerRun(10, func() { Rank("which people were at the meeting, and what did they say about the file", entries) }); n > 500 {
		t.Errorf("%v allocations over %d tools", n, len(entries))
	}
}
