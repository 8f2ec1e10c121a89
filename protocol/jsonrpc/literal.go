package jsonrpc

import (
	"encoding/binary"
	"math/bits"
)

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
