package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// weights decide the order. They were found on one half of the questions of testdata/search (docs/search.md).
type weights struct {
	field      [fields]float32 // how much one term there counts
	length     [fields]float32 // how much a long field is held against it, 0 to 1
	saturation float32         // how soon repetition stops to count
	server     float32         // of a term that is in the server's name
	kin        float32         // of what the thesaurus has for a term
	prefix     float32         // of a term that only begins like the query's
	typo       float32         // of a term that is one letter off
	coverage   float32         // how much more a tool is worth that has all words of the query
}

var tuned = weights{
	field:      [fields]float32{3, 1, 0.5, 0.5},
	length:     [fields]float32{0.5, 0.75, 0.75, 0.75},
	saturation: 1.2,
	server:     1,
	kin:        0.4,
	prefix:     0.5,
	typo:       0.5,
	coverage:   0.5,
}

const (
	minPrefix  = 3        // characters of a query's term that may match as a prefix
	mostPrefix = 256      // terms of one index that one prefix may stand for
	minTypo    = 4        // characters of a term that may be one off
	mostTypo   = 64 << 10 // terms that one query looks at for those
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
	found   []float32 // of the word at hand: its weight in each entry
	touched []int32   // the entries where found is not zero
	typos   int       // terms looked at
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
	r := &ranking{weights: w, entries: entries}
	floats, ints := make([]float32, 3*n), make([]int32, 3*n)
	r.scores, r.share, r.found = floats[:n], floats[n:2*n], floats[2*n:]
	r.next, r.server, r.touched = ints[:n], ints[n:2*n], ints[2*n:2*n]
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

// word adds what one word of the query is worth to each entry.
func (r *ranking) word(w wanted) {
	for i := range r.servers {
		if contains(r.servers[i].terms, w.term) {
			for e, of := range r.server {
				if of == int32(i) {
					r.have(int32(e), r.weights.server)
				}
			}
		}
	}
	for _, l := range r.lists {
		r.term(l, w.term, 1, true)
	}
	for _, l := range r.lists {
		for _, term := range w.kin {
			r.term(l, term, r.kin, false)
		}
	}
	if !w.exact && len(w.term) >= minPrefix {
		for _, l := range r.lists {
			from, to := l.index.begin(w.term, mostPrefix)
			for i := from; i < to; i++ {
				if len(l.index.terms[i]) > len(w.term) {
					r.postings(l, l.index.at(i), r.prefix, false)
				}
			}
		}
	}
	if len(r.touched) == 0 && !w.exact {
		r.misspelt(w.term)
	}
	if len(r.touched) == 0 {
		return
	}
	n, holders := float64(len(r.entries)), float64(len(r.touched))
	rarity := float32(math.Log(1 + (n-holders+0.5)/(holders+0.5)))
	if !w.exact {
		r.total += rarity
	}
	for _, e := range r.touched {
		tf := r.found[e]
		r.found[e] = 0
		r.scores[e] += w.weight * rarity * tf * (r.saturation + 1) / (tf + r.saturation)
		if !w.exact {
			r.share[e] += rarity
		}
	}
	r.touched = r.touched[:0]
}

func (r *ranking) term(l shown, term string, weight float32, sum bool) {
	if postings := l.index.find(term); postings != nil {
		r.postings(l, postings, weight, sum)
	}
}

// postings enters the weight of a term into the entries in which it stands: added to what is there, or where it is more.
func (r *ranking) postings(l shown, list []posting, weight float32, sum bool) {
	for i := range list {
		p := &list[i]
		e := l.first[p.doc]
		if e == 0 {
			continue
		}
		tf := float32(0)
		sizes := &l.index.docs[p.doc].sizes
		for f, count := range p.count {
			if count > 0 {
				tf += r.field[f] * float32(count) / (1 - r.length[f] + r.length[f]*float32(sizes[f])/r.mean[f])
			}
		}
		tf *= weight
		for ; e != 0; e = r.next[e-1] {
			if sum {
				r.have(e-1, tf)
			} else if more := tf - r.found[e-1]; more > 0 {
				r.have(e-1, more)
			}
		}
	}
}

func (r *ranking) have(e int32, more float32) {
	if r.found[e] == 0 {
		r.touched = append(r.touched, e)
	}
	r.found[e] += more
}

// misspelt looks for terms that are one letter off, for a word that nothing else answers.
func (r *ranking) misspelt(term string) {
	if len(term) < minTypo {
		return
	}
	for _, l := range r.lists {
		for i, have := range l.index.terms {
			if r.typos++; r.typos > mostTypo {
				return
			}
			if oneOff(term, have) {
				r.postings(l, l.index.at(i), r.typo, false)
			}
		}
	}
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

// Beside its words: what a name is worth that is the query, is mentioned in it, or contains it.
const (
	isName        = 1000
	mentionsName  = 100
	containsQuery = 1
)

func (r *ranking) names(q asked) {
	for i, e := range r.entries {
		if e.Doc.index == nil {
			continue
		}
		d := e.Doc.doc()
		qualified := func(s string) bool {
			server := r.servers[r.server[i]].joined
			return len(s) == len(server)+len(d.joined) && strings.HasPrefix(s, server) && strings.HasSuffix(s, d.joined)
		}
		if q.joined != "" {
			if q.joined == d.joined || qualified(q.joined) {
				r.scores[i] += isName
			}
			for _, m := range q.mentioned {
				if m == d.joined || qualified(m) {
					r.scores[i] += mentionsName
					break
				}
			}
		}
		if strings.Contains(d.lower, q.lower) || len(q.joined) >= minPrefix && strings.Contains(d.joined, q.joined) {
			r.scores[i] += containsQuery
		}
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
