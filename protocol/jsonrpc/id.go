package jsonrpc

import (
	"strconv"
	"strings"
)

// MaxIDBytes is the longest id literal of a request, quotes included, so that an
// answer, at least an error, always fits the 4 KiB that are reserved for it. The
// longest that is seen in the field has a few dozen bytes. A longer one is not
// copied and not echoed.
const MaxIDBytes = 1024

// An ID is the id of a request: a string, an integer or null, kept as it came. The
// zero ID is that of a notification: absent. IDs are copies, so they keep no frame
// alive, and comparable, but 1 and "1", and two spellings of one string, differ;
// Key is what tables are keyed by.
type ID struct{ raw string }

// StringID is the id that is the string s.
func StringID(s string) ID { return ID{string(AppendString(nil, s))} }

// IntID is the id that is the integer n.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// NullID is the id null: that of an answer to a frame whose id is not known.
func NullID() ID { return ID{"null"} }

// ParseID takes an id literal: a JSON string, integer or null without space around
// it. It is how the ids in the params of a cancellation are read.
func ParseID(raw []byte) (ID, bool) {
	if len(raw) == 0 || len(raw) > MaxIDBytes {
		return ID{}, false
	}
	if IsNull(raw) || isInteger(raw) {
		return ID{string(raw)}, true
	}
	if raw[0] == '"' {
		if end, v := skipString(raw, 0); v == wellFormed && end == len(raw) {
			return ID{string(raw)}, true
		}
	}
	return ID{}, false
}

// Raw is the literal as it came; nil for an absent id.
func (id ID) Raw() []byte {
	if id.raw == "" {
		return nil
	}
	return []byte(id.raw)
}

// IsZero reports that there is no id.
func (id ID) IsZero() bool { return id.raw == "" }

// IsNull reports that the id is the literal null, which is an id all the same.
func (id ID) IsNull() bool { return id.raw == "null" }

// Key is equal for equal ids, however they were spelled, and never for a number and
// a string. It is not meant for eyes.
func (id ID) Key() string {
	switch {
	case id.raw == "-0":
		return "0"
	case id.raw != "" && id.raw[0] == '"':
		s, _ := String([]byte(id.raw))
		return `"` + s
	}
	return id.raw
}

// Int is the integer of an id of our own: a number, or a string that holds one,
// because some peers answer the number 7 with "7".
func (id ID) Int() (int64, bool) {
	if id.raw == "" {
		return 0, false
	}
	text := id.raw
	if text[0] == '"' {
		text = text[1 : len(text)-1]
		if strings.IndexByte(text, '\\') >= 0 {
			text, _ = String([]byte(id.raw))
		}
	}
	if len(text) > 20 { // the longest that fits
		return 0, false
	}
	var literal [20]byte
	return Int(literal[:copy(literal[:], text)])
}

// Append appends the literal; null for an absent id, because an answer needs one.
func (id ID) Append(dst []byte) []byte {
	if id.raw == "" {
		return append(dst, "null"...)
	}
	return append(dst, id.raw...)
}

// String is for messages: the literal, quoted again and cut, so that it stays on
// one line whatever a peer put into it.
func (id ID) String() string {
	if id.raw == "" {
		return "(none)"
	}
	return Show(id.raw)
}
