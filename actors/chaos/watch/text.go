package watch

import (
	"fmt"
	"strconv"
	"strings"
)

// attribute is one name=value of a record that slog has written as text, unquoted.
type attribute struct{ name, value string }

// parseText reads a record that slog has written as text. What its reader takes for a value is one that stands between quotes, or a word.
func parseText(line string) (attributes []attribute, err error) {
	for rest := line; ; {
		var a attribute
		if a.name, rest, err = word(rest, '='); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(rest, "=") {
			return nil, fmt.Errorf("%.100q has no value", a.name)
		}
		if a.value, rest, err = word(rest[1:], ' '); err != nil {
			return nil, err
		}
		attributes = append(attributes, a)
		if rest == "" {
			return attributes, nil
		}
		if rest = rest[1:]; rest == "" {
			return nil, fmt.Errorf("it ends behind a space")
		}
	}
}

// word takes what stands between quotes, or up to the end, or to the delimiter, which stays. One without quotes has no quote, space or
// equals sign in it: slog quotes what has one.
func word(text string, delimiter byte) (word, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("%.100q begins with a quote and has no other", text)
		}
		rest = text[len(quoted):]
		if rest != "" && rest[0] != delimiter {
			return "", "", fmt.Errorf("%.100q stands right behind a quote", rest)
		}
		word, err = strconv.Unquote(quoted)
		return word, rest, err
	}
	end := strings.IndexByte(text, delimiter)
	if end < 0 {
		end = len(text)
	}
	if strings.ContainsAny(text[:end], `"= `) {
		return "", "", fmt.Errorf("%.100q is no word", text[:end])
	}
	return text[:end], text[end:], nil
}
