package redact

import (
	"bytes"
	"slices"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Result masks what the rules match in the texts of a tools/call result, the object as the server wrote it: every string that is a value,
// wherever it stands, save for the data of an image or audio block and the blob of an embedded resource. A name of a member is none. What is not
// masked keeps its bytes; where nothing is, it is the same slice. Else it is a new one, never longer. What is not well-formed JSON is not
// touched: nobody can say where its texts are.
func (r *Rules) Result(raw []byte) []byte {
	if r == nil || len(r.rules) == 0 {
		return raw
	}
	out := raw
	for range rounds {
		next, done := r.once(out)
		if done {
			break
		}
		out = next
	}
	return out
}

// rounds is how often a result is gone over, when there was something to mask: a mask may end a word, so that a pattern matches that did not before.
const rounds = 4

// once is one round; done: nothing is left to mask.
func (r *Rules) once(raw []byte) (out []byte, done bool) {
	w := walk{rules: r, raw: raw}
	if !w.all() || len(w.cuts) == 0 {
		return raw, true
	}
	slices.SortFunc(w.cuts, func(a, b span) int { return a.from - b.from })
	out = make([]byte, 0, len(raw))
	at := 0
	for _, cut := range w.cuts {
		out = append(append(out, raw[at:cut.from]...), Mask...)
		at = cut.to
	}
	out = append(out, raw[at:]...)
	return out, bytes.Equal(out, raw)
}

// Where a value stands, as far as it matters.
type where uint8

const (
	elsewhere where = iota
	top             // the result itself
	blocks          // its content
	block           // one of them
	resource        // the resource in a block
)

// level is a container that is open.
type level struct {
	object bool
	at     where
	// data is the text of a block's member of that name, until its type is known; media says that the type is image or audio.
	data  span
	media bool
}

// deepest is how deep containers may stand in each other, as everywhere.
const deepest = jsonrpc.MaxDepth

// walk goes over a result once.
type walk struct {
	rules *Rules
	raw   []byte
	i     int
	open  []level
	cuts  []span // of raw
}

// all reports whether the result was walked to its end.
func (w *walk) all() bool {
	w.space()
	if w.i >= len(w.raw) || w.raw[w.i] != '{' {
		return false
	}
	var near [8]level
	w.open = near[:0]
	next := top // of a container that opens now
	name := span{}
	for {
		if w.space(); w.i >= len(w.raw) {
			return false
		}
		switch c := w.raw[w.i]; c {
		case '{', '[':
			if len(w.open) >= deepest {
				return false
			}
			w.open = append(w.open, level{object: c == '{', at: next})
			if w.i++; w.nextIs('}', c == '{') || w.nextIs(']', c == '[') {
				break // which is handled below
			}
			if !w.member(&name, &next) {
				return false
			}
			continue
		case '"':
			text, ok := w.text()
			if !ok {
				return false
			}
			w.see(name, text)
		default:
			if !w.word() {
				return false
			}
		}
		for { // behind a value
			if w.space(); w.i >= len(w.raw) {
				return false
			}
			l := &w.open[len(w.open)-1]
			if c := w.raw[w.i]; c == ',' {
				w.i++
				if !w.member(&name, &next) {
					return false
				}
				break
			} else if l.object && c != '}' || !l.object && c != ']' {
				return false
			}
			w.i++
			if l.data.to > 0 && !l.media {
				w.match(l.data)
			}
			if w.open = w.open[:len(w.open)-1]; len(w.open) == 0 {
				w.space()
				return w.i == len(w.raw)
			}
		}
	}
}

// nextIs reports whether an opened container of the kind closes at once; it stays at the bracket.
func (w *walk) nextIs(c byte, kind bool) bool {
	w.space()
	return kind && w.i < len(w.raw) && w.raw[w.i] == c
}

// member goes to the value that comes next in the innermost container, and says what it is called and where it stands.
func (w *walk) member(name *span, next *where) bool {
	l := &w.open[len(w.open)-1]
	*name, *next = span{}, elsewhere
	if !l.object {
		if l.at == blocks {
			*next = block
		}
		return true
	}
	if w.space(); w.i >= len(w.raw) || w.raw[w.i] != '"' {
		return false
	}
	text, ok := w.text()
	if !ok {
		return false
	}
	*name = text
	if w.space(); w.i >= len(w.raw) || w.raw[w.i] != ':' {
		return false
	}
	w.i++
	switch {
	case l.at == top && w.is(text, "content"):
		*next = blocks
	case l.at == block && w.is(text, "resource"):
		*next = resource
	}
	return true
}

// see judges the string that is the value of a member, or an element of an array.
func (w *walk) see(name, text span) {
	l := &w.open[len(w.open)-1]
	switch {
	case l.at == block && w.is(name, "data"):
		if l.data.to > 0 { // it stands twice: the last one counts for who reads it, and this one is a text like any other
			w.match(l.data)
		}
		l.data = text
		return
	case l.at == block && w.is(name, "type"):
		l.media = w.is(text, "image") || w.is(text, "audio")
	case l.at == resource && w.is(name, "blob"):
		return
	}
	w.match(text)
}

// is compares the inside of a string with a word.
func (w *walk) is(text span, word string) bool {
	if text.to == 0 {
		return false
	}
	inside := w.raw[text.from:text.to]
	if len(inside) == len(word) {
		return string(inside) == word
	}
	if len(inside) < len(word) || len(inside) > 6*len(word) || bytes.IndexByte(inside, '\\') < 0 {
		return false
	}
	decoded, _ := jsonrpc.String(w.raw[text.from-1 : text.to+1])
	return decoded == word
}

// text passes over the string at i and gives its inside.
func (w *walk) text() (span, bool) {
	from := w.i + 1
	for i := from; ; {
		quote := bytes.IndexByte(w.raw[i:], '"')
		if quote < 0 {
			return span{}, false
		}
		i += quote
		slashes := 0
		for i-slashes > from && w.raw[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			w.i = i + 1
			return span{from, i}, true
		}
		i++
	}
}

// word passes over a number or a literal.
func (w *walk) word() bool {
	from := w.i
	for w.i < len(w.raw) {
		switch w.raw[w.i] {
		case ' ', '\t', '\n', '\r', ',', ']', '}':
			return w.i > from
		case '"', '{', '[', ':':
			return false
		}
		w.i++
	}
	return false
}

func (w *walk) space() {
	for w.i < len(w.raw) {
		switch w.raw[w.i] {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return
		}
	}
}

// match notes what the rules match in the inside of a string.
func (w *walk) match(text span) {
	inside := w.raw[text.from:text.to]
	if bytes.IndexByte(inside, '\\') < 0 {
		for _, s := range w.rules.spans(inside) {
			w.cuts = append(w.cuts, span{text.from + s.from, text.from + s.to})
		}
		return
	}
	decoded := decode(inside)
	if found := w.rules.spans(decoded); len(found) > 0 {
		for _, s := range written(inside, found) {
			w.cuts = append(w.cuts, span{text.from + s.from, text.from + s.to})
		}
	}
}
