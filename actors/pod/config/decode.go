package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// layer is one source after its check: values in Go's types at their place in the tree, and where each came from.
type layer struct {
	values  map[string]any
	origins map[string]Origin // by full path of the leaf
	errs    []*Error
	at      func(path string) Origin
	env     func(name string) (string, bool)
}

func newLayer(at func(string) Origin, env func(string) (string, bool)) *layer {
	return &layer{values: map[string]any{}, origins: map[string]Origin{}, at: at, env: env}
}

func (l *layer) fail(path, problem, allowed string) {
	l.errs = append(l.errs, &Error{At: l.at(path), Key: path, Problem: problem, Allowed: allowed})
}

// section checks a table with known names and returns what passed. Every problem in it is collected.
func (l *layer) section(schema *key, path string, in map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range in {
		full := join(path, name)
		k := schema.field(name)
		if k == nil {
			problem := "unknown key"
			if near := nearest(name, schema.fields); near != "" {
				problem = fmt.Sprintf("unknown key; did you mean %s?", near)
			}
			l.fail(full, problem, schema.allowed())
			continue
		}
		target := k
		if k.seconds != nil {
			target = k.seconds
			if _, both := in[target.name]; both {
				l.fail(full, "means the same as "+target.name+", which is given too", "one of the two")
				continue
			}
		}
		v, ok := l.value(k, full, value)
		if !ok {
			continue
		}
		if k.seconds != nil {
			v = secondsOf(v)
		}
		out[target.name] = v
		if k.kind != kindSection {
			l.origins[join(path, target.name)] = l.at(full)
		}
	}
	return out
}

func secondsOf(v any) time.Duration { return time.Duration(v.(int)) * time.Second }

// value checks one value as TOML gives it.
func (l *layer) value(k *key, path string, in any) (any, bool) {
	switch k.kind {
	case kindSection:
		table, ok := in.(map[string]any)
		if !ok {
			return l.wrong(k, path, in, "a section with "+k.allowed())
		}
		return l.section(k, path, table), true
	case kindTables:
		return l.tables(k, path, in)
	case kindStrings:
		return l.strings(k, path, in)
	case kindStringMap:
		return l.stringMap(k, path, in)
	case kindBool:
		if v, ok := in.(bool); ok {
			return v, true
		}
		return l.wrong(k, path, in, k.allowed())
	case kindInt:
		if v, ok := in.(int64); ok {
			return l.inRange(k, path, v)
		}
		return l.wrong(k, path, in, k.allowed())
	case kindSize:
		if v, ok := in.(int64); ok { // a bare number is bytes
			return l.inRange(k, path, v)
		}
	}
	text, ok := in.(string)
	if !ok {
		return l.wrong(k, path, in, k.allowed())
	}
	text, ok = l.expand(path, text)
	if !ok {
		return nil, false
	}
	return l.text(k, path, text)
}

// text checks a value that is written as a string: in the file, in a variable, on the command line.
func (l *layer) text(k *key, path, text string) (any, bool) {
	switch k.kind {
	case kindInt, kindSize, kindDuration:
		n, err := k.number(strings.TrimSpace(text))
		if err != nil {
			return l.refuse(k, path, quote(text)+" is none")
		}
		return l.inRange(k, path, n)
	case kindBool:
		switch strings.TrimSpace(text) {
		case "true", "1":
			return true, true
		case "false", "0":
			return false, true
		}
		return l.refuse(k, path, quote(text)+" is neither")
	case kindStrings:
		items, err := itemsOf(text)
		if err != nil {
			return l.refuse(k, path, quote(text)+" is no TOML array; write it with commas and without brackets, or as in the file")
		}
		list := []string{}
		for _, item := range items {
			if !l.judge(k, path, item) {
				return nil, false
			}
			list = append(list, item)
		}
		return list, true
	case kindString:
		return text, l.judge(k, path, text)
	default:
		return l.refuse(k, path, "cannot be set from one string; write it into the file")
	}
}

// itemsOf reads a list that is written as one string: with commas, or as an array the way the file has it.
func itemsOf(text string) (items []string, err error) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "[") {
		var array struct{ Items []string }
		strict := toml.NewDecoder(bytes.NewReader([]byte("Items = " + text))).DisallowUnknownFields() // it is one value and nothing after it
		err = strict.Decode(&array)
		return array.Items, err
	}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// judge applies the words and the check of a string key, or of a list's item.
