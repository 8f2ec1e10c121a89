package capability

import (
	"slices"
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

// failures lists what a result says is wrong, one line for each failing path and
// keyword, sorted.
func failures(r *jsonschema.EvaluationResult) []string {
	var list []string
	collect(r, "", &list)
	slices.Sort(list)
	return slices.Compact(list)
}

// collect appends the failures of r, which stands at the path at.
func collect(r *jsonschema.EvaluationResult, at string, list *[]string) {
	if r.IsValid() {
		return
	}
	at += r.InstanceLocation
	below := len(*list)
	if !slices.ContainsFunc(alternatives, func(k string) bool { return r.Errors[k] != nil }) {
		for _, d := range r.Details {
			collect(d, at, list)
		}
	}
	explained := len(*list) > below
	for keyword, e := range r.Errors {
		if wrappers[keyword] && explained {
			continue
		}
		*list = append(*list, line(at, e.Error()))
	}
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
