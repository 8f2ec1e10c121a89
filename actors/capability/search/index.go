package search

import (
	"maps"
	"slices"
	"strings"
)

// Bounds of what is indexed of one tool: its author is a stranger.
const (
	maxParams = 128     // names of parameters
	maxText   = 4 << 10 // bytes of one text
	// MaxTerms is how many different terms a tool has at most, each of some 80 bytes.
	MaxTerms = 256
)

// The fields of a tool in which a term may stand. The name of the server is no field of
// the index: it belongs to the catalog that the tool is shown in.
const (
	inName  = iota
	inHead  // the first sentence of the description, which says what the tool is for
	inRest  // of the description
	inParam // the names of the parameters
	fields
)

// Tool is what a search knows of one tool. Schema is its raw input schema, of which the
// names of the parameters count; one that is no object counts for nothing.
type Tool struct {
	Name, Description string
	Schema            []byte
}

// Index has for each term the tools of one list in which it stands. It is immutable: a server whose list changed
// brings a new one, and those of other servers stay as they are. Any number of catalogs may show
// tools of one index, each a different part of them.
type Index struct {
	docs []doc
	// The terms, sorted, one behind the other: term i ends at ends[i], and its postings at starts[i+1].
	text     string
	ends     []int32
	starts   []int32
	postings []posting
	// known has a bit for each stem of the thesaurus that is a term: most are none.
	known []uint64
}

// doc is what is kept of a tool beside its postings.
type doc struct {
	lower  string // its name in lower case
	joined string // and without what is neither letter nor digit
	sizes  [fields]uint16
}

// posting says how often a term stands in each field of a tool.
type posting struct {
	doc   int32
	count [fields]uint8
}

// Doc is one tool of an index. The zero Doc is a tool that nothing finds.
type Doc struct {
	index *Index
	at    int32
}

func (d Doc) doc() *doc { return &d.index.docs[d.at] }

// Doc is the tool that NewIndex was given in that place.
func (x *Index) Doc(i int) Doc { return Doc{x, int32(i)} }

// NewDoc is a tool with an index of its own, for tools that are in no list.
func NewDoc(name, description string, schema []byte) Doc {
	return NewIndex([]Tool{{name, description, schema}}).Doc(0)
}

// NewIndex prepares the tools of one list.
func NewIndex(tools []Tool) *Index {
	x := &Index{docs: make([]doc, len(tools)), known: make([]uint64, (len(families)+63)/64)}
	b := builder{ids: map[string]int32{}, here: map[int32]int{}}
	for i, tool := range tools {
		x.docs[i] = b.read(int32(i), tool)
	}
	terms := slices.Sorted(maps.Keys(b.ids))
	x.text = strings.Join(terms, "")
	x.ends, x.starts = make([]int32, len(terms)), make([]int32, len(terms)+1)
	rank := make([]int32, len(terms)) // by id: the place among the sorted
	end := 0
	for i, term := range terms {
		end += len(term)
		x.ends[i] = int32(end)
		rank[b.ids[term]] = int32(i)
		if f := families[term]; f != nil {
			x.known[f.number/64] |= 1 << (f.number % 64)
		}
	}
	for _, p := range b.postings {
		x.starts[rank[p.term]+1]++
	}
	for i := range terms {
		x.starts[i+1] += x.starts[i]
	}
	x.postings = make([]posting, len(b.postings))
	next := slices.Clone(x.starts)
	for _, p := range b.postings { // in the order of the tools, and so are each term's postings
		at := &next[rank[p.term]]
		x.postings[*at] = p.posting
		*at++
	}
	return x
}

// term is the i-th of them, in their order.
func (x *Index) term(i int) string {
	from := int32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.text[from:x.ends[i]]
}

// search returns the place of a term, or that of the first one behind it.
func (x *Index) search(term string) (at int, found bool) {
	from, to := 0, len(x.ends)
	for from < to {
		middle := (from + to) / 2
		if x.term(middle) < term {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from, from < len(x.ends) && x.term(from) == term
}

// at are the postings of the i-th term, in the order of the tools.
func (x *Index) at(i int) []posting { return x.postings[x.starts[i]:x.starts[i+1]] }

// find returns the postings of a term.
func (x *Index) find(term string) []posting {
	if i, ok := x.search(term); ok {
		return x.at(i)
	}
	return nil
}

// kin returns the postings of a stem of the thesaurus.
func (x *Index) kin(of relative) []posting {
	if x.known[of.number/64]&(1<<(of.number%64)) == 0 {
		return nil
	}
	return x.find(of.term)
}

// begin returns the range of the terms that begin with a prefix, at most so many of them.
func (x *Index) begin(prefix string, most int) (from, to int) {
	from, _ = x.search(prefix)
	to = from
	for to < len(x.ends) && to-from < most && strings.HasPrefix(x.term(to), prefix) {
		to++
	}
	return from, to
}
