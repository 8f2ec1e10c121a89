package httplink

import "strings"

// maxScope bounds the scope that is told to an operator, in bytes.
const maxScope = 256

// scopeOf finds the scope that a server asks for in its WWW-Authenticate headers (RFC 6750, 3), "" when it names none that is one.
// Nothing else of them is kept: they may name addresses.
func scopeOf(challenges []string) string {
	for _, c := range challenges {
		if len(c) > maxHeaderBytes {
			continue
		}
		if scope := parameter(c, "scope"); scope != "" && len(scope) <= maxScope && isScope(scope) {
			return scope
		}
	}
	return ""
}

// isScope: tokens of visible ASCII without quotes and backslashes, with single spaces between them (RFC 6749, 3.3).
func isScope(s string) bool {
	for _, token := range strings.Split(s, " ") {
		if token == "" {
			return false
		}
		for i := range len(token) {
			if c := token[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
				return false
			}
		}
	}
	return true
}

// parameter finds name=value or name="value" in a list of challenges; what stands in other quotes is no name.
func parameter(s, name string) string {
	for s != "" {
		s = strings.TrimLeft(s, " \t,")
		end := strings.IndexAny(s, "= \t,")
		if end < 0 {
			return ""
		}
		word, rest := s[:end], s[end:]
		if rest[0] != '=' {
			s = rest // a scheme, or a parameter's name with space behind it, which nobody writes
			continue
		}
		value, after := valueOf(rest[1:])
		if strings.EqualFold(word, name) {
			return value
		}
		s = after
	}
	return ""
}

// valueOf is the token or quoted string at the beginning of s, and what follows it.
func valueOf(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		if end := strings.IndexAny(s, " \t,"); end >= 0 {
			return s[:end], s[end:]
		}
		return s, ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:]
		case '\\':
			if i++; i == len(s) {
				return "", ""
			}
		}
		b.WriteByte(s[i])
	}
	return "", "" // never closed
}
