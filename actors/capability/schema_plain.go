package capability

// plain is a schema of the few keywords that most tools use and that mean the same in every dialect. It can only take
// arguments, never refuse them: what it does not take, and every schema with another keyword, is the validator's to judge.
// It judges arguments where they lie, without a copy of any text: the validator writes each out twice, which for a large one
// takes longer than all the rest of a call.
type plain struct {
	kind     string            // a JSON type; "" takes every value
	members  map[string]*plain // properties
	required map[string]bool
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
			p.required, sound = set(value)
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
	var ok bool
	p.enum, ok = set(value)
	return ok && len(p.enum) > 0
}

// set is a list of texts, of which a schema may say one ten thousand times.
func set(value any) (map[string]bool, bool) {
	list, ok := value.([]any)
	out := make(map[string]bool, len(list))
	for _, x := range list {
		text, is := x.(string)
		out[text], ok = true, ok && is
	}
	return out, ok
}

func size(value any) (int, bool) {
	f, ok := value.(float64)
	n := int(f)
	return n, ok && f >= 0 && f < 1<<31 && float64(n) == f
}
