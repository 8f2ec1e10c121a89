package redact

import "strings"

// names are what credentials are called, in lower case. A name counts where it begins a word, or a part of one: behind _ or -, or with a capital
// behind a small letter. So access_token, client-secret and clientSecret need no entry of their own, and tokenizer is not one.
var names = []string{"apikey", "api_key", "api-key", "access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey",
	"password", "passwd", "passphrase", "pwd", "secret", "token"}

// whole are names of fields whose whole value is a credential, spaces and all.
var whole = []string{"authorization", "bearer", "cookie"}

// near is how many spaces may stand on either side of the sign.
const near = 8

// fields masks the value of each field with such a name.
func fields(s string) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '=' && s[i] != ':' {
			continue
		}
		all, ok := named(s[done:i])
		if !ok {
			continue
		}
		from, to := value(s, i, all)
		if to > from {
			out.WriteString(s[done:from])
			out.WriteString(Mask)
			done = to
		}
		i = max(i, to-1)
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// named reports that a text ends with the name of a credential, quoted or not, and whether all of its field is one.
func named(before string) (all, ok bool) {
	for n := 0; n < near && strings.HasSuffix(before, " "); n++ {
		before = before[:len(before)-1]
	}
	for n := 0; n < 2; n++ { // \" is a quote within a quoted text
		if n := len(before); n > 0 && (before[n-1] == '"' || before[n-1] == '\'' || before[n-1] == '`' || before[n-1] == '\\') {
			before = before[:n-1]
		}
	}
	for _, name := range whole {
		if endsWord(before, name) {
			return true, true
		}
	}
	for _, name := range names {
		if endsWord(before, name) {
			return false, true
		}
	}
	return false, false
}

func endsWord(s, name string) bool {
	at := len(s) - len(name)
	if at < 0 || !equalFold(s[at:], name) {
		return false
	}
	if at == 0 {
		return true
	}
	switch before := s[at-1]; {
	case 'a' <= before && before <= 'z':
		return 'A' <= s[at] && s[at] <= 'Z' // clientSecret
	case 'A' <= before && before <= 'Z', '0' <= before && before <= '9', before >= 0x80:
		return false
	}
	return true
}

// value is where the value behind the sign at i stands; empty when there is none on its line.
func value(s string, i int, all bool) (from, to int) {
	for i < len(s) && (s[i] == '=' || s[i] == ':' || s[i] == '>') {
		i++
	}
	for n := 0; n < near && i < len(s) && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	if i >= len(s) {
		return i, i
	}
	quote := i
	if s[i] == '\\' && i+1 < len(s) {
		quote++
	}
	switch c := s[quote]; {
	case c == '"' || c == '\'' || c == '`':
		return quote + 1, closing(s, quote+1, c, quote > i)
	case all:
		return i, fieldEnd(s, i)
	}
	to = i
	if s[i] == '{' || s[i] == '[' {
		to = bracketEnd(s, i)
	}
	for to < len(s) && !strings.ContainsRune(" \t\r\n,;&\"'`)]}<>\\", rune(s[to])) {
		to++
	}
	return i, to
}

// closing is where the quote that ends a text stands. In a text that is quoted as a whole the quotes inside are escaped.
func closing(s string, i int, quote byte, escaped bool) int {
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escaped && i+1 < len(s) && s[i+1] == quote:
			return i
		case s[i] == '\\':
			i++
		case s[i] == quote:
			return i
		}
	}
	return len(s)
}

// fieldEnd is where the field ends in which a whole value stands: with its line, or with the quote that closes what it stands in. A quote behind = opens a
// part of it.
func fieldEnd(s string, i int) int {
	for start := i; i < len(s); i++ {
		switch c := s[i]; c {
		case '\r', '\n':
			return i
		case '"', '\'', '`':
			if i == start || s[i-1] != '=' {
				if s[i-1] == '\\' && i-1 > start {
					return i - 1
				}
				return i
			}
			i = min(closing(s, i+1, c, false), len(s)-1)
		}
	}
	return len(s)
}

// bracketEnd is behind the bracket that closes the one at i, or the end of the line.
func bracketEnd(s string, i int) int {
	level := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			level++
		case '}', ']':
			if level--; level == 0 {
				return i + 1
			}
		case '"':
			i = min(closing(s, i+1, '"', false), len(s)-1)
		case '\n':
			return i
		}
	}
	return len(s)
}
