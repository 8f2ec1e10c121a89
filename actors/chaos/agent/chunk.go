package agent

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Chunk is the i-th of n chunks of a turn, i from 1: "[KEY i/n PAD]", padded to size bytes where it is shorter. Its bytes
// follow from its arguments, characters of several bytes among them, so that a reader can compare every one. A script
// with several rows of chunks numbers them as one row.
func Chunk(key string, i, n, size int) string {
	b := make([]byte, 0, max(size, 64))
	b = fmt.Appendf(b, "[%s %d/%d ", key, i, n)
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	rng := rand.New(rand.NewPCG(h.Sum64(), uint64(i)))
	for size-len(b) > 1 {
		if left := size - len(b) - 1; left >= 4 && rng.IntN(64) == 0 {
			b = append(b, wide[rng.IntN(len(wide))]...)
			continue
		}
		b = append(b, letters[rng.IntN(len(letters))])
	}
	return string(append(b, ']'))
}

const letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ\"\\\n\t"

var wide = []string{"é", "界", "𝄞", "\u202e"}

// Note is what an agent says of a call or a question: "[KEY =WORD VALUE]".
func Note(key, word, value string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == '[' || r == ']' {
			return '.'
		}
		return r
	}, value)
	return fmt.Sprintf("[%s =%s %s]", key, word, clean)
}

// Book reads the text of one turn, in whatever pieces it comes, and keeps account of it.
type Book struct {
	Key   string
	Size  int // of each chunk, as the script asked
	Count int // chunks that have come
	Total int // of how many, as the chunks say; 0 before the first
	Notes []string
	Fill  int // bytes of a flood or a filling

	// Gaps says that chunks may be missing: what a client has missed while it was away. Order and bytes count all the same.
	Gaps bool

	split Splitter
	last  int
	wrong []string
}

// maxWrong bounds what a book remembers of what is wrong.
const maxWrong = 8

// Wrong says what was not as it has to be; nothing when all was.
func (b *Book) Wrong() []string { return b.wrong }

func (b *Book) fault(format string, args ...any) {
	if len(b.wrong) < maxWrong {
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
}

// Read takes one more piece of the text.
func (b *Book) Read(text string) {
	for piece := range b.split.Pieces(text) {
		b.Piece(piece)
	}
}

// Splitter finds the pieces of a text, a chunk or a note each, however it was cut.
type Splitter struct{ rest string }

// Pieces gives what is whole, in order. What stands outside of brackets is a piece too, one that is none.
func (s *Splitter) Pieces(text string) iter.Seq[string] {
	text, s.rest = s.rest+text, ""
	return func(yield func(string) bool) {
		for text != "" {
			end := strings.IndexByte(text, ']') + 1
			switch {
			case text[0] != '[':
				end = len(text)
			case end == 0:
				s.rest = text
				return
			}
			piece := text[:end]
			text = text[end:]
			if !yield(piece) {
				s.rest = text
				return
			}
		}
	}
}

// Rest is the beginning of a piece whose end has not come.
func (s *Splitter) Rest() string { return s.rest }

// KeyOf is the key of the turn that a piece belongs to, "" when it is no piece.
func KeyOf(piece string) string {
	if piece == "" || piece[0] != '[' {
		return ""
	}
	key, _, _ := strings.Cut(piece[1:], " ")
	return key
}

// Piece takes one whole piece.
func (b *Book) Piece(piece string) {
	if piece[0] != '[' {
		b.fault("text outside of any chunk: %.80q", piece)
		return
	}
	b.one(piece)
}

func (b *Book) one(chunk string) {
	key, rest, _ := strings.Cut(chunk[1:len(chunk)-1], " ")
	if key != b.Key {
		b.fault("turn %q was told something of turn %q", b.Key, key)
		return
	}
	if note, ok := strings.CutPrefix(rest, "="); ok {
		b.Notes = append(b.Notes, note)
		return
	}
	if strings.HasPrefix(rest, "~ ") {
		b.Fill += len(chunk)
		return
	}
	place, _, _ := strings.Cut(rest, " ")
	at, of, ok := strings.Cut(place, "/")
	i, bad1 := strconv.Atoi(at)
	n, bad2 := strconv.Atoi(of)
	if !ok || bad1 != nil || bad2 != nil {
		b.fault("no chunk: %.80q", chunk)
		return
	}
	switch {
	case i <= b.last:
		b.fault("chunk %d of turn %q came after chunk %d", i, b.Key, b.last)
	case i != b.last+1 && !b.Gaps:
		b.fault("chunk %d of turn %q came after chunk %d: the ones between are lost", i, b.Key, b.last)
	}
	if want := Chunk(b.Key, i, n, b.Size); chunk != want {
		b.fault("chunk %d of turn %q has other bytes: %.80q, not %.80q", i, b.Key, chunk, want)
	}
	b.last, b.Total = max(b.last, i), n
	b.Count++
}

// Last is the number of the last chunk that came.
func (b *Book) Last() int { return b.last }

// End says that the turn was answered with its whole text: nothing may be missing behind, and nothing be cut.
func (b *Book) End(chunks int) {
	if b.split.Rest() != "" {
		b.fault("turn %q ended within a chunk: %.80q", b.Key, b.split.Rest())
	}
	if b.last != chunks {
		b.fault("turn %q was answered after chunk %d of %d", b.Key, b.last, chunks)
	}
	if b.Count != chunks && !b.Gaps {
		b.fault("turn %q brought %d of %d chunks", b.Key, b.Count, chunks)
	}
}

// Filled says how many bytes of filling the turn had to bring at least; a flood may have brought more.
func (b *Book) Filled(bytes int) {
	if b.Fill < bytes {
		b.fault("turn %q brought %d of %d bytes of filling", b.Key, b.Fill, bytes)
	}
}
