package search

import (
	"slices"
	"strings"
)

const maxAsked = 32 // words of a query that count

// wanted is one word of a query, and what may stand for it.
type wanted struct {
	term   string
	kin    []string // of the thesaurus
	weight float32
	exact  bool // only this term, neither its beginning nor its neighbour
}

// asked is a query, read.
type asked struct {
	lower, joined string
	words         []wanted
	mentioned     []string // pieces of the query between spaces, joined: whole names of tools may be among them
}

func read(query string) asked {
	query = clip(strings.TrimSpace(query))
	q := asked{lower: strings.ToLower(query), joined: joined(query)}
	var raw []string
	eachWord(query, func(w string, _ bool) bool {
		raw = append(raw, w)
		return len(raw) < 4*maxAsked
	})
	for piece := range strings.FieldsSeq(query) {
		if strings.ContainsAny(piece, "_-.:/") || joined(piece) == q.joined {
			q.mentioned = append(q.mentioned, joined(piece))
		}
		if len(q.mentioned) == maxAsked {
			break
		}
	}
	seen := map[string]bool{}
	add := func(w wanted) {
		if !seen[w.term] && len(q.words) < maxAsked {
			seen[w.term] = true
			q.words = append(q.words, w)
		}
	}
	before := ""
	for i := 0; i < len(raw); {
		if means, n := idiom(raw[i:]); n > 0 {
			for _, w := range means {
				add(wanted{term: stem(w), kin: kin[stem(w)], weight: 1})
			}
			i, before = i+n, ""
			continue
		}
		w := raw[i]
		i++
		if stop[w] {
			before = ""
			continue
		}
		add(wanted{term: stem(w), kin: kin[stem(w)], weight: 1})
		if before != "" {
			add(wanted{term: stem(before + w), kin: kin[stem(before+w)], weight: 1, exact: true})
		}
		before = w
	}
	return q
}

// idiom is what is read in place of the first n words.
func idiom(words []string) (means []string, n int) {
	for _, p := range idioms[words[0]] {
		if len(words) >= len(p.words) && slices.Equal(words[:len(p.words)], p.words) {
			return p.means, len(p.words)
		}
	}
	return nil, 0
}
