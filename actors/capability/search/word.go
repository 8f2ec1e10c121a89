package search

import (
	"math"
	"slices"
)

// worths is what one word is worth in each entry, 0 to 1, and the entries that have it.
type worths struct {
	worth []float32
	has   []bool
	who   []int32
}

func (w *worths) raise(e int32, to float32) {
	if !w.has[e] {
		w.has[e] = true
		w.who = append(w.who, e)
	}
	w.worth[e] = max(w.worth[e], to)
}

func (w *worths) clear() {
	for _, e := range w.who {
		w.worth[e], w.has[e] = 0, false
	}
	w.who = w.who[:0]
}

// word adds what one word of the query is worth to each entry: by itself, or by what may stand for it, whichever is
// more. A word that few have itself is rare, however many have its kin.
func (r *ranking) word(w wanted) {
	own, kin := &r.own, &r.kindred
	for _, l := range r.lists {
		r.enter(own, l, l.index.find(w.term), 1)
		for _, relative := range w.kin {
			r.enter(kin, l, l.index.kin(relative), r.kin)
		}
	}
	r.ofServers(w.term)
	if !w.exact {
		known := len(own.who)+len(kin.who) > 0
		if len(w.term) >= minPrefix || !known && len(w.term) >= minStarved {
			r.begun(w.term)
		}
		if len(own.who)+len(kin.who) == 0 && len(w.term) >= minTypo {
			r.misspelt(w.term)
		}
	}
	rare := r.rarity(len(own.who))
	for _, e := range own.who {
		kin.raise(e, 0)
	}
	common := r.rarity(len(kin.who)) // of whoever has either
	full := rare
	if len(own.who) == 0 {
		full = common
	}
	factor := float32(1)
	switch {
	case w.exact:
		factor = r.compound
	case w.light:
		factor = r.light
	}
	if !w.exact && len(kin.who) > 0 {
		r.total += factor * full
	}
	for _, e := range kin.who {
		r.scores[e] += factor * max(rare*own.worth[e], common*kin.worth[e])
		if !w.exact {
			r.share[e] += factor * full * min(1, r.enough*max(own.worth[e], kin.worth[e]))
		}
	}
	own.clear()
	kin.clear()
}

// rarity is what a word is worth that so many entries have.
func (r *ranking) rarity(have int) float32 {
	all, some := float64(len(r.entries)), float64(have)
	return float32(math.Log(1 + (all-some+0.5)/(some+0.5)))
}

// enter enters what a term is worth into the entries in which it stands.
func (r *ranking) enter(in *worths, l shown, list []posting, weight float32) {
	for i := range list {
		p := &list[i]
		e := l.first[p.doc]
		if e == 0 {
			continue // the catalog does not show that tool
		}
		tf := float32(0)
		sizes := &l.index.docs[p.doc].sizes
		for f, count := range p.count {
			if count > 0 {
				tf += r.field[f] * float32(count) / (1 - r.length[f] + r.length[f]*float32(sizes[f])/r.mean[f])
			}
		}
		worth := weight * tf / (tf + r.saturation)
		for ; e != 0; e = r.next[e-1] {
			in.raise(e-1, worth)
			r.steps++
		}
	}
}

// ofServers enters a term that is in a server's name into all entries of that server.
func (r *ranking) ofServers(term string) {
	for i := range r.servers {
		if !slices.Contains(r.servers[i].terms, term) {
			continue
		}
		for e, of := range r.server {
			if of == int32(i) {
				own := r.own.worth[e]
				r.own.raise(int32(e), own+(1-own)*r.weights.server)
			}
		}
	}
}

// begun enters the terms that a word is only the beginning of.
func (r *ranking) begun(word string) {
	limit := r.guess()
	for _, l := range r.lists {
		from, to := l.index.begin(word, maxPrefix)
		for i := from; i < to && r.steps < limit; i++ {
			if len(l.index.term(i)) > len(word) {
				r.enter(&r.kindred, l, l.index.at(i), r.prefix)
			}
		}
	}
	r.guessed(limit)
}

// misspelt enters the terms that are one letter off, for a word that nothing else answers.
func (r *ranking) misspelt(word string) {
	limit := r.guess()
	for _, l := range r.lists {
		for i := 0; i < len(l.index.ends) && r.steps < limit; i++ {
			if r.steps++; oneOff(word, l.index.term(i)) {
				r.enter(&r.kindred, l, l.index.at(i), r.typo)
			}
		}
	}
	r.guessed(limit)
}

// guess is up to which step this query may still guess; guessed says that it has.
func (r *ranking) guess() (limit int) { return r.steps + r.guesses }

func (r *ranking) guessed(limit int) { r.guesses = max(limit-r.steps, 0) }
