package process

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// masked stands where a secret stood.
const masked = "[masked]"

// Escape shows what a child wrote: one line of printable characters, everything else as in a Go string literal, cut
// to max bytes (an ellipsis tells so).
func Escape(s string, max int) string {
	cut := false
	if len(s) > max { // escaping only makes it longer
		s, cut = s[:max], true
	}
	quoted := strconv.Quote(s)
	quoted = quoted[1 : len(quoted)-1]
	quoted = strings.ReplaceAll(quoted, `\"`, `"`)
	if len(quoted) > max {
		quoted, cut = quoted[:max], true
		for len(quoted) > 0 && !utf8.ValidString(quoted) {
			quoted = quoted[:len(quoted)-1]
		}
	}
	if cut {
		quoted += "…"
	}
	return quoted
}

// mask replaces the secrets.
func mask(s string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, masked)
		}
	}
	return s
}
