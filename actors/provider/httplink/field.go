package httplink

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether s can be the value of a header: no line break, no NUL, no other control character but the tab.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isVisible reports whether s is a session id as the protocol allows it: visible ASCII, and not endless.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxIDBytes
}

// maxIDBytes bounds what a server has us repeat to it: its session id and the id of an event.
const maxIDBytes = 1024

const base64Begin, base64End = "=?base64?", "?="

// fieldOf writes a text of a message into a header as the era without a handshake has it: as it is when it is ASCII
// without control characters and without space around it, else in base64; so is what only looks like that.
func fieldOf(s string) string {
	plain := s == strings.Trim(s, " ") && !(strings.HasPrefix(s, base64Begin) && strings.HasSuffix(s, base64End))
	for i := 0; plain && i < len(s); i++ {
		plain = ' ' <= s[i] && s[i] <= '~'
	}
	if plain {
		return s
	}
	return base64Begin + base64.StdEncoding.EncodeToString([]byte(s)) + base64End
}

// port is that of an address, also where it is not written.
func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func sameHost(a, b *url.URL) bool { return strings.EqualFold(a.Hostname(), b.Hostname()) }
