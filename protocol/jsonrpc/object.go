package jsonrpc

import (
	"errors"
	"fmt"
	"iter"
)

// ErrNotObject says that a value that must be an object is none.
var ErrNotObject = errors.New("not a JSON object")

// A DuplicateError says that a member which we interpret stands twice, so that two
// readers could see two different values.
type DuplicateError struct{ Name string }

func (e *DuplicateError) Error() string { return "the member " + Show(e.Name) + " stands twice" }

// An Object is a view of one JSON object: where its members are, in their order,
// with nothing decoded. The zero Object is an object without members. Names that
// differ in their escapes only are one name.
type Object struct {
	text    []byte // from { to }
	members []member
}

// A member lies in text[from:to], white space included up to the comma or bracket
// on either side. Offsets are 32 bits wide: a text of many tiny members may have
// millions.
type member struct{ from, name, nameEnd, value, end, to uint32 }

// ParseObject finds the members of the one object in b; white space around it is
// ignored. Values are checked for syntax and depth, nothing more. The view aliases b.
func ParseObject(b []byte) (Object, error) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' || uint64(len(b)) > 1<<32-1 {
		return Object{}, ErrNotObject
	}
	start := i
	var o Object
	from := i + 1
	i = skipSpace(b, from)
	for first := true; ; first = false {
		if i >= len(b) {
			return Object{}, ErrNotObject
		}
		if b[i] == '}' && first {
			break
		}
		nameEnd, value, v := skipName(b, i)
		if v != wellFormed {
			return Object{}, ErrNotObject
		}
		end, v := skipValue(b, value, 1)
		if v != wellFormed {
			return Object{}, ErrNotObject
		}
		m := member{from: u32(from - start), name: u32(i - start), nameEnd: u32(nameEnd - start), value: u32(value - start), end: u32(end - start)}
		i = skipSpace(b, end)
		m.to = u32(i - start)
		if o.members == nil {
			o.members = make([]member, 0, 8)
		}
		o.members = append(o.members, m)
		if i < len(b) && b[i] == ',' {
			from = i + 1
			i = skipSpace(b, from)
			continue
		}
		if i < len(b) && b[i] == '}' {
			break
		}
		return Object{}, ErrNotObject
	}
	if skipSpace(b, i+1) != len(b) {
		return Object{}, ErrNotObject
	}
	o.text = b[start : i+1 : i+1]
	return o, nil
}

func u32(n int) uint32 { return uint32(n) } // ParseObject refuses longer texts

// Raw is the object's text, from bracket to bracket; nil for the zero Object.
func (o Object) Raw() []byte { return o.text }

// Len is how many members there are, repeated ones counted.
func (o Object) Len() int { return len(o.members) }

// Get returns the bytes of the value of the member; of the last one where a name is
// repeated, as most parsers do. Where that matters, call Unique first.
func (o Object) Get(name string) ([]byte, bool) {
	for k := len(o.members) - 1; k >= 0; k-- {
		if m := o.members[k]; o.is(m, name) {
			return o.value(m), true
		}
	}
	return nil, false
}

// Span is where in Raw the value that Get returns stands.
func (o Object) Span(name string) (from, to int, ok bool) {
	for k := len(o.members) - 1; k >= 0; k-- {
		if m := o.members[k]; o.is(m, name) {
			return int(m.value), int(m.end), true
		}
	}
	return 0, 0, false
}

// Has reports whether there is a member of that name.
func (o Object) Has(name string) bool {
	_, ok := o.Get(name)
	return ok
}

// Unique returns a *DuplicateError when one of the names stands twice. It is asked
// of every object whose members are interpreted, for those members.
func (o Object) Unique(names ...string) error {
	for _, name := range names {
		seen := false
		for _, m := range o.members {
			if !o.is(m, name) {
				continue
			}
			if seen {
				return &DuplicateError{name}
			}
			seen = true
		}
	}
	return nil
}

// Members yields names, decoded, and values in the order of the text.
func (o Object) Members() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, m := range o.members {
			name, _ := String(o.text[m.name:m.nameEnd])
			if !yield(name, o.value(m)) {
				return
			}
		}
	}
}

// Text decodes a member that must be a string when it is there: "" and no error
// when it is absent.
func (o Object) Text(name string) (string, error) {
	raw, ok := o.Get(name)
	if !ok {
		return "", nil
	}
	s, ok := String(raw)
	if !ok {
		return "", fmt.Errorf("%s must be a string", name)
	}
	return s, nil
}

func (o Object) is(m member, name string) bool { return named(o.text[m.name:m.nameEnd], name) }
func (o Object) value(m member) []byte         { return o.text[m.value:m.end:m.end] }
