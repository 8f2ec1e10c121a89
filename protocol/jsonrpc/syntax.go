package jsonrpc

import (
	"encoding/binary"
	"math/bits"
)

// MaxDepth is how many arrays and objects may stand in each other; a frame that
// nests deeper is no JSON text to us (-32700).
const MaxDepth = 10_000

// A verdict is what the syntax pass says of a piece of text.
type verdict uint8

const (
	wellFormed verdict = iota
	malformed
	tooDeep
)

// skipSpace returns the index of the first byte at or after i that is no JSON
// white space; len(b) when there is none.
func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// skipValue returns the index behind the JSON value that starts at b[i], which
// stands depth levels deep. It checks syntax only.
func skipValue(b []byte, i, depth int) (int, verdict) {
	if i >= len(b) {
		return i, malformed
	}
	switch b[i] {
	case '{', '[':
		return skipContainer(b, i, depth)
	default:
		return skipScalar(b, i)
	}
}

// skipScalar is skipValue for everything that is neither array nor object.
func skipScalar(b []byte, i int) (int, verdict) {
	if i >= len(b) {
		return i, malformed
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '-' || '0' <= c && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}
	return i, malformed
}

func skipLiteral(b []byte, i int, word string) (int, verdict) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, malformed
	}
	return i + len(word), wellFormed
}

// A walk is where skipContainer stands in the grammar.
type walk uint8

const (
	opening walk = iota // at the bracket that opens a container
	element             // at the first byte of a name or value
	behind              // behind a value
	closing             // at the bracket that closes a container
)

// skipContainer walks an array or object without recursion: one bit a level says
// which of the two it is, 64 of them in a word and the rest, which honest frames
// never need, in 1.25 KiB at most.
func skipContainer(b []byte, i, depth int) (int, verdict) {
	var objects levels
	level, inObject, at := 0, false, opening
	for {
		if i >= len(b) {
			return i, malformed
		}
		switch at {
		case opening:
			if depth+level >= MaxDepth {
				return i, tooDeep
			}
			inObject = b[i] == '{'
			objects.set(level, inObject)
			level++
			i = skipSpace(b, i+1)
			at = element
			if i < len(b) && b[i] == closer(inObject) {
				at = closing
			}
		case element:
			var v verdict
			if inObject {
				if _, i, v = skipName(b, i); v != wellFormed {
					return i, v
				}
			}
			if i < len(b) && (b[i] == '{' || b[i] == '[') {
				at = opening
				continue
			}
			if i, v = skipScalar(b, i); v != wellFormed {
				return i, v
			}
			at = behind
		case behind:
			i = skipSpace(b, i)
			switch {
			case i >= len(b):
				return i, malformed
			case b[i] == ',':
				i = skipSpace(b, i+1)
				at = element
			case b[i] == closer(inObject):
				at = closing
			default:
				return i, malformed
			}
		case closing:
			i++
			level--
			if level == 0 {
				return i, wellFormed
			}
			inObject = objects.get(level - 1)
			at = behind
		}
	}
}

// levels is a set of bits, one for each level of nesting.
type levels struct {
	near uint64
	far  []uint64
}

func (l *levels) set(level int, on bool) {
	word := &l.near
	if level >= 64 {
		if l.far == nil {
			l.far = make([]uint64, MaxDepth/64)
		}
		word = &l.far[level/64-1]
	}
	if bit := uint64(1) << (level % 64); on {
		*word |= bit
	} else {
		*word &^= bit
	}
}

func (l *levels) get(level int) bool {
	word := l.near
	if level >= 64 {
		word = l.far[level/64-1]
	}
	return word&(1<<(level%64)) != 0
}

func closer(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

// skipName reads a member's name, its colon and the space around it; it returns
// the index behind the name's closing quote and that of the first byte of the value.
func skipName(b []byte, i int) (nameEnd, value int, v verdict) {
	if i >= len(b) || b[i] != '"' {
		return i, i, malformed
	}
	if nameEnd, v = skipString(b, i); v != wellFormed {
		return nameEnd, nameEnd, v
	}
	i = skipSpace(b, nameEnd)
	if i >= len(b) || b[i] != ':' {
		return nameEnd, i, malformed
	}
	return nameEnd, skipSpace(b, i+1), wellFormed
}

// skipString returns the index behind the string literal that opens at b[i]. Any
// byte from 0x20 up may stand in it, so that what is not UTF-8 is carried, and an
// escaped surrogate need not have its other half. Eight bytes are looked at in one
// step: payloads are mostly long runs of plain text or base64.
func skipString(b []byte, i int) (int, verdict) {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i++
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote := w ^ ones*'"'
			slash := w ^ ones*'\\'
			// A byte's high bit is set where it is a quote, a backslash or below 0x20.
			// Borrows travel upwards only, so the lowest hit is always a true one.
			hit := ((quote - ones) &^ quote) | ((slash - ones) &^ slash) | ((w - ones*0x20) &^ w)
			if hit &= highs; hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, malformed
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, wellFormed
		case c < 0x20:
			return i, malformed
		case c == '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, malformed
			}
			i += n
		default:
			i++
		}
	}
}

// escapeLen is the length of the escape sequence at b[i], 0 when it is none.
func escapeLen(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if i+6 > len(b) {
			return 0
		}
		for _, c := range b[i+2 : i+6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// skipNumber returns the index behind the number that starts at b[i].
func skipNumber(b []byte, i int) (int, verdict) {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, malformed
	case b[i] == '0':
		i++
	case '1' <= b[i] && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return i, malformed
	}
	if i < len(b) && b[i] == '.' {
		start := i + 1
		if i = skipDigits(b, start); i == start {
			return i, malformed
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = skipDigits(b, start); i == start {
			return i, malformed
		}
	}
	return i, wellFormed
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}
