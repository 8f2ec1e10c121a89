package jsonrpc

import (
	"bytes"
	"testing"
)

// The scanner looks at 32 bytes, at 8 and at one: what ends a text is found at every place of each, and what looks almost
// like it is passed over.
func TestTheEndOfATextIsFoundWhereverItStands(t *testing.T) {
	plain := [][]byte{[]byte("a"), {0x20}, {0x21}, {0x23}, {0x5b}, {0x5d}, {0x7f}, {0x80}, {0x9f}, {0xa2}, {0xdc}, {0xff}}
	for _, filler := range plain {
		for at := range 100 {
			text := append([]byte{'"'}, bytes.Repeat(filler, at)...)
			behind := bytes.Repeat(filler, 50)
			if end, v := skipString(append(append(bytes.Clone(text), '"'), behind...), 0); v != wellFormed || end != at+2 {
				t.Fatalf("%q at %d: the quote is found at %d, %v", filler, at, end, v)
			}
			if end, v := skipString(append(append(bytes.Clone(text), `\"x\u0022"`...), behind...), 0); v != wellFormed || end != at+11 {
				t.Fatalf("%q at %d: behind escapes the quote is found at %d, %v", filler, at, end, v)
			}
			for _, control := range []byte{0, '\n', 0x1f} {
				if end, v := skipString(append(append(bytes.Clone(text), control), behind...), 0); v != malformed || end != at+1 {
					t.Fatalf("%q at %d: the control character is found at %d, %v", filler, at, end, v)
				}
			}
			if _, v := skipString(text, 0); v != malformed {
				t.Fatalf("%q at %d: a text without an end is taken", filler, at)
			}
		}
	}
}
