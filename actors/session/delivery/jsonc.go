package delivery

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonDocument is JSON with comments and trailing commas.
type jsonDocument struct {
	text    []byte
	root    *hujson.Object
	start   int // of the root's bracket
	decoded map[string]any
}

func readJSON(text []byte) (document, error) {
	value, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocument, err)
	}
	root, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%w: it is no object", errNoDocument)
	}
	d := &jsonDocument{text: text, root: root, start: value.StartOffset}
	plain := value.Clone()
	plain.Standardize()
	if err := json.Unmarshal(plain.Pack(), &d.decoded, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocument, err)
	}
	return d, nil
}

func (d *jsonDocument) all() map[string]any { return d.decoded }

// member finds a member by its name: -1 when there is none.
func member(o *hujson.Object, name string) (int, error) {
	at := -1
	for i := range o.Members {
		literal, ok := o.Members[i].Name.Value.(hujson.Literal)
		if !ok || literal.String() != name {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("%w: %s", errTwice, name)
		}
		at = i
	}
	return at, nil
}

// table finds the object of that name: nil when there is none.
func (d *jsonDocument) table(name string) (*hujson.Object, *hujson.Value, error) {
	at, err := member(d.root, name)
	if err != nil || at < 0 {
		return nil, nil, err
	}
	value := &d.root.Members[at].Value
	o, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s is no object", errShape, name)
	}
	return o, value, nil
}

func (d *jsonDocument) entry(table, name string) (any, bool, error) {
	o, _, err := d.table(table)
	if err != nil || o == nil {
		return nil, false, err
	}
	at, err := member(o, name)
	if err != nil || at < 0 {
		return nil, false, err
	}
	plain := o.Members[at].Value.Clone()
	plain.Standardize()
	var value any
	if json.Unmarshal(plain.Pack(), &value, jsontext.AllowInvalidUTF8(true)) == nil {
		return value, true, nil
	}
	return plain.String(), true, nil // a name that stands twice inside it makes it nobody's that we know
}

func (d *jsonDocument) insert(table, name string, entry []pair) (change, error) {
	o, value, err := d.table(table)
	if err != nil {
		return change{}, err
	}
	body := text(name) + ": " + object(entry)
	if o == nil {
		return first(d.start, len(d.root.Members) > 0, indent(d.root), text(table)+": {"+body+"}"), nil
	}
	return first(value.StartOffset, len(o.Members) > 0, indent(o), body), nil
}

// first puts a member, or an element, before all others: right behind the bracket, so that no comment changes its place.
func first(bracket int, others bool, indent, body string) change {
	if others {
		body += ","
		if indent == "" {
			body += " "
		}
	}
	return change{bracket + 1, bracket + 1, indent + body}
}

// indent is the line break and the space that stand before the first member: "" when it stands on the bracket's line.
func indent(o *hujson.Object) string {
	if len(o.Members) == 0 {
		return ""
	}
	return lineOf(o.Members[0].Name.BeforeExtra)
}

func lineOf(extra hujson.Extra) string {
	gap := string(extra)
	i := strings.LastIndexByte(gap, '\n')
	if i < 0 || strings.TrimLeft(gap[i:], " \t\r\n") != "" {
		return ""
	}
	if i > 0 && gap[i-1] == '\r' {
		i--
	}
	return gap[i:]
}

func (d *jsonDocument) remove(table, name string) (change, error) {
	o, value, err := d.table(table)
	if err != nil || o == nil {
		return change{}, err
	}
	at, err := member(o, name)
	if err != nil || at < 0 {
		return change{}, err
	}
	spans := make([][2]int, len(o.Members))
	for i, m := range o.Members {
		spans[i] = [2]int{m.Name.StartOffset, m.Value.EndOffset}
	}
	return d.cut(value.StartOffset, spans, at), nil
}

// cut takes one member or element out, with the comma and the space that belong to it. Comments before it stay: they may be about
// more. bracket is where the list opens.
func (d *jsonDocument) cut(bracket int, spans [][2]int, at int) change {
	from, to := spans[at][0], spans[at][1]
	switch comma := d.comma(to); {
	case comma >= 0:
		to = comma + 1
	case at > 0: // the last one: the comma before it goes
		before := d.comma(spans[at-1][1])
		between := string(d.text[before+1 : from])
		if strings.TrimLeft(between, " \t\r\n") == "" {
			between = "" // else a comment: it stays
		}
		return change{before, to, between}
	}
	least := bracket + 1
	if at > 0 {
		least = d.comma(spans[at-1][1]) + 1
	}
	for from > least && isSpace(d.text[from-1]) {
		from--
	}
	return change{from, to, ""}
}

// comma finds the comma behind a value, past space and comments: -1 when none follows.
func (d *jsonDocument) comma(i int) int {
	for i < len(d.text) {
		switch rest := d.text[i:]; {
		case rest[0] == ',':
			return i
		case isSpace(rest[0]):
			i++
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return -1
			}
			i += end + 1
		case bytes.HasPrefix(rest, []byte("/*")):
			i += bytes.Index(rest, []byte("*/")) + 2
		default:
			return -1
		}
	}
	return -1
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// list finds the array of that name: nil when there is none.
func (d *jsonDocument) list(name string) (*hujson.Array, *hujson.Value, error) {
	at, err := member(d.root, name)
	if err != nil || at < 0 {
		return nil, nil, err
	}
	value := &d.root.Members[at].Value
	a, ok := value.Value.(*hujson.Array)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s is no list", errShape, name)
	}
	return a, value, nil
}

func element(a *hujson.Array, text string) int {
	for i := range a.Elements {
		if literal, ok := a.Elements[i].Value.(hujson.Literal); ok && literal.Kind() == '"' && literal.String() == text {
			return i
		}
	}
	return -1
}

func (d *jsonDocument) granted(list, text string) (bool, error) {
	a, _, err := d.list(list)
	return a != nil && element(a, text) >= 0, err
}

func (d *jsonDocument) grant(list, what string) (change, error) {
	a, value, err := d.list(list)
	if err != nil {
		return change{}, err
	}
	if a == nil {
		return first(d.start, len(d.root.Members) > 0, indent(d.root), text(list)+": ["+text(what)+"]"), nil
	}
	gap := ""
	if len(a.Elements) > 0 {
		gap = lineOf(a.Elements[0].BeforeExtra)
	}
	return first(value.StartOffset, len(a.Elements) > 0, gap, text(what)), nil
}

// revoke takes the first one out; a list that has it twice is gone through again.
func (d *jsonDocument) revoke(list, text string) (change, error) {
	a, value, err := d.list(list)
	if err != nil || a == nil {
		return change{}, err
	}
	at := element(a, text)
	if at < 0 {
		return change{}, nil
	}
	spans := make([][2]int, len(a.Elements))
	for i, e := range a.Elements {
		spans[i] = [2]int{e.StartOffset, e.EndOffset}
	}
	return d.cut(value.StartOffset, spans, at), nil
}
