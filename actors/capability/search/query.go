package search

import (
	"slices"
	"strings"
)

// wanted is one word of a query, and what may stand for it.
type wanted struct {
	term  string
	kin   []relative
	exact bool // nothing but the term itself: two words of the query, written as one
	light bool // it says little
}

// asked is a query, read.
type asked struct {
	lower, joined string
	words         []wanted
	pieces        []string // what looks like a name in it, joined
}

func read(query string) asked {
	query = clip(strings.TrimSpace(query))
	q := asked{lower: strings.ToLower(query), joined: joined(query)}
	for piece := range strings.FieldsSeq(query) {
		if len(q.pieces) < maxAsked && nameLike(piece) {
			q.pieces = append(q.pieces, joined(piece))
		}
	}
	var raw []string
	eachWord(query, func(w string, _ bool) bool {
		raw = append(raw, w)
		return true
	})
	before := ""
	for len(raw) > 0 {
		if means, n := idiom(raw); n > 0 {
			for _, w := range means {
				q.want(wanted{term: stem(w), kin: kin(stem(w))})
			}
			raw, before = raw[n:], ""
			continue
		}
		w := raw[0]
		raw = raw[1:]
		if hint, ok := hints[w]; ok {
			q.want(wanted{term: stem(hint), kin: kin(stem(hint)), light: true})
		}
		if stop[w] {
			before = ""
			continue
		}
		q.want(wanted{term: stem(w), kin: kin(stem(w)), light: light[w] || w[0] <= '9'})
		if before != "" {
			q.want(wanted{term: stem(before + w), kin: kin(stem(before + w)), exact: true})
		}
		before = w
	}
	return q
}

// want adds a word, once.
func (q *asked) want(w wanted) {
	known := slices.ContainsFunc(q.words, func(have wanted) bool { return have.term == w.term })
	if !known && len(q.words) < maxAsked {
		q.words = append(q.words, w)
	}
}

// nameLike reports that a piece of a query has what names of tools have and words have not: a sign or a capital inside.
func nameLike(piece string) bool {
	for i, r := range piece {
		if i > 0 && i+1 < len(piece) && (strings.ContainsRune("_-.:/", r) || 'A' <= r && r <= 'Z') {
			return true
		}
	}
	return false
}
