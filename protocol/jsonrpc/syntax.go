package jsonrpc

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
