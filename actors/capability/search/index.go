package search

import (
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
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
	// terms are sorted; the postings of terms[i] are postings[starts[i]:starts[i+1]].
	terms    []string
	starts   []int32
	postings []posting
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
	x := &Index{docs: make([]doc, len(tools))}
	b := builder{ids: map[string]int32{}, here: map[int32]int{}}
	for i, tool := range tools {
		x.docs[i] = b.read(int32(i), tool)
	}
	x.terms = make([]string, 0, len(b.ids))
	for term := range b.ids {
		x.terms = append(x.terms, term)
	}
	slices.Sort(x.terms)
	x.starts = make([]int32, len(x.terms)+1)
	rank := make([]int32, len(x.terms)) // by id: the place among the sorted
	for i, term := range x.terms {
		rank[b.ids[term]] = int32(i)
	}
	for _, p := range b.postings {
		x.starts[rank[p.term]+1]++
	}
	for i := range x.terms {
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

// find returns the postings of a term.
func (x *Index) find(term string) []posting {
	i, ok := slices.BinarySearch(x.terms, term)
	if !ok {
		return nil
	}
	return x.at(i)
}

func (x *Index) at(i int) []posting { return x.postings[x.starts[i]:x.starts[i+1]] }

// begin returns the range of the terms that begin with a prefix, at most most of them.
func (x *Index) begin(prefix string, most int) (from, to int) {
	from, _ = slices.BinarySearch(x.terms, prefix)
	to = from
	for to < len(x.terms) && to-from < most && strings.HasPrefix(x.terms[to], prefix) {
		to++
	}
	return from, to
}

// builder collects the postings of a list, tool by tool.
type builder struct {
	ids      map[string]int32
	postings []numbered
	here     map[int32]int // of the tool that is being read: term to posting
}

type numbered struct {
	posting
	term int32
}

func (b *builder) read(at int32, tool Tool) doc {
	clear(b.here)
	name := clip(tool.Name)
	d := doc{lower: strings.ToLower(name), joined: joined(name)}
	add := func(text string, field int, compounds bool) {
		before := ""
		eachWord(clip(text), func(w string, hyphen bool) bool {
			if compounds && hyphen {
				b.count(stem(before+w), at, field)
			}
			before = w
			if !stop[w] || field == inName {
				if b.count(stem(w), at, field) && d.sizes[field] < 1<<16-1 {
					d.sizes[field]++
				}
			}
			return true
		})
	}
	add(tool.Name, inName, false)
	head, rest := sentence(clip(tool.Description))
	add(head, inHead, true)
	add(rest, inRest, true)
	for param := range params(tool.Schema) {
		add(param, inParam, false)
	}
	return d
}

// count enters a term; false when the tool has too many different ones.
func (b *builder) count(term string, at int32, field int) bool {
	id, known := b.ids[term]
	if known {
		if i, here := b.here[id]; here {
			if c := &b.postings[i].count[field]; *c < 1<<8-1 {
				*c++
			}
			return true
		}
	}
	if len(b.here) == MaxTerms {
		return false
	}
	if !known {
		id = int32(len(b.ids))
		b.ids[strings.Clone(term)] = id
	}
	b.here[id] = len(b.postings)
	p := numbered{posting{doc: at}, id}
	p.count[field] = 1
	b.postings = append(b.postings, p)
	return true
}

// sentence parts a description behind its first sentence, or its first line.
func sentence(s string) (head, rest string) {
	end := len(s)
	if i := strings.IndexByte(s, '\n'); i > 0 {
		end = i
	}
	for i := 0; i+1 < end; i++ {
		if (s[i] == '.' || s[i] == '!' || s[i] == '?' || s[i] == ';') && s[i+1] == ' ' {
			end = i + 1
			break
		}
	}
	return s[:end], s[end:]
}

// params hands out the names of a schema's parameters.
func params(schema []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		o, err := jsonrpc.ParseObject(schema)
		if err != nil {
			return
		}
		raw, ok := o.Get("properties")
		if !ok {
			return
		}
		props, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return
		}
		n := 0
		for name := range props.Members() {
			if n++; n > maxParams || !yield(name) {
				return
			}
		}
	}
}

// clip cuts a text to what counts of it, between two characters.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}
