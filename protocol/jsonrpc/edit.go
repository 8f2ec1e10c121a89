package jsonrpc

// An Edit changes one member: Value replaces it, or is added at the end when there
// is none; a nil Value removes it.
type Edit struct {
	Name  string
	Value []byte // one JSON text, spliced as it is
}

// Set returns the object with that member replaced, or added at the end. See Apply.
func (o Object) Set(name string, raw []byte) []byte {
	return o.Apply(nil, Edit{name, raw})
}

// Delete returns the object without that member. See Apply.
func (o Object) Delete(name string) []byte { return o.Apply(nil, Edit{Name: name}) }

// Apply appends the object with all edits made and every other byte as it was,
// white space included. Where a name is repeated, in whatever spelling, the first
// stands for it and all others are removed: behind an edit, a name has one value or
// none, so that nothing can be smuggled past it. Names in edits must differ.
func (o Object) Apply(dst []byte, edits ...Edit) []byte {
	if dst == nil {
		dst = make([]byte, 0, o.roomFor(edits))
	}
	var few [8]bool
	done := append(few[:0], make([]bool, len(edits))...)
	dst = append(dst, '{')
	if o.count == 0 && o.text != nil {
		dst = append(dst, o.text[1:len(o.text)-1]...) // white space
	}
	first := true
	comma := func() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
	}
	o.all(func(m member) bool {
		e := o.edited(m, edits)
		switch {
		case e < 0:
			comma()
			dst = append(dst, o.text[m.from:m.to]...)
		case done[e]:
		default:
			done[e] = true
			if edits[e].Value != nil {
				comma()
				dst = append(dst, o.text[m.from:m.value]...)
				dst = append(dst, edits[e].Value...)
				dst = append(dst, o.text[m.end:m.to]...)
			}
		}
		return true
	})
	for k, e := range edits {
		if !done[k] && e.Value != nil {
			comma()
			dst = AppendString(dst, e.Name)
			dst = append(dst, ':')
			dst = append(dst, e.Value...)
		}
	}
	return append(dst, '}')
}

// roomFor is how long the edited text can be, save for names that need escapes.
func (o Object) roomFor(edits []Edit) int {
	n := len(o.text) + 2
	for _, e := range edits {
		n += len(e.Name) + len(e.Value) + 4
	}
	return n
}

// edited is the index of the edit that m is subject to, -1 for none.
func (o Object) edited(m member, edits []Edit) int {
	for k := range edits {
		if o.is(m, edits[k].Name) {
			return k
		}
	}
	return -1
}
