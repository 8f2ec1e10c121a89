package mcpjson

import "bytes"

// byteOrderMark is what some editors put before a text.
var byteOrderMark = []byte("\xef\xbb\xbf")

// plainJSON makes JSON of JSON with comments and trailing commas. Each byte that goes becomes a space, and line ends stay, so that what
// stands at an offset still stands there. open is where a comment begins that never ends, -1 when all do.
func plainJSON(text []byte) (plain []byte, open int) {
	plain = bytes.Clone(text)
	at := 0
	if bytes.HasPrefix(plain, byteOrderMark) {
		blank(plain[:len(byteOrderMark)])
		at = len(byteOrderMark)
	}
	comma := -1 // the last thing that was no space and no comment, when it was a comma
	for at < len(plain) {
		switch c := plain[at]; {
		case c == '"':
			at, comma = stringEnd(plain, at), -1
		case c == '/' && at+1 < len(plain) && (plain[at+1] == '/' || plain[at+1] == '*'):
			end := commentEnd(plain, at)
			if end < 0 {
				return plain, at
			}
			blank(plain[at:end])
			at = end
		case c == ',':
			comma = at
			at++
		case c == '}' || c == ']':
			if comma >= 0 && precedesMember(plain, comma) {
				plain[comma] = ' '
			}
			comma = -1
			at++
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
		default:
			comma = -1
			at++
		}
	}
	return plain, -1
}

// precedesMember tells a trailing comma from one with nothing before it: "[,]" is a mistake in every dialect.
func precedesMember(plain []byte, comma int) bool {
	before := bytes.TrimRight(plain[:comma], " \t\r\n")
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	return last != '[' && last != '{' && last != ',' && last != ':'
}

// stringEnd is behind the string that begins at from, or the end of the text.
func stringEnd(text []byte, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// commentEnd is behind the comment that begins at from, its line end not counted; -1 when it never ends.
func commentEnd(text []byte, from int) int {
	if text[from+1] == '/' {
		if n := bytes.IndexAny(text[from:], "\r\n"); n >= 0 {
			return from + n
		}
		return len(text)
	}
	if n := bytes.Index(text[from+2:], []byte("*/")); n >= 0 {
		return from + 2 + n + 2
	}
	return -1
}

// blank makes spaces of everything but line ends.
func blank(b []byte) {
	for i, c := range b {
		if c != '\n' && c != '\r' {
			b[i] = ' '
		}
	}
}
