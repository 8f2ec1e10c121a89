package capability

import (
	"encoding/json/v2"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// dialects are the values of $schema that the validator knows, without a scheme
// and an empty fragment.
var dialects = []string{
	"json-schema.org/draft-04/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema",
	"json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema",
}

// dialectOf is the dialect that a schema declares, shown, and whether the validator knows it; one that declares none is in the newest.
func dialectOf(document any) (shown string, known bool) {
	root, _ := document.(map[string]any)
	dialect, ok := root["$schema"].(string)
	if !ok {
		return "", true
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(dialect, "#"), "://")
	return jsonrpc.Show(dialect), slices.Contains(dialects, name)
}

var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// oddity says what in a schema the validator would judge in a way of its own:
// types that do not exist, which nothing would fit. Empty = nothing.
func oddity(document any) string {
	if _, ok := document.(map[string]any); !ok {
		return "the schema is no object"
	}
	odd := ""
	each(document, func(schema map[string]any) {
		names, ok := schema["type"].([]any)
		if !ok {
			names = []any{schema["type"]}
		}
		for _, n := range names {
			if name, ok := n.(string); ok && !slices.Contains(typeNames, name) {
				odd = "the schema has a type " + jsonrpc.Show(name) + ", which does not exist"
			}
		}
	})
	return odd
}

// refersOutside reports a reference that leads to nothing in the document.
func refersOutside(document any) bool {
	b := budget{root: document, anchors: indexed(document)}
	outside := false
	each(document, func(schema map[string]any) {
		for _, k := range references {
			if ref, ok := schema[k].(string); ok && b.resolve(ref) == nil {
				outside = true
			}
		}
	})
	return outside
}

// each visits the document and all subschemas in it.
func each(document any, f func(schema map[string]any)) {
	var visit func(x any, depth int)
	visit = func(x any, depth int) {
		m, ok := x.(map[string]any)
		if !ok || depth > maxSchemaDepth {
			return
		}
		f(m)
		children(m, func(x any) { visit(x, depth+1) })
	}
	visit(document, 0)
}

// withoutContent is the schema without contentEncoding, contentMediaType and
// contentSchema, which the standard makes annotations and the validator asserts.
// A schema without them is returned as it is.
func withoutContent(raw []byte, document any) []byte {
	if !strings.Contains(string(raw), `"content`) {
		return raw
	}
	changed := false
	each(document, func(schema map[string]any) {
		for _, k := range []string{"contentEncoding", "contentMediaType", "contentSchema"} {
			if _, ok := schema[k]; ok {
				delete(schema, k)
				changed = true
			}
		}
	})
	if !changed {
		return raw
	}
	out, err := json.Marshal(document)
	if err != nil {
		return raw
	}
	return out
}
