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
	text    []byte   // from { to }
	members []member // the first of them
	count   int      // of all; those behind the first are found in the text when they are asked for
}

// indexed is how many members of an object are remembered where they stand. Objects that somebody wrote have fewer; one of millions
// of tiny members costs time when it is read, and no memory.
const indexed = 1024

// A member lies in text[from:to], white space included up to the comma or bracket
// on either side. Offsets are 32 bits wide: a text of many tiny members may have
// millions.
type member struct{ from, name, nameEnd, value, end, to uint32 }

// ParseObject finds the members of the one object in b; white space around it is
// ignored. Values are checked for syntax and depth, nothing more. The view aliases b.
func ParseObject(b []byte) (Object, error) {
	start := skipSpace(b, 0)
	if start >= len(b) || b[start] != '{' || uint64(len(b)) > 1<<32-1 {
		return Object{}, ErrNotObject
	}
	var o Object
	end, v := walkMembers(b[start:], 1, func(m member) bool {
		if o.members == nil {
			o.members = make([]member, 0, 8)
		}
		if o.count++; o.count <= indexed {
			o.members = append(o.members, m)
		}
		return true
	})
	if v != wellFormed || skipSpace(b, start+end) != len(b) {
		return Object{}, ErrNotObject
	}
	o.text = b[start : start+end : start+end]
	return o, nil
}

// walkMembers finds the members of the object that b begins with, from the one that stands at from on (1 is the first), until
// visit wants no more. end is behind the object's bracket, when it came there.
func walkMembers(b []byte, from int, visit func(member) bool) (end int, v verdict) {
	i := skipSpace(b, from)
	for first := from == 1; ; first = false {
		if i >= len(b) {
			return i, malformed
		}
		if b[i] == '}' && first {
			return i + 1, wellFormed
		}
		nameEnd, value, v := skipName(b, i)
		if v != wellFormed {
			return i, malformed
		}
		end, v := skipValue(b, value, 1)
		if v != wellFormed {
			return i, malformed
		}
		m := member{from: u32(from), name: u32(i), nameEnd: u32(nameEnd), value: u32(value), end: u32(end)}
		i = skipSpace(b, end)
		m.to = u32(i)
		if !visit(m) {
			return i, wellFormed
		}
		switch {
		case i < len(b) && b[i] == ',':
			from = i + 1
			i = skipSpace(b, from)
		case i < len(b) && b[i] == '}':
			return i + 1, wellFormed
		default:
			return i, malformed
		}
	}
}

// all visits every member in the order of the text, until visit wants no more.
func (o Object) all(visit func(member) bool) {
	for _, m := range o.members {
		if !visit(m) {
			return
		}
	}
	if o.count > len(o.members) {
		last := o.members[len(o.members)-1]
		walkMembers(o.text, int(last.to)+1, visit)
	}
}

// last is the last member of that name.
func (o Object) last(name string) (found member, ok bool) {
	if o.count == len(o.members) {
		for k := len(o.members) - 1; k >= 0; k-- {
			if m := o.members[k]; o.is(m, name) {
				return m, true
			}
		}
		return found, false
	}
	o.all(func(m member) bool {
		if o.is(m, name) {
			found, ok = m, true
		}
		return true
	})
	return found, ok
}

func u32(n int) uint32 { return uint32(n) } // ParseObject refuses longer texts

// Raw is the object's text, from bracket to bracket; nil for the zero Object.
func (o Object) Raw() []byte { return o.text }

// Len is how many members there are, repeated ones counted.
func (o Object) Len() int { return o.count }

// Get returns the bytes of the value of the member; of the last one where a name is
// repeated, as most parsers do. Where that matters, call Unique first.
func (o Object) Get(name string) ([]byte, bool) {
	m, ok := o.last(name)
	if !ok {
		return nil, false
	}
	return o.value(m), true
}

// Span is where in Raw the value that Get returns stands.
func (o Object) Span(name string) (from, to int, ok bool) {
	m, ok := o.last(name)
	return int(m.value), int(m.end), ok
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
		seen := 0
		o.all(func(m member) bool {
			if o.is(m, name) {
				seen++
			}
			return seen < 2
		})
		if seen == 2 {
			return &DuplicateError{name}
		}
	}
	return nil
}

// Members yields names, decoded, and values in the order of the text.
func (o Object) Members() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		o.all(func(m member) bool {
			name, _ := String(o.text[m.name:m.nameEnd])
			return yield(name, o.value(m))
		})
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
