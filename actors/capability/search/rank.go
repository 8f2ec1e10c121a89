package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Weights of the fields of a document: how much one term there counts beside
// one in a description.
const (
	nameWeight   = 3.0
	paramWeight  = 0.5
	serverWeight = 1.0
	prefixWeight = 0.5 // of a term that only begins like the query's
	minPrefix    = 3   // characters of a query's term that may match as a prefix
)

// BM25's two constants: how soon repetition stops to count, and how much a long
// document is held against it.
const (
	saturation = 1.2
	length     = 0.75
)

// Bounds of what is indexed of one tool, and asked of all: its author and the asker are strangers.
const (
	maxParams = 128     // names of parameters
	maxText   = 4 << 10 // bytes of one text
	maxAsked  = 32      // words of a query that count
	// MaxTerms is how many different terms a tool has at most, each of some 80 bytes.
	MaxTerms = 256
)

// Doc is one tool, prepared once. Immutable.
type Doc struct {
	name  string // lower case
	terms map[string]float64
	size  float64
}

// NewDoc prepares a tool. schema is its raw input schema, of which the names
// of the parameters count; one that is no object counts for nothing.
func NewDoc(name, description string, schema []byte) Doc {
	d := Doc{name: strings.ToLower(name), terms: map[string]float64{}}
	d.add(name, nameWeight)
	d.add(description, 1)
	if o, err := jsonrpc.ParseObject(schema); err == nil {
		if raw, ok := o.Get("properties"); ok {
			if props, err := jsonrpc.ParseObject(raw); err == nil {
				n := 0
				for name := range props.Members() {
					if n++; n > maxParams {
						break
					}
					d.add(name, paramWeight)
				}
			}
		}
	}
	return d
}

func (d *Doc) add(text string, weight float64) {
	for _, w := range words(text[:min(len(text), maxText)]) {
		if _, known := d.terms[w]; !known && len(d.terms) == MaxTerms {
			continue
		}
		d.terms[w] += weight
		d.size++
	}
}

// Entry is a document in a catalog, with the name of the server that it is of.
type Entry struct {
	Doc    Doc
	Server string
}

// Rank returns the indices of the entries that answer the query, best first.
// An entry whose name contains the whole query (in any case) always answers it.
// A query without a word in it is answered by names only.
func Rank(query string, entries []Entry) []int {
	query = strings.ToLower(strings.TrimSpace(query))
	asked := words(query[:min(len(query), maxText)])
	asked = unique(asked[:min(len(asked), maxAsked)])
	servers := map[string][]string{}
	var total float64
	for _, e := range entries {
		total += e.Doc.size
		if _, ok := servers[e.Server]; !ok {
			servers[e.Server] = words(e.Server)
		}
	}
	mean := max(total/float64(max(len(entries), 1)), 1)
	scores := make([]float64, len(entries))
	found := make([]float64, len(entries)) // of one term: its weight in each entry
	for _, term := range asked {
		holders := 0.0
		for i, e := range entries {
			found[i] = e.weight(term, servers[e.Server])
			if found[i] > 0 {
				holders++
			}
		}
		rarity := math.Log(1 + (float64(len(entries))-holders+0.5)/(holders+0.5))
		for i, e := range entries {
			if tf := found[i]; tf > 0 {
				scores[i] += rarity * tf * (saturation + 1) / (tf + saturation*(1-length+length*e.Doc.size/mean))
			}
		}
	}
	var hits []int
	for i, e := range entries {
		if query != "" && strings.Contains(e.Doc.name, query) {
			scores[i]++
		}
		if scores[i] > 0 {
			hits = append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return hits
}

// weight is how much of the term is in the entry: exactly, as the server's name,
// or, less, as the beginning of a longer term.
func (e Entry) weight(term string, server []string) float64 {
	w := e.Doc.terms[term]
	if slices.Contains(server, term) {
		w += serverWeight
	}
	if w > 0 || len(term) < minPrefix {
		return w
	}
	for t, have := range e.Doc.terms {
		if strings.HasPrefix(t, term) {
			w = max(w, have*prefixWeight)
		}
	}
	return w
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
