package kernel

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// AttrChars is the most that the tree shows of a string.
const AttrChars = 64

// Escape shows text that a peer wrote: control characters, line ends, escape sequences and what is not UTF-8 become backslash
// sequences, and what is longer than max characters is cut with an ellipsis. The result is one line.
func Escape(s string, max int) string {
	if len(s) > 4*max {
		s = s[:min(len(s), 4*max+utf8.UTFMax)] // enough for the first max characters, whatever they are
	}
	q := strconv.Quote(s)
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	if utf8.RuneCountInString(q) <= max {
		return q
	}
	n := 0
	for i := range q {
		if n == max-1 {
			return q[:i] + "…"
		}
		n++
	}
	return q
}
