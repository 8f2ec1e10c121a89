package facade

import "io"

// quotedSize is how many bytes text takes inside a JSON string.
func quotedSize(text []byte) int {
	n := len(text)
	for _, c := range text {
		if c < 0x20 || c == '"' || c == '\\' {
			n += len(escapeOf(c)) - 1
		}
	}
	return n
}

// writeQuoted writes text as the inside of a JSON string, in runs, so that no second copy of it is made.
func writeQuoted(w io.Writer, text []byte) error {
	start := 0
	var buffer [4 << 10]byte
	out := buffer[:0]
	flush := func() error {
		_, err := w.Write(out)
		out = buffer[:0]
		return err
	}
	for i, c := range text {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		for run := text[start:i]; len(run) > 0; {
			n := copy(out[len(out):cap(out)], run)
			out, run = out[:len(out)+n], run[n:]
			if len(run) > 0 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		start = i + 1
		escape := escapeOf(c)
		if len(out)+len(escape) > cap(out) {
			if err := flush(); err != nil {
				return err
			}
		}
		out = append(out, escape...)
	}
	if err := flush(); err != nil {
		return err
	}
	_, err := w.Write(text[start:])
	return err
}

// escapeOf is the escape of a byte that may not stand in a JSON string as it is.
func escapeOf(c byte) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	const hex = "0123456789abcdef"
	return string([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
}
