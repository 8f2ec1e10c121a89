package jsonrpc

import (
	"errors"
	"iter"
)

// ErrNotArray says that a value that must be an array is none.
var ErrNotArray = errors.New("not a JSON array")

// Elements checks that b is one JSON array and yields the bytes of its elements in
// order. It keeps no list of them, so it costs nothing to walk a hostile one.
func Elements(b []byte) (iter.Seq2[int, []byte], error) {
	text, v := onlyValue(b)
	if v != wellFormed || text[0] != '[' {
		return nil, ErrNotArray
	}
	return func(yield func(int, []byte) bool) {
		i := skipSpace(text, 1)
		for n := 0; text[i] != ']'; n++ {
			end, _ := skipValue(text, i, 1) // checked above
			if !yield(n, text[i:end:end]) {
				return
			}
			if i = skipSpace(text, end); text[i] == ',' {
				i = skipSpace(text, i+1)
			}
		}
	}, nil
}
