package config

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mask stands for every secret that is set.
const mask = "***"

// Entry is one key of the effective configuration.
type Entry struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // durations and sizes in their own notation, secrets masked
	Origin string `json:"origin"`
}

// Entries lists every key in the order of the documentation, secrets masked. Without [mcp] its keys are not in the list.
func (l *Loaded) Entries() []Entry {
	var out []Entry
	l.walk(func(path string, k *key, v any) {
		out = append(out, Entry{Key: path, Value: v, Origin: l.shownOrigin(path, k)})
	})
	return out
}

// WriteJSON writes the entries as an array of {key, value, origin}.
func (l *Loaded) WriteJSON(w io.Writer) error {
	text, err := json.Marshal(l.Entries(), json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// WriteTOML writes the effective configuration as a file that could be read again (but for the masked secrets), with the
// origin of each key behind it.
func (l *Loaded) WriteTOML(w io.Writer) error {
	var b bytes.Buffer
	if l.File == "" {
		b.WriteString("# no file was read: this is the built-in default with the environment and flags\n")
	}
	if l.MCP == nil {
		b.WriteString("# there is no [mcp]: no facade, no token\n")
	}
	section, tables := "", []func(){}
	l.walk(func(path string, k *key, v any) {
		head, name, _ := strings.Cut(path, ".")
		if head != section {
			for _, write := range tables {
				write()
			}
			section, tables = head, nil
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		origin := l.shownOrigin(path, k)
		if list, ok := v.([]any); ok && k.kind == kindTables && len(list) > 0 {
			tables = append(tables, func() { writeTables(&b, path, k, list, origin) }) // after the plain keys, as TOML wants it
			return
		}
		fmt.Fprintf(&b, "%s = %s  # %s\n", name, tomlValue(v), origin)
	})
	for _, write := range tables {
		write()
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (l *Loaded) shownOrigin(path string, k *key) string {
	if k.kind == kindStringMap {
		return l.tableOrigin(path)
	}
	return l.Origin(path).String()
}

func writeTables(b *bytes.Buffer, path string, k *key, list []any, origin string) {
	for _, item := range list {
		fmt.Fprintf(b, "\n[[%s]]  # %s\n", path, origin)
		table := item.(map[string]any)
		for _, f := range k.fields {
			if v, ok := table[f.name]; ok {
				fmt.Fprintf(b, "%s = %s\n", f.name, tomlValue(v))
			}
		}
	}
}

// walk visits the leaves in the order of the struct.
func (l *Loaded) walk(visit func(path string, k *key, v any)) {
	root := reflect.ValueOf(l.Config)
	for _, section := range schema.fields {
		part := root.FieldByIndex(fieldOf(root.Type(), section.name))
		if part.Kind() == reflect.Pointer {
			if part.IsNil() {
				continue
			}
			part = part.Elem()
		}
		for _, k := range section.fields {
			if k.seconds == nil {
				visit(section.name+"."+k.name, k, shownValue(k, part.FieldByIndex(fieldOf(part.Type(), k.name))))
			}
		}
	}
}

func fieldOf(t reflect.Type, name string) []int {
	for field := range t.Fields() {
		if field.Tag.Get("koanf") == name {
			return field.Index
		}
	}
	panic("config: no field " + name)
}

// shownValue is a value as people write it.
func shownValue(k *key, v reflect.Value) any {
	switch k.kind {
	case kindDuration:
		return formatDuration(time.Duration(v.Int()))
	case kindSize:
		return Size(v.Int()).String()
	case kindString:
		if k.secret && v.String() != "" {
			return mask
		}
		return v.String()
	case kindStringMap:
		table := map[string]any{}
		for name, item := range v.Seq2() {
			table[name.String()] = item.String()
			if k.secret {
				table[name.String()] = mask
			}
		}
		return table
	case kindTables:
		list := make([]any, v.Len())
		for i := range list {
			table := map[string]any{}
			for _, f := range k.fields {
				table[f.name] = shownValue(f, v.Index(i).FieldByIndex(fieldOf(v.Index(i).Type(), f.name)))
			}
			list[i] = table
		}
		return list
	case kindStrings:
		return slices.AppendSeq([]string{}, slices.Values(v.Interface().([]string)))
	default:
		return v.Interface()
	}
}

func tomlValue(v any) string {
	switch v := v.(type) {
	case string:
		return tomlString(v)
	case []string:
		items := make([]string, len(v))
		for i, s := range v {
			items[i] = tomlString(s)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []any:
		return "[]"
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			names[i] = tomlString(name) + " = " + tomlString(v[name].(string))
		}
		if len(names) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(names, ", ") + " }"
	default:
		return fmt.Sprint(v)
	}
}

// tomlString is a basic string: printable text stays, the rest is escaped, so one key is one line.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, "\\U%08X", r)
		default:
			fmt.Fprintf(&b, "\\u%04X", r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
