package capability

import (
	"slices"
	"unicode/utf8"
)

// plain is a schema of the few keywords that most tools use and that mean the same in every dialect. It can only take
// arguments, never refuse them: what it does not take, and every schema with another keyword, is the validator's to judge.
// It is here because the validator writes each text out twice, which for a large one takes longer than all the rest of a call.
type plain struct {
	kind     string            // a JSON type; "" takes every value
	members  map[string]*plain // properties
	required []string
	closed   bool            // additionalProperties: false
	items    *plain          // nil takes all
	enum     map[string]bool // texts only; nil takes all
	least    int             // characters of a text
	most     int             // the same; -1 = no bound
}

// plainOf is the plain form of a decoded schema, nil when it has none.
func plainOf(schema any) *plain { return plainAt(schema, 0) }

func plainAt(schema any, depth int) *plain {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return nil
	}
	p := &plain{most: -1}
	for keyword, value := range m {
		sound := true
		switch keyword {
		case "title", "description", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly", "format":
		case "$schema": // a dialect that is known: all others were seen before
			sound = depth == 0
		case "type":
			p.kind, sound = value.(string)
		case "properties":
			sound = p.addMembers(value, depth)
		case "required":
			p.required, sound = texts(value)
			slices.Sort(p.required)
			p.required = slices.Compact(p.required) // a schema may say one name ten thousand times
		case "additionalProperties":
			open, is := value.(bool)
			p.closed, sound = !open, is
		case "items":
			p.items = plainAt(value, depth+1)
			sound = p.items != nil
		case "enum":
			sound = p.addEnum(value)
		case "minLength":
			p.least, sound = size(value)
		case "maxLength":
			p.most, sound = size(value)
		default:
			sound = false
		}
		if !sound {
			return nil
		}
	}
	return p
}

func (p *plain) addMembers(value any, depth int) bool {
	m, ok := value.(map[string]any)
	p.members = make(map[string]*plain, len(m))
	for name, schema := range m {
		member := plainAt(schema, depth+1)
		if member == nil {
			return false
		}
		p.members[name] = member
	}
	return ok
}

func (p *plain) addEnum(value any) bool {
	list, ok := texts(value)
	p.enum = make(map[string]bool, len(list))
	for _, text := range list {
		p.enum[text] = true
	}
	return ok && len(list) > 0
}

func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	out := make([]string, 0, len(list))
	for _, x := range list {
		text, is := x.(string)
		out, ok = append(out, text), ok && is
	}
	return out, ok
}

func size(value any) (int, bool) {
	f, ok := value.(float64)
	n := int(f)
	return n, ok && f >= 0 && f < 1<<31 && float64(n) == f
}

// takes reports that the value certainly fits. It works through each value once, so it needs no budget.
func (p *plain) takes(value any) bool {
	if p.enum != nil {
		text, ok := value.(string)
		if !ok || !p.enum[text] {
			return false
		}
	}
	switch v := value.(type) {
	case string:
		return p.is("string") && (p.least == 0 && p.most < 0 || p.fits(utf8.RuneCountInString(v)))
	case bool:
		return p.is("boolean")
	case nil:
		return p.is("null")
	case int64:
		return p.is("number") || p.kind == "integer"
	case float64:
		return p.is("number")
	case []any:
		return p.is("array") && p.takesAll(v)
	case map[string]any:
		return p.is("object") && p.takesObject(v)
	}
	return false
}

func (p *plain) is(kind string) bool { return p.kind == "" || p.kind == kind }

func (p *plain) fits(n int) bool { return n >= p.least && (p.most < 0 || n <= p.most) }

func (p *plain) takesAll(list []any) bool {
	if p.items == nil {
		return true
	}
	for _, x := range list {
		if !p.items.takes(x) {
			return false
		}
	}
	return true
}

func (p *plain) takesObject(object map[string]any) bool {
	for _, name := range p.required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	for name, x := range object {
		member := p.members[name]
		if member == nil && p.closed || member != nil && !member.takes(x) {
			return false
		}
	}
	return true
}
