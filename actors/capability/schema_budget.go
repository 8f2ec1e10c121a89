package capability

import (
	"reflect"
	"strconv"
	"strings"
)

// steps is how many steps it takes at most to validate the value against the schema,
// each up to some 20 microseconds and [bytesPerStep]; not ok when they are more than
// `most`. The validator knows no
// deadline, and a few lines of allOf and $ref make it work for hours, so the work
// is counted beforehand: a walk over both documents that decides nothing and
// visits every subschema that the validator could visit.
func (s *Schema) steps(value any, most int) (n int, ok bool) {
	b := budget{root: s.document, left: most, active: map[visit]bool{}, anchors: s.anchors, patterns: s.cost.patterns}
	ok = b.walk(s.document, value, 0)
	return most - b.left, ok
}

// anchors are the parts of a schema that references can name: by "#name" and by
// whole ids. They are found once and only read from then on.
type anchors map[string]any

func indexed(schema any) anchors {
	a := anchors{}
	a.index(schema, 0)
	return a
}

type budget struct {
	root    any
	left    int
	active  map[visit]bool
	anchors anchors
	// patterns has the number of instructions of each: with each character of a text
	// the validator may try them all.
	patterns map[string]int
}

// matching is what it costs to try a pattern on a text.
func (b *budget) matching(pattern any, text string) int {
	name, _ := pattern.(string)
	const base, perStep = 128, 4096 // instructions and characters that a step stands for
	return len(text) * (b.patterns[name] + base) / perStep
}

// visit is one subschema applied to the value at one depth. The values of the
// visits that are active form a path, so that the depth names the value.
type visit struct {
	schema uintptr
	depth  int
}

// Keywords by what stands behind them.
var (
	oneSchema  = []string{"not", "if", "then", "else", "additionalProperties", "propertyNames", "items", "contains", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"}
	schemaList = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemaMap  = []string{"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)

// references are the keywords that name another schema.
var references = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// children calls f for each subschema that stands directly in the schema.
func children(schema map[string]any, f func(any)) {
	for _, k := range oneSchema {
		if _, ok := schema[k].(map[string]any); ok {
			f(schema[k])
		}
	}
	for _, k := range schemaList {
		if list, ok := schema[k].([]any); ok {
			for _, x := range list {
				f(x)
			}
		}
	}
	for _, k := range schemaMap {
		if m, ok := schema[k].(map[string]any); ok {
			for _, x := range m {
				f(x)
			}
		}
	}
}

// index finds what references can name.
func (a anchors) index(schema any, depth int) {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return
	}
	for _, k := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := m[k].(string); ok {
			a["#"+name] = schema
		}
	}
	for _, k := range []string{"$id", "id"} {
		if id, ok := m[k].(string); ok {
			a[id] = schema
		}
	}
	children(m, func(x any) { a.index(x, depth+1) })
}

// spend takes n steps and reports whether there were that many.
func (b *budget) spend(n int) bool {
	b.left -= n
	return b.left >= 0
}

// walk counts the schema applied to the value at that depth.
func (b *budget) walk(schema, value any, depth int) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		return b.spend(1)
	}
	at := visit{reflect.ValueOf(m).Pointer(), depth}
	if b.active[at] {
		return b.spend(1) // the validator sees that it goes in a circle, too
	}
	b.active[at] = true
	defer delete(b.active, at)
	if !b.spend(1+len(b.active)/8) || !b.own(m, value) {
		return false
	}
	for _, k := range references {
		if ref, ok := m[k].(string); ok && !b.walk(b.resolve(ref), value, depth) {
			return false
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[k].([]any)
		for _, x := range list {
			if !b.walk(x, value, depth) {
				return false
			}
		}
	}
	for _, k := range []string{"not", "if", "then", "else"} {
		if x, ok := m[k]; ok && !b.walk(x, value, depth) {
			return false
		}
	}
	switch v := value.(type) {
	case map[string]any:
		return b.object(m, v, depth)
	case []any:
		return b.array(m, v, depth)
	}
	return true
}

// own counts the keywords that look at the value alone.
func (b *budget) own(m map[string]any, value any) bool {
	n := len(m) / 3
	if list, ok := m["enum"].([]any); ok {
		n += len(list)
	}
	switch v := value.(type) {
	case string:
		n += len(v) / 512
		if pattern, ok := m["pattern"]; ok {
			n += b.matching(pattern, v)
		}
	case []any:
		if m["uniqueItems"] == true {
			n += len(v) + len(v)*len(v)/256
		}
	case map[string]any:
		n += len(v) / 8
	}
	return b.spend(n)
}

func (b *budget) object(m map[string]any, v map[string]any, depth int) bool {
	props, _ := m["properties"].(map[string]any)
	if !b.spend(len(props) / 8) {
		return false
	}
	for name, x := range props {
		if member, ok := v[name]; ok && !b.walk(x, member, depth+1) {
			return false
		}
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for _, k := range []string{"dependentSchemas", "dependencies"} {
		deps, _ := m[k].(map[string]any)
		for _, x := range deps {
			if !b.walk(x, v, depth) {
				return false
			}
		}
	}
	for name, member := range v {
		for pattern, x := range patterns { // as if every pattern matched every name
			if !b.spend(1+b.matching(pattern, name)) || !b.walk(x, member, depth+1) {
				return false
			}
		}
		for _, k := range []string{"additionalProperties", "unevaluatedProperties"} {
			if x, ok := m[k]; ok && !b.walk(x, member, depth+1) {
				return false
			}
		}
		if x, ok := m["propertyNames"]; ok && !b.walk(x, name, depth+1) {
			return false
		}
	}
	return true
}

func (b *budget) array(m map[string]any, v []any, depth int) bool {
	for _, item := range v {
		for _, k := range []string{"items", "contains", "additionalItems", "unevaluatedItems"} {
			if x, ok := m[k]; ok {
				if _, tuple := x.([]any); !tuple && !b.walk(x, item, depth+1) {
					return false
				}
			}
		}
	}
	for _, k := range []string{"prefixItems", "items"} {
		list, _ := m[k].([]any)
		for i := range min(len(list), len(v)) {
			if !b.walk(list[i], v[i], depth+1) {
				return false
			}
		}
	}
	return true
}

// resolve finds what a reference names; nil when that is not found, which the
// compiler has judged.
func (b *budget) resolve(ref string) any {
	if x, ok := b.anchors[ref]; ok {
		return x
	}
	base, pointer, found := strings.Cut(ref, "#")
	at := b.root
	if base != "" {
		at = b.anchors[base]
		if at == nil {
			at = b.bySuffix(base)
		}
	}
	if !found || pointer == "" {
		return at
	}
	if x, ok := b.anchors["#"+pointer]; ok {
		return x
	}
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%22", `"`).Replace(part)
		switch x := at.(type) {
		case map[string]any:
			at = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			at = x[i]
		default:
			return nil
		}
	}
	return at
}

// bySuffix finds an embedded resource by the end of its id: ids are resolved
// against bases, which does not matter for counting.
func (b *budget) bySuffix(base string) any {
	for id, x := range b.anchors {
		if strings.HasSuffix(strings.TrimSuffix(id, "#"), "/"+strings.TrimPrefix(base, "/")) {
			return x
		}
	}
	return nil
}
