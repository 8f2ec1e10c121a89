package jsonrpc

import "strconv"

// ShownRunes is how much of a text that a peer wrote is shown to people.
const ShownRunes = 64

// Show quotes what a peer wrote for a message of ours: one line, ASCII, at most
// ShownRunes characters of it and then three dots.
func Show(s string) string {
	n := 0
	for i := range s {
		if n == ShownRunes {
			return strconv.QuoteToASCII(s[:i]) + "..."
		}
		n++
	}
	return strconv.QuoteToASCII(s)
}
