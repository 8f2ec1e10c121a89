package ledger

import (
	"strconv"
	"strings"
	"sync"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// Turn is what a client has seen of one turn whose agent numbers its chunks: each carries `<nonce:i/n>`. Chunks may come joined.
type Turn struct {
	book  *invariant.Book
	nonce string
	place string

	mu   sync.Mutex
	rest string // the end of the text, which may be half of a mark
	last int
	of   int
	over bool
}

// NewTurn begins the ledger of one turn; place is the session's name in the tree.
func NewTurn(book *invariant.Book, nonce, place string) *Turn {
	return &Turn{book: book, nonce: nonce, place: place}
}

// Chunk enters a chunk's text and reports whether it belonged to this turn.
func (t *Turn) Chunk(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = t.rest + text
	t.rest = ""
	mine := false
	for {
		at := strings.Index(text, "<"+t.nonce+":")
		if at < 0 {
			t.rest = text[max(0, len(text)-len(t.nonce)-2):]
			if at := strings.LastIndexByte(t.rest, '<'); at >= 0 {
				t.rest = t.rest[at:]
			} else {
				t.rest = ""
			}
			return mine
		}
		mark, after, whole := strings.Cut(text[at:], ">")
		if !whole {
			t.rest = text[at:]
			return true
		}
		mine = true
		t.mark(strings.TrimPrefix(mark, "<"+t.nonce+":"))
		text = after
	}
}

func (t *Turn) mark(mark string) {
	number, of, counted := strings.Cut(mark, "/")
	i, err := strconv.Atoi(number)
	if !counted || err != nil {
		return // what the agent says of a call
	}
	t.of, _ = strconv.Atoi(of)
	switch {
	case t.over:
		t.book.Break(invariant.LastChunk, []string{t.place}, "chunk %d of turn %s came after its end", i, t.nonce)
	case i != t.last+1:
		t.book.Break(invariant.LastChunk, []string{t.place}, "chunk %d of turn %s came after chunk %d", i, t.nonce, t.last)
	default:
		t.book.Exercise(invariant.LastChunk)
	}
	t.last = i
}

// End enters the turn's answer. With whole, all chunks of the n that were ordered must have come before.
func (t *Turn) End(whole bool, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	switch {
	case whole && t.last != n:
		t.book.Break(invariant.LastChunk, []string{t.place}, "turn %s ended with end_turn after chunk %d of %d", t.nonce, t.last, n)
	case whole:
		t.book.Exercise(invariant.LastChunk)
	}
}
