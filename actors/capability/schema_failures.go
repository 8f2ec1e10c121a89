package capability

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonschema"
)

// maxFailure bounds one line of a failure's text, in bytes.
const maxFailure = 160

// wrappers are keywords whose error only says that something below failed, by the
// part of the evaluation path with which what failed below begins. A reference and
// an else leave that part empty.
var wrappers = map[string][]string{
	"properties": {"properties", "unevaluatedProperties"}, "patternProperties": {"patternProperties"},
	"additionalProperties": {"additionalProperties"}, "items": {"items"}, "prefixItems": {"prefixItems"},
	"$ref": {""}, "$dynamicRef": {""}, "else": {""}, "then": {"then"}, "allOf": {"allOf"},
	"dependentSchemas": {"dependentSchemas"}, "unevaluatedProperties": {"unevaluatedProperties"},
	"unevaluatedItems": {"unevaluatedItems"}, "propertyNames": {"propertyNames"},
}

// silent are keywords whose details are no failures by themselves: ways of which
// one would have done, and conditions. None of them is something to mend.
var silent = []string{"anyOf", "oneOf", "not", "if", "contains"}

// failures lists what a result says is wrong with the value, one line for each
// failing path and keyword, sorted.
func failures(r *jsonschema.EvaluationResult, value any) []string {
	var list []string
	collect(r, "", value, &list)
	slices.Sort(list)
	return slices.Compact(list)
}

// collect appends the failures of r, which is about the value at the path at: what
// each keyword says, or where it only points below, what is said there.
func collect(r *jsonschema.EvaluationResult, at string, value any, list *[]string) {
	if r.IsValid() {
		return
	}
	var explained []string
	for _, d := range r.Details {
		keyword, _, _ := strings.Cut(strings.TrimPrefix(d.EvaluationPath, "/"), "/")
		if d.IsValid() || slices.Contains(silent, keyword) {
			continue
		}
		switch path, member, ok := step(at, value, d.InstanceLocation); {
		case keyword == "dependentSchemas": // it names the member that asks, and is about the whole
			collect(d, at, value, list)
		case ok:
			collect(d, path, member, list)
		case keyword != "properties" || r.Errors["required"] == nil:
			continue
		} // else it is absent, which required says
		explained = append(explained, keyword)
	}
	for keyword, e := range r.Errors {
		told := func(below string) bool { return slices.Contains(explained, below) }
		if !slices.ContainsFunc(wrappers[keyword], told) {
			*list = append(*list, line(at, e.Error()))
		}
	}
}

// step goes from a value to what a detail is about: the value itself, a member or
// an item. It is not ok for a member that is absent: the validator judges it as
// null.
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
