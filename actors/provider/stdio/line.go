package stdio

import "bytes"

// oneLine is a part of a message without line breaks, which in JSON stand between tokens only: a space means the same there and has the
// same length. A part without any is not copied.
func oneLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.Clone(b)
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}
