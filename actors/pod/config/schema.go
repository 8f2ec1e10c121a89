package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// kind is the shape that a key's value has.
type kind uint8

const (
	kindString kind = iota
	kindBool
	kindInt
	kindDuration
	kindSize
	kindStrings   // list of strings
	kindStringMap // table of strings with free names
	kindTables    // list of tables of one shape
	kindSection   // table with known names
)

// key is one node of the schema: what the struct tags of [Config] say, ready to judge values.
type key struct {
	name     string
	kind     kind
	fields   []*key // of a section and of each table of kindTables, in the order of the struct
	min, max int64  // inclusive; of int, duration (ns) and size (bytes)
	enum     []string
	check    string
	secret   bool
	required bool
	seconds  *key // the key that this whole number of seconds stands for: a former name that is still accepted
}

// schema is read once from the struct; a malformed tag is a mistake of ours and panics in every test.
var schema = section("", reflect.TypeFor[Config]())

func section(name string, t reflect.Type) *key {
	k := &key{name: name, kind: kindSection}
	for field := range t.Fields() {
		f := newKey(field)
		k.fields = append(k.fields, f)
		if former := field.Tag.Get("seconds"); former != "" {
			k.fields = append(k.fields, &key{
				name: former, kind: kindInt, seconds: f, min: (f.min + int64(time.Second) - 1) / int64(time.Second), max: f.max / int64(time.Second),
			})
		}
	}
	return k
}

func newKey(field reflect.StructField) *key {
	tag := field.Tag
	k := &key{
		name: tag.Get("koanf"), check: tag.Get("check"),
		secret: tag.Get("secret") != "", required: tag.Get("required") != "",
		enum: words(tag.Get("enum")),
	}
	if _, known := checks[k.check]; k.check != "" && !known {
		panic("config: no check named " + k.check)
	}
	t := field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		k.kind = kindDuration
		k.min, k.max = mustBound(k, tag.Get("min")), mustBound(k, tag.Get("max"))
	case t == reflect.TypeFor[Size]():
		k.kind = kindSize
		k.min, k.max = mustBound(k, tag.Get("min")), mustBound(k, tag.Get("max"))
	case t.Kind() == reflect.Int:
		k.kind = kindInt
		k.min, k.max = mustBound(k, tag.Get("min")), mustBound(k, tag.Get("max"))
	case t.Kind() == reflect.Bool:
		k.kind = kindBool
	case t.Kind() == reflect.String:
		k.kind = kindString
	case t.Kind() == reflect.Map:
		k.kind = kindStringMap
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		k.kind = kindStrings
	case t.Kind() == reflect.Slice:
		k.kind, k.fields = kindTables, section("", t.Elem()).fields
	case t.Kind() == reflect.Struct:
		k.kind, k.fields = kindSection, section("", t).fields
	default:
		panic("config: no kind for " + field.Name)
	}
	return k
}

func words(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}

func mustBound(k *key, text string) int64 {
	n, err := k.number(text)
	if err != nil {
		panic(fmt.Sprintf("config: bound %q of %s: %v", text, k.name, err))
	}
	return n
}

// number reads text in the key's own notation.
func (k *key) number(text string) (int64, error) {
	switch k.kind {
	case kindDuration:
		d, err := time.ParseDuration(text)
		return int64(d), err
	case kindSize:
		var s Size
		err := s.UnmarshalText([]byte(text))
		return int64(s), err
	default:
		return strconv.ParseInt(text, 10, 64)
	}
}

// show prints n in the key's own notation.
func (k *key) show(n int64) string {
	switch k.kind {
	case kindDuration:
		return formatDuration(time.Duration(n))
	case kindSize:
		return Size(n).String()
	default:
		return strconv.FormatInt(n, 10)
	}
}

// typed gives n the Go type of the key's field.
func (k *key) typed(n int64) any {
	switch k.kind {
	case kindDuration:
		return time.Duration(n)
	case kindSize:
		return Size(n)
	default:
		return int(n)
	}
}

// field finds a key of a section by its name, which is compared with case.
func (k *key) field(name string) *key {
	for _, f := range k.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// allowed says in words what the key takes.
func (k *key) allowed() string {
	switch k.kind {
	case kindBool:
		return "true or false"
	case kindInt:
		return fmt.Sprintf("a whole number from %d to %d", k.min, k.max)
	case kindDuration:
		return fmt.Sprintf("a duration from %s to %s, such as \"25s\"", k.show(k.min), k.show(k.max))
	case kindSize:
		return fmt.Sprintf("a size from %s to %s, such as \"8MiB\"", k.show(k.min), k.show(k.max))
	case kindStringMap:
		return "a table of strings"
	case kindTables, kindSection:
		names := make([]string, 0, len(k.fields))
		for _, f := range k.fields {
			if f.seconds == nil {
				names = append(names, f.name)
			}
		}
		if k.kind == kindTables {
			return "tables with " + oneOf(names, "and")
		}
		return oneOf(names, "and")
	case kindStrings:
		if k.check != "" {
			return "a list of strings, each " + checks[k.check].allowed
		}
		return "a list of strings"
	default:
		switch {
		case len(k.enum) > 0:
			return oneOf(k.enum, "or")
		case k.check != "":
			return checks[k.check].allowed
		}
		return "a string"
	}
}

func oneOf(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// nearest is the name closest to what was written, when it is close enough to be a slip of the fingers.
func nearest(name string, fields []*key) string {
	best, distance := "", 3
	for _, f := range fields {
		if d := edits(name, f.name); d < distance {
			best, distance = f.name, d
		}
	}
	return best
}

// edits is the Levenshtein distance, for names of at most 64 bytes; longer ones are never a slip.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