func (l *layer) judge(k *key, path, text string) bool {
	switch {
	case !utf8.ValidString(text):
		l.fail(path, "is not UTF-8", k.allowed())
	case len(k.enum) > 0 && !contains(k.enum, text):
		l.fail(path, quote(text)+" is none of them", oneOf(k.enum, "or"))
	case k.check != "" && !checks[k.check].ok(text):
		l.fail(path, shown(k, text)+" does not fit", k.allowed())
	default:
		return true
	}
	return false
}

func (l *layer) inRange(k *key, path string, n int64) (any, bool) {
	if n < k.min || n > k.max {
		return l.refuse(k, path, k.show(n)+" is out of range")
	}
	return k.typed(n), true
}

func (l *layer) tables(k *key, path string, in any) (any, bool) {
	list, ok := in.([]any)
	if !ok {
		return l.wrong(k, path, in, "a list of "+k.allowed())
	}
	out, good := make([]any, 0, len(list)), true
	for i, item := range list {
		full := path + "[" + strconv.Itoa(i) + "]"
		table, ok := item.(map[string]any)
		if !ok {
			l.wrong(k, full, item, k.allowed())
			good = false
			continue
		}
		for _, f := range k.fields {
			if _, given := table[f.name]; f.required && !given {
				l.fail(full, "has no "+f.name, k.allowed())
				good = false
			}
		}
		out = append(out, l.section(&key{fields: k.fields, kind: kindSection}, full, table))
	}
	return out, good
}

func (l *layer) strings(k *key, path string, in any) (any, bool) {
	list, ok := in.([]any)
	if !ok {
		return l.wrong(k, path, in, k.allowed())
	}
	out, good := make([]string, 0, len(list)), true
	for i, item := range list {
		full := path + "[" + strconv.Itoa(i) + "]"
		text, ok := item.(string)
		if !ok {
			l.wrong(k, full, item, k.allowed())
			good = false
			continue
		}
		if text, ok = l.expand(full, text); !ok || !l.judge(k, full, text) {
			good = false
			continue
		}
		out = append(out, text)
	}
	return out, good
}

func (l *layer) stringMap(k *key, path string, in any) (any, bool) {
	table, ok := in.(map[string]any)
	if !ok {
		return l.wrong(k, path, in, k.allowed())
	}
	out, good := map[string]any{}, true
	for name, item := range table {
		full := join(path, name)
		text, ok := item.(string)
		switch {
		case !isEnvName(name):
			l.fail(full, "is no name", "names that are not empty and have no = in them")
			good = false
			continue
		case !ok:
			l.wrong(k, full, item, "a string")
			good = false
			continue
		}
		if text, ok = l.expand(full, text); !ok {
			good = false
			continue
		}
		if strings.ContainsRune(text, 0) {
			l.fail(full, "has a NUL byte in it", "a string without one")
			good = false
			continue
		}
		out[name] = text
	}
	return out, good
}

// wrong refuses a value of another type.
func (l *layer) wrong(k *key, path string, in any, allowed string) (any, bool) {
	what := "is " + typeName(in)
	switch v := in.(type) {
	case int64, float64, bool:
		if !k.secret {
			what += fmt.Sprintf(" (%v)", v)
		}
	}
	l.fail(path, what, allowed)
	return nil, false
}

func (l *layer) refuse(k *key, path, problem string) (any, bool) {
	l.fail(path, problem, k.allowed())
	return nil, false
}

var reference = regexp.MustCompile(`\$\{env:([^}]*)\}?`)

// expand replaces each ${env:NAME}. A variable that is not set is an error that names it; one that is set but empty is empty.
func (l *layer) expand(path, text string) (string, bool) {
	if !strings.Contains(text, "${env:") {
		return text, true
	}
	var problem error
	out := reference.ReplaceAllStringFunc(text, func(match string) string {
		name, closed := strings.CutSuffix(strings.TrimPrefix(match, "${env:"), "}")
		switch {
		case !closed:
			problem = errors.New("has a ${env: without its }")
			return ""
		case name == "":
			problem = errors.New("has a ${env:} without a name")
			return ""
		}
		value, ok := l.env(name)
		if !ok {
			problem = fmt.Errorf("the environment variable %s is not set", clean(name))
		}
		return value
	})
	if problem != nil {
		l.fail(path, problem.Error(), "${env:NAME} of a variable that is set")
		return "", false
	}
	return out, true
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	default:
		return "a date or time"
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// quote shows what somebody wrote on one line, cut at 64 characters.
func quote(s string) string { return strconv.Quote(cut(s)) }

// clean is quote without the quotes, for names inside a sentence.
func clean(s string) string { return strings.Trim(quote(s), `"`) }

func cut(s string) string {
	if runes := []rune(s); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return s
}

func shown(k *key, text string) string {
	if k.secret {
		return "the value"
	}
	return quote(text)
}
