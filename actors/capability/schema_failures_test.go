package capability

import (
	"slices"
	"strings"
	"testing"
)

// TestOneMistakeIsNamedOnce: each cause has one line, said where it is, and what is no mistake has none.
func TestOneMistakeIsNamedOnce(t *testing.T) {
	for _, row := range []struct {
		name, schema, args string
		want               []string // the beginnings of the lines
	}{
		{"a member that is missing", `{"type":"object","properties":{"selector":{"type":"string"}},"required":["selector"]}`, `{}`,
			[]string{"/: Required property 'selector' is missing"}},
		{"one missing and one wrong", `{"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`, `{"b":"x"}`,
			[]string{"/: Required property 'a' is missing", "/b: "}},
		{"a member too many beside one missing", `{"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"zzz":1}`,
			[]string{"/: Required property 'a' is missing", "/zzz: "}},
		{"a wrong member beside alternatives", `{"properties":{"a":{"type":"string"}},"required":["a"],"anyOf":[{"required":["b"]},{"required":["c"]}]}`, `{"a":1}`,
			[]string{"/: Value does not match anyOf", "/a: "}},
		{"a condition that does not hold is no mistake", `{"if":{"required":["x"]},"then":{"required":["y"]},"properties":{"a":{"type":"string"}}}`, `{"a":1}`,
			[]string{"/a: "}},
		{"what follows from a condition", `{"if":{"required":["x"]},"then":{"required":["y"]}}`, `{"x":1}`,
			[]string{"/: Required property 'y' is missing"}},
		{"what follows from its opposite", `{"if":{"required":["x"]},"else":{"required":["y"]}}`, `{}`,
			[]string{"/: Required property 'y' is missing"}},
		{"a reference", `{"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string","minLength":3}}}`, `{"a":"x"}`,
			[]string{"/a: "}},
		{"a reference to a requirement", `{"$ref":"#/$defs/s","$defs":{"s":{"required":["q"]}}}`, `{}`,
			[]string{"/: Required property 'q' is missing"}},
		{"all of some", `{"allOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`, `{"b":1}`,
			[]string{"/: Required property 'a' is missing", "/b: "}},
		{"nothing that is contained", `{"properties":{"l":{"type":"array","contains":{"type":"string"}}}}`, `{"l":[1,2,3]}`,
			[]string{"/l: "}},
		{"a schema that depends", `{"dependentSchemas":{"card":{"required":["billing"]}}}`, `{"card":1}`,
			[]string{"/: Required property 'billing' is missing"}},
		{"what nobody evaluated", `{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1,"b":2}`,
			[]string{"/b: "}},
		{"a name", `{"propertyNames":{"maxLength":2}}`, `{"abc":1}`,
			[]string{"/abc: "}},
		{"the wrong item of a list", `{"properties":{"l":{"items":{"type":"string"}}}}`, `{"l":["a",1,"b"]}`,
			[]string{"/l/1: "}},
		{"a slash in a name", `{"properties":{"a/b":{"type":"string"}}}`, `{"a/b":1}`,
			[]string{"/a~1b: "}},
		{"deep", `{"properties":{"o":{"properties":{"p":{"properties":{"q":{"enum":[1]}}}}}}}`, `{"o":{"p":{"q":2}}}`,
			[]string{"/o/p/q: "}},
	} {
		_, err := check(row.schema, row.args)
		if err == nil {
			t.Errorf("%s: accepted", row.name)
			continue
		}
		lines := strings.Split(strings.TrimPrefix(err.Error(), "the arguments do not fit the tool's input schema: "), "; ")
		ok := slices.EqualFunc(lines, row.want, strings.HasPrefix)
		if !ok {
			t.Errorf("%s: got %q, want %q", row.name, lines, row.want)
		}
	}
}

func check(schema, args string) (string, error) {
	return CompileSchema([]byte(schema)).Check(testContext, nil, []byte(args))
}
