package clientcheck

import (
	"encoding/json/v2"
	"maps"
	"slices"
	"strings"
)

// sampleDepth bounds how deep an invented argument nests.
const sampleDepth = 4

// sample invents the least arguments that a schema allows. sure says that nothing had to be invented: {} is allowed.
func sample(schema []byte) (arguments []byte, sure bool) {
	var s map[string]any
	if len(schema) > maxSchemaBytes || json.Unmarshal(schema, &s) != nil {
		return []byte("{}"), false
	}
	raw, err := json.Marshal(example(s, sampleDepth), json.Deterministic(true))
	if err != nil || len(raw) == 0 || raw[0] != '{' {
		return []byte("{}"), false
	}
	required, _ := s["required"].([]any)
	return raw, len(required) == 0
}

// example is a value that a schema allows, as far as its plain keywords say.
func example(s map[string]any, depth int) any {
	for _, fixed := range []string{"const", "default"} {
		if value, has := s[fixed]; has {
			return value
		}
	}
	for _, list := range []string{"enum", "examples"} {
		if values, ok := s[list].([]any); ok && len(values) > 0 {
			return values[0]
		}
	}
	switch kindOf(s) {
	case "string":
		least, _ := s["minLength"].(float64)
		if s["format"] == "uri" {
			return "about:blank"
		}
		return strings.Repeat("x", int(min(max(least, 1), 1<<10)))
	case "integer", "number":
		least, _ := s["minimum"].(float64)
		return least
	case "boolean":
		return false
	case "array":
		return []any{}
	case "null":
		return nil
	}
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, one := range required {
		name, _ := one.(string)
		inner, _ := properties[name].(map[string]any)
		if depth > 0 && name != "" {
			object[name] = example(inner, depth-1)
		}
	}
	return object
}

// kindOf is the type that a schema allows; an object when it does not say.
func kindOf(s map[string]any) string {
	switch kind := s["type"].(type) {
	case string:
		return kind
	case []any:
		if len(kind) > 0 {
			first, _ := kind[0].(string)
			return first
		}
	}
	return "object"
}

// wrong gives arguments that a schema forbids; false when it forbids nothing that is plain to see.
func wrong(schema []byte) ([]byte, bool) {
	var s map[string]any
	if len(schema) > maxSchemaBytes || json.Unmarshal(schema, &s) != nil {
		return nil, false
	}
	if required, _ := s["required"].([]any); len(required) > 0 {
		return []byte("{}"), true
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner, _ := properties[name].(map[string]any)
		if kind, only := inner["type"].(string); only && kind != "object" {
			raw, err := json.Marshal(map[string]any{name: map[string]any{"client-check": true}})
			return raw, err == nil
		}
	}
	if s["additionalProperties"] == false {
		return []byte(`{"client-check":true}`), true
	}
	return nil, false
}
