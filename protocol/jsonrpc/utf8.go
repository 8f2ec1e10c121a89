package jsonrpc

import "unicode/utf8"

// ValidUTF8 replaces each byte of b that is no UTF-8 by U+FFFD and says how many
// there were. Without any, it returns b itself. A replacement has three bytes, so
// the result is up to three times as long: charge it before it is kept.
func ValidUTF8(b []byte) ([]byte, int) {
	if utf8.Valid(b) {
		return b, 0
	}
	bad := 0
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		rest = rest[n:]
	}
	out := make([]byte, 0, len(b)+2*bad)
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			out = append(out, "\uFFFD"...)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out, bad
}
