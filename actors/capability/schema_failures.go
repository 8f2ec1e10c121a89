package capability

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonschema"
)

// maxFailure bounds one line of a failure's text, in bytes.
const maxFailure = 160

// wrappers are keywords whose error only says that something below failed, and
// whose details say what.
var wrappers = map[string]bool{
	"properties": true, "patternProperties": true, "additionalProperties": true, "items": true, "prefixItems": true,
	"$ref": true, "$dynamicRef": true, "allOf": true, "then": true, "else": true, "if": true, "dependentSchemas": true,
	"unevaluatedProperties": true, "unevaluatedItems": true, "contains": true, "propertyNames": true,
}

// alternatives are keywords whose details are ways of which one would have done:
// they are not listed, because each of them looks like something to mend.
var alternatives = []string{"anyOf", "oneOf", "not"}

// failures lists what a result says is wrong with the value, one line for each
// failing path and keyword, sorted.
func failures(r *jsonschema.EvaluationResult, value any) []string {
	var list []string
	collect(r, "", value, &list)
	slices.Sort(list)
	return slices.Compact(list)
}

// collect appends the failures of r, which is about the value at the path at.
func collect(r *jsonschema.EvaluationResult, at string, value any, list *[]string) {
	if r.IsValid() {
		return
	}
	below := len(*list)
	if !slices.ContainsFunc(alternatives, func(k string) bool { return r.Errors[k] != nil }) {
		for _, d := range r.Details {
			if path, member, ok := step(at, value, d.InstanceLocation); ok {
				collect(d, path, member, list)
			}
		}
	}
	explained := len(*list) > below
	for keyword, e := range r.Errors {
		if !wrappers[keyword] || !explained {
			*list = append(*list, line(at, e.Error()))
		}
	}
}

// step goes from a value to what a detail is about: the value itself, a member or
// an item. It is not ok for a member that is absent: the validator judges it as
// null, and its absence is a failure of its own.
func step(at string, value any, location string) (path string, below any, ok bool) {
	name, deeper := strings.CutPrefix(location, "/")
	if !deeper {
		return at, value, true
	}
	path = at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	switch v := value.(type) {
	case map[string]any:
		below, ok = v[name]
		return path, below, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return "", nil, false
		}
		return path, v[i], true
	}
	return "", nil, false
}

// line is one failure: where and what, printable, bounded.
func line(at, text string) string {
	if at == "" {
		at = "/"
	}
	s := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(at+": "+text, "\uFFFD"))
	if len(s) > maxFailure {
		s = strings.ToValidUTF8(s[:maxFailure], "") + "…"
	}
	return s
}
