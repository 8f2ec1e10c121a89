package search

import (
	"cmp"
	"slices"
)

// Entry is a tool in a catalog, with the name of the server that it is of.
type Entry struct {
	Doc    Doc
	Server string
}

// Rank returns the indices of the entries that answer the query, best first.
// An entry whose name contains the whole query (in any case) always answers it.
// A query without a word in it is answered by names only.
func Rank(query string, entries []Entry) []int { return tuned.rank(query, entries) }

func (w *weights) rank(query string, entries []Entry) []int {
	q := read(query)
	if q.lower == "" || len(entries) == 0 {
		return nil
	}
	r := newRanking(w, entries)
	for _, word := range q.words {
		r.word(word)
	}
	r.cover()
	r.names(q)
	return r.order()
}

// ranking is one query's work.
type ranking struct {
	*weights
	entries []Entry
	lists   []shown
	next    []int32 // by entry: the next one of the same tool plus one
	servers []server
	server  []int32 // by entry
	mean    [fields]float32
	scores  []float32
	share   []float32 // of the query's words, by their rarity, that an entry has
	total   float32   // of all words' rarity
	own     worths    // the word at hand itself
	kindred worths    // what may stand for it
	steps   int       // terms and places looked at
	guesses int       // of which so many may still be guesses
}

// shown is the part of an index that the catalog shows.
type shown struct {
	index *Index
	first []int32 // by tool of the index: its first entry plus one
}

// server is one name in the catalog.
type server struct {
	joined string
	terms  []string
}

func newRanking(w *weights, entries []Entry) *ranking {
	n := len(entries)
	r := &ranking{weights: w, entries: entries, guesses: maxGuess}
	floats, ints, bools := make([]float32, 4*n), make([]int32, 4*n), make([]bool, 2*n)
	r.scores, r.share = floats[:n], floats[n:2*n]
	r.next, r.server = ints[:n], ints[n:2*n]
	r.own = worths{floats[2*n : 3*n], bools[:n], ints[2*n : 2*n : 3*n]}
	r.kindred = worths{floats[3*n:], bools[n:], ints[3*n : 3*n]}
	lists, servers := map[*Index]int{}, map[string]int32{}
	var sums [fields]int64
	for i, e := range entries {
		if i > 0 && e.Server == entries[i-1].Server {
			r.server[i] = r.server[i-1]
		} else {
			at, known := servers[e.Server]
			if !known {
				at = int32(len(r.servers))
				servers[e.Server] = at
				r.servers = append(r.servers, server{joined(e.Server), termsOf(e.Server)})
			}
			r.server[i] = at
		}
		if e.Doc.index == nil {
			continue
		}
		at, known := lists[e.Doc.index]
		if !known {
			at = len(r.lists)
			lists[e.Doc.index] = at
			r.lists = append(r.lists, shown{e.Doc.index, make([]int32, len(e.Doc.index.docs))})
		}
		first := &r.lists[at].first[e.Doc.at]
		r.next[i], *first = *first, int32(i+1)
		for f, size := range e.Doc.doc().sizes {
			sums[f] += int64(size)
		}
	}
	for f := range r.mean {
		r.mean[f] = max(float32(sums[f])/float32(n), 1)
	}
	return r
}

// cover rewards entries that have many of the query's words.
func (r *ranking) cover() {
	if r.total == 0 {
		return
	}
	for i, share := range r.share {
		r.scores[i] *= 1 - r.coverage + r.coverage*share/r.total
	}
}

// order is every entry that was found, best first, ties in the order given.
func (r *ranking) order() []int {
	n := 0
	for _, score := range r.scores {
		if score > 0 {
			n++
		}
	}
	hits := make([]int, 0, n)
	for i, score := range r.scores {
		if score > 0 {
			hits = append(hits, i)
		}
	}
	slices.SortFunc(hits, func(a, b int) int { return cmp.Or(cmp.Compare(r.scores[b], r.scores[a]), cmp.Compare(a, b)) })
	return hits
}
