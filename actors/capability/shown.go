package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// longestName is the longest name that is shown, in bytes.
	longestName = 128
	// longestAsked is the longest name that is looked for: a server's, a dot, and the longest that a tool can publish.
	longestAsked = 1024
	// oddMark begins the shown form of a published name that cannot be shown as it is.
	oddMark = "x:"
	// sumMark stands between a cut name and the digest of the whole one. It is in no other shown form: behind a colon there stand two
	// hexadecimal digits.
	sumMark   = "::"
	sumDigits = 32
)

// shown is the form in which agents are shown a published name: at most 128 of [A-Za-z0-9_.:-]. A name that is such is its own form.
// Any other, and one that could be taken for the form of another, is "x:" and the name with each other byte, and each colon, as a colon
// and two hexadecimal digits; where that is too long, its beginning, "::" and 128 bits of the name's SHA-256. No two names have one form
// (as far as SHA-256 goes), so a desk's table leads back from each.
func shown(published string) string {
	if plainName(published) {
		return published
	}
	var b strings.Builder
	b.WriteString(oddMark)
	cut := 0 // where it may be cut
	for i := range len(published) {
		c := published[i]
		if b.Len() <= longestName-len(sumMark)-sumDigits {
			cut = b.Len()
		}
		if c != ':' && plainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte(':')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
	}
	if b.Len() <= longestName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(published))
	return b.String()[:cut] + sumMark + hex.EncodeToString(sum[:sumDigits/2])
}

// unshown reads a shown form back; false for one that was cut, which only a table can, and for one that is none.
func unshown(name string) (string, bool) {
	if plainName(name) {
		return name, true
	}
	rest, odd := strings.CutPrefix(name, oddMark)
	if !odd || len(name) > longestName || strings.Contains(rest, sumMark) {
		return "", false
	}
	out := make([]byte, 0, len(rest))
	for i := 0; i < len(rest); i++ {
		if rest[i] != ':' {
			out = append(out, rest[i])
			continue
		}
		if i+2 >= len(rest) {
			return "", false
		}
		c, err := hex.DecodeString(rest[i+1 : i+3])
		if err != nil {
			return "", false
		}
		out = append(out, c...)
		i += 2
	}
	return string(out), len(out) > 0 && shown(string(out)) == name
}

// plainName reports a published name that is shown as it is.
func plainName(s string) bool {
	if s == "" || len(s) > longestName || strings.HasPrefix(s, oddMark) {
		return false
	}
	for i := range len(s) {
		if !plainByte(s[i]) {
			return false
		}
	}
	return true
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == ':' || c == '-'
}
