package watch

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// Lines judges the lines of a log or an audit file.
type Lines struct {
	Book    *invariant.Book
	Secrets *Secrets
	JSON    bool   // records are JSON; else slog's text
	Where   string // what file it is, for reports
}

// Judge looks at one line.
func (l Lines) Judge(line string) {
	l.Book.Check(invariant.LogLines, nil, l.wrong(line))
	l.Secrets.Look(l.Where, []byte(line))
}

func (l Lines) wrong(line string) string {
	if at := control(line); at >= 0 {
		return fmt.Sprintf("%s: a line has the control character %q: %.300q", l.Where, line[at], line[max(0, at-100):])
	}
	if !l.JSON {
		return l.wrongText(line)
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(line), &record, jsontext.AllowDuplicateNames(true)); err != nil {
		return fmt.Sprintf("%s: a line is no record: %v: %.300q", l.Where, err, line)
	}
	if message, _ := record["msg"].(string); forged(message) {
		return fmt.Sprintf("%s: a record is forged: %.300q", l.Where, line)
	}
	return l.wrongValue("", record)
}

// wrongText is for a record as slog writes text: time, level and message, in this order and once, and then what belongs to it.
func (l Lines) wrongText(line string) string {
	attributes, err := parseText(line)
	if err == nil && (len(attributes) < 3 || attributes[0].name != "time" || attributes[1].name != "level" || attributes[2].name != "msg") {
		err = errors.New("it does not begin with time, level and msg")
	}
	if err != nil {
		return fmt.Sprintf("%s: a line is no record: %v: %.300q", l.Where, err, line)
	}
	for i, a := range attributes {
		if i == 2 && forged(a.value) || i > 2 && (a.name == "time" || a.name == "level" || a.name == "msg") {
			return fmt.Sprintf("%s: a record is forged: %.300q", l.Where, line)
		}
		if why := l.wrongValue(a.name, a.value); why != "" {
			return why
		}
	}
	return ""
}

// forged tells a message by the word that stands in each one that a peer of the harness forges.
func forged(message string) bool { return strings.Contains(message, "forged") }

// wrongValue looks at what a reader of the record sees once it is decoded. A stack is written by the pod itself and has lines.
func (l Lines) wrongValue(name string, value any) string {
	switch v := value.(type) {
	case string:
		if at := control(v); at >= 0 && name != "stack" && name != "stacks" && name != "tree" {
			return fmt.Sprintf("%s: the value of %q has a control character: %.300q", l.Where, name, v)
		}
	case map[string]any:
		for name, inner := range v {
			if why := l.wrongValue(name, inner); why != "" {
				return why
			}
		}
	case []any:
		for _, inner := range v {
			if why := l.wrongValue(name, inner); why != "" {
				return why
			}
		}
	}
	return ""
}

// control gives the place of the first character that moves a cursor, ends a line or turns the direction of text; -1 for none.
func control(text string) int {
	for at, r := range text {
		switch {
		case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029:
			return at
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0xfeff:
			return at
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(text[at:]); n == 1 {
				return at
			}
		}
	}
	return -1
}
