package jsonrpc

import (
	"encoding/binary"
	"math/bits"
)

// skipString returns the index behind the string literal that opens at b[i]. Any
// byte from 0x20 up may stand in it, so that what is not UTF-8 is carried, and an
// escaped surrogate need not have its other half. Payloads are mostly long runs of
// plain text or base64, so 32 bytes are looked at in one step, and then 8.
func skipString(b []byte, i int) (int, verdict) {
	i++
	for {
		for i+32 <= len(b) {
			run := b[i : i+32 : i+32]
			if (ends(binary.LittleEndian.Uint64(run))|ends(binary.LittleEndian.Uint64(run[8:]))|
				ends(binary.LittleEndian.Uint64(run[16:]))|ends(binary.LittleEndian.Uint64(run[24:])))&highBits != 0 {
				break
			}
			i += 32
		}
		for i+8 <= len(b) {
			if hit := ends(binary.LittleEndian.Uint64(b[i:])) & highBits; hit != 0 {
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

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

// ends has a byte's high bit set where the byte of w is a quote, a backslash or below
// 0x20. Borrows travel upwards only, so the lowest hit is always a true one; the other
// bits mean nothing.
func ends(w uint64) uint64 {
	quote, slash := w^eachByte*'"', w^eachByte*'\\'
	return ((quote - eachByte) | (slash - eachByte) | (w - eachByte*0x20)) &^ w
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
