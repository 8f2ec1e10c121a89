package redact

import (
	"bytes"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// need is what a text has to contain for a pattern to match in it. It is found from the pattern and looked for many times faster than the
// pattern itself, so that a result without secrets costs next to nothing.
type need struct {
	// literal stands in every match, as it is; or, when fold, in any case of its ASCII letters, and it is in lower case then.
	literal []byte
	fold    bool
	// run bytes in a row of set stand in every match; 0 = unknown.
	run int
	set *[256]bool
}

// needOf is the strongest that is known of a simplified pattern.
func needOf(t *syntax.Regexp) need {
	var n need
	n.consider(t)
	if r := runOf(t); r.n > 1 && r.size() <= mostSet {
		n.run, n.set = r.n, &r.set
	}
	return n
}

// consider takes the longest literal that stands in every match.
func (n *need) consider(t *syntax.Regexp) {
	switch t.Op {
	case syntax.OpLiteral:
		if t.Flags&syntax.FoldCase == 0 {
			if literal := []byte(string(t.Rune)); len(literal) > len(n.literal) {
				n.literal, n.fold = literal, false
			}
			return
		}
		if literal, ok := folded(t.Rune); ok && len(literal) > len(n.literal) {
			n.literal, n.fold = literal, true
		}
	case syntax.OpCapture, syntax.OpPlus:
		n.consider(t.Sub[0])
	case syntax.OpRepeat:
		if t.Min > 0 {
			n.consider(t.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range t.Sub {
			n.consider(sub)
		}
	}
}

// folded is a literal of ASCII in lower case.
func folded(literal []rune) (lowered []byte, ok bool) {
	for _, r := range literal {
		if r >= utf8.RuneSelf {
			if r = unicode.SimpleFold(r); r >= utf8.RuneSelf {
				return nil, false
			}
		}
		lowered = append(lowered, lower(byte(r)))
	}
	return lowered, true
}

// in reports that a text may hold a match.
func (n need) in(text []byte) bool {
	if len(n.literal) > 0 && !contains(text, n.literal, n.fold) && !(n.fold && (bytes.Contains(text, longS) || bytes.Contains(text, kelvin))) {
		return false
	}
	return n.run == 0 || hasRun(text, n.set, n.run)
}

// The two characters that are no ASCII and that a letter of ASCII is in another case.
var longS, kelvin = []byte("\u017f"), []byte("\u212a")

// contains looks for a literal by the one of its characters that is rarest in most texts. fold: it is in lower case, and the case of ASCII
// does not matter.
func contains(text, literal []byte, fold bool) bool {
	at := rarest(literal)
	small := literal[at]
	capital := small
	if fold && 'a' <= small && small <= 'z' {
		capital -= 'a' - 'A'
	}
	// Where each of the two comes next; len(text) when nowhere.
	next := func(c byte, from int) int {
		if i := bytes.IndexByte(text[from:], c); i >= 0 {
			return from + i
		}
		return len(text)
	}
	i, j := next(small, 0), len(text)
	if capital != small {
		j = next(capital, 0)
	}
	for {
		hit := min(i, j)
		if hit == len(text) {
			return false
		}
		if from := hit - at; from >= 0 && from+len(literal) <= len(text) && equal(text[from:from+len(literal)], literal, fold) {
			return true
		}
		if hit == i {
			i = next(small, hit+1)
		} else {
			j = next(capital, hit+1)
		}
	}
}

// rarest is where in a literal its rarest character stands: one that is no small letter, else by how often letters are used.
func rarest(literal []byte) (at int) {
	const often = "etaoinshrdlucmfwygpbvkxqjz"
	most := -1
	for i, c := range literal {
		if rank := bytes.IndexByte([]byte(often), c); rank < 0 {
			return i
		} else if rank > most {
			at, most = i, rank
		}
	}
	return at
}

func equal(a, b []byte, fold bool) bool {
	if !fold {
		return bytes.Equal(a, b)
	}
	for i := range b {
		if lower(a[i]) != b[i] {
			return false
		}
	}
	return true
}

// hasRun looks for n bytes in a row of a set: at every n-th byte first, as a run cannot hide between two of them.
func hasRun(text []byte, set *[256]bool, n int) bool {
	for i := n - 1; i < len(text); {
		if !set[text[i]] {
			i += n
			continue
		}
		start, end := i, i+1
		for start > 0 && end-start < n && set[text[start-1]] {
			start--
		}
		for end < len(text) && end-start < n && set[text[end]] {
			end++
		}
		if end-start >= n {
			return true
		}
		i = end + n
	}
	return false
}

// run is a row of bytes of which each is in set.
type run struct {
	n   int
	set [256]bool
}

// mostSet is how much of ASCII a set may have to be worth looking for.
const mostSet = 100

// size is how much of ASCII is in the set.
func (r run) size() (n int) {
	for _, in := range r.set[:utf8.RuneSelf] {
		if in {
			n++
		}
	}
	return n
}

// mostRun is how long a run is looked for; more tells little more.
const mostRun = 64

// runOf is the longest row of bytes that stands in every match and of whose bytes something is known.
func runOf(t *syntax.Regexp) run {
	switch t.Op {
	case syntax.OpConcat:
		var best, now run
		for _, sub := range t.Sub {
			r, all := rowOf(sub)
			if !all { // whatever stands here ends the row before and behind it
				if now.n > best.n {
					best = now
				}
				if inner := runOf(sub); inner.n > best.n {
					best = inner
				}
				now = run{}
				continue
			}
			now.n = min(now.n+r.n, mostRun)
			for b, in := range r.set {
				now.set[b] = now.set[b] || in
			}
		}
		if now.n > best.n {
			best = now
		}
		return best
	case syntax.OpCapture:
		return runOf(t.Sub[0])
	case syntax.OpPlus:
		if r, all := rowOf(t); all {
			return r
		}
		return runOf(t.Sub[0])
	}
	if r, all := rowOf(t); all {
		return r
	}
	return run{}
}

// add puts a character into the set: of one that is no ASCII, whatever bytes such characters have.
func (r *run) add(c rune) {
	if c < utf8.RuneSelf {
		r.set[c] = true
		return
	}
	for b := utf8.RuneSelf; b < 256; b++ {
		r.set[b] = true
	}
}

// rowOf is what a part of a pattern matches as a row of bytes of which the least length is known; false when nothing is known of it.
func rowOf(t *syntax.Regexp) (r run, all bool) {
	switch t.Op {
	case syntax.OpLiteral:
		for _, c := range t.Rune {
			r.add(c)
			if t.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
					r.add(f)
				}
			}
		}
		r.n = len(t.Rune)
		return r, true
	case syntax.OpCharClass:
		for i := 0; i < len(t.Rune); i += 2 {
			for c := t.Rune[i]; c <= min(t.Rune[i+1], utf8.RuneSelf); c++ { // the first that is no ASCII stands for all
				r.add(c)
			}
			if t.Rune[i] > utf8.RuneSelf {
				r.add(t.Rune[i])
			}
		}
		r.n = 1
		return r, true
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return run{}, true
	case syntax.OpCapture:
		return rowOf(t.Sub[0])
	case syntax.OpQuest, syntax.OpStar:
		if r, all = rowOf(t.Sub[0]); all {
			r.n = 0
		}
		return r, all
	case syntax.OpPlus:
		return rowOf(t.Sub[0])
	case syntax.OpConcat:
		for _, sub := range t.Sub {
			part, ok := rowOf(sub)
			if !ok {
				return run{}, false
			}
			r.n = min(r.n+part.n, mostRun)
			for b, in := range part.set {
				r.set[b] = r.set[b] || in
			}
		}
		return r, true
	case syntax.OpAlternate:
		for i, sub := range t.Sub {
			part, ok := rowOf(sub)
			if !ok {
				return run{}, false
			}
			if i == 0 || part.n < r.n {
				r.n = part.n
			}
			for b, in := range part.set {
				r.set[b] = r.set[b] || in
			}
		}
		return r, true
	}
	return run{}, false
}
