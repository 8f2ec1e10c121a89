package capability

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// longestScalar is the longest number, and the longest text with escapes that is compared with an enum or taken for a
// member's name, that is looked at: they are copied for it. Of a longer one the plain form has no opinion.
const longestScalar = 1 << 10

// anything is the plain form of {}.
var anything = &plain{most: -1}

// takes reports that args are one sound JSON text that certainly fits. It reads them where they lie and works through each
// value once, so it needs no budget, and no memory but for the names of members.
func (p *plain) takes(args []byte) bool {
	d := inPlace(args)
	if !p.takesNext(d) {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

// inPlace decodes strictly and copies nothing: of a bytes.Buffer the decoder reads the bytes themselves. Of text it takes what
// [decodeArguments] takes.
func inPlace(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true))
}

// takesNext judges the next value.
func (p *plain) takesNext(d *jsontext.Decoder) bool {
	switch kind := d.PeekKind(); kind {
	case '{', '[':
		if p.enum != nil {
			return false
		}
		if _, err := d.ReadToken(); err != nil {
			return false
		}
		if kind == '[' {
			return p.is("array") && p.takesList(d)
		}
		return p.is("object") && p.takesMembers(d)
	default:
		raw, err := d.ReadValue()
		return err == nil && p.takesScalar(raw)
	}
}

func (p *plain) takesScalar(raw []byte) bool {
	if raw[0] == '"' {
		return p.is("string") && (p.least == 0 && p.most < 0 || p.fits(characters(raw))) && (p.enum == nil || p.chooses(raw))
	}
	if p.enum != nil {
		return false
	}
	switch raw[0] {
	case 't', 'f':
		return p.is("boolean")
	case 'n':
		return p.is("null")
	}
	if len(raw) > longestScalar {
		return false
	}
	if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return p.is("number") || p.kind == "integer"
	}
	_, err := strconv.ParseFloat(string(raw), 64) // one that is out of range is refused wherever it stands
	return err == nil && p.is("number")
}

func (p *plain) is(kind string) bool { return p.kind == "" || p.kind == kind }

func (p *plain) fits(n int) bool { return n >= p.least && (p.most < 0 || n <= p.most) }

func (p *plain) chooses(raw []byte) bool {
	text, ok := inside(raw)
	return ok && p.enum[string(text)]
}

func (p *plain) takesList(d *jsontext.Decoder) bool {
	items := p.items
	if items == nil {
		items = anything
	}
	for d.PeekKind() != ']' {
		if !items.takesNext(d) {
			return false
		}
	}
	_, err := d.ReadToken()
	return err == nil
}

// takesMembers relies on the decoder for that no name stands twice.
func (p *plain) takesMembers(d *jsontext.Decoder) bool {
	missing := len(p.required)
	for d.PeekKind() != '}' {
		raw, err := d.ReadValue()
		if err != nil || len(raw) == 0 || raw[0] != '"' {
			return false
		}
		name, ok := inside(raw)
		if !ok {
			return false
		}
		if p.required[string(name)] {
			missing--
		}
		member := p.members[string(name)]
		switch {
		case member != nil:
		case p.closed:
			return false
		default:
			member = anything
		}
		if !member.takesNext(d) {
			return false
		}
	}
	_, err := d.ReadToken()
	return err == nil && missing == 0
}

// inside is the text of a string literal: a range of it where nothing is escaped.
func inside(raw []byte) ([]byte, bool) {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text, true
	}
	if len(raw) > longestScalar {
		return nil, false
	}
	text, _ = jsontext.AppendUnquote(nil, raw) // the error only reports what was replaced
	return text, true
}

// characters is how many a string literal stands for: a byte that is no UTF-8 and a lone surrogate are one, two surrogates
// that belong together are one.
func characters(raw []byte) int {
	n := 0
	for text := raw[1 : len(raw)-1]; ; n++ {
		slash := bytes.IndexByte(text, '\\')
		if slash < 0 {
			return n + runes(text)
		}
		n += runes(text[:slash])
		text = text[slash+escape(text[slash:]):]
	}
}

// runes counts as utf8.RuneCount does, which copies a text that is not all ASCII.
func runes(text []byte) (n int) {
	for i := 0; i < len(text); n++ {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(text[i:])
		i += size
	}
	return n
}

// escape is the length of the escape that text begins with, in a sound literal.
func escape(text []byte) int {
	if text[1] != 'u' {
		return 2
	}
	const high, low = 0xd800, 0xdc00
	if surrogate(text[2:6]) == high && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' && surrogate(text[8:12]) == low {
		return 12
	}
	return 6
}

// surrogate is the first of the kind of surrogates that four digits name, else something else.
func surrogate(digits []byte) uint64 {
	n, _ := strconv.ParseUint(string(digits), 16, 16)
	return n &^ 0x3ff
}
