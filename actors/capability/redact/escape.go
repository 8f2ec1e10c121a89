package redact

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// decode reads the inside of a JSON string. A lone surrogate is U+FFFD; what is no escape stays as it is.
func decode(inside []byte) []byte {
	out := make([]byte, 0, len(inside))
	for i := 0; i < len(inside); {
		plain := bytes.IndexByte(inside[i:], '\\')
		if plain < 0 {
			return append(out, inside[i:]...)
		}
		out = append(out, inside[i:i+plain]...)
		i += plain
		r, n := escape(inside[i:])
		out = utf8.AppendRune(out, r)
		i += n
	}
	return out
}

// written finds where in the inside of a string the spans of its decoded text are written. A span that begins or ends within an escape has all of it.
func written(inside []byte, decoded []span) []span {
	out := make([]span, len(decoded))
	at, k, within := 0, 0, false // of the decoded text; of decoded; that from is found
	for i := 0; i < len(inside) && k < len(decoded); {
		width, n := 1, 1
		if inside[i] == '\\' {
			var r rune
			r, n = escape(inside[i:])
			width = utf8.RuneLen(r)
		}
		if !within && decoded[k].from < at+width {
			out[k].from, within = i, true
		}
		at += width
		i += n
		if within && decoded[k].to <= at {
			out[k].to, within = i, false
			k++
		}
	}
	return out[:k]
}

// escape reads the escape sequence that b begins with: what it means, and how long it is. What is none means its backslash.
func escape(b []byte) (rune, int) {
	if len(b) < 2 {
		return '\\', 1
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return '\\', 1
	}
	r, ok := hex4(b)
	if !ok {
		return '\\', 1
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[6:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return utf8.RuneError, 6
}

// hex4 reads \uXXXX.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 {
		return 0, false
	}
	for _, c := range b[2:6] {
		r <<= 4
		switch {
		case '0' <= c && c <= '9':
			r |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			r |= rune(c - 'a' + 10)
		case 'A' <= c && c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}
