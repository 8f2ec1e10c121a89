package delivery

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlDocument is TOML: a server is a table of its own, at the end of the file.
type tomlDocument struct {
	text    []byte
	decoded map[string]any
}

func readTOML(text []byte) (document, error) {
	d := &tomlDocument{text: text, decoded: map[string]any{}}
	if err := toml.Unmarshal(text, &d.decoded); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocument, err)
	}
	return d, nil
}

func (d *tomlDocument) all() map[string]any { return d.decoded }

func (d *tomlDocument) entry(table, name string) (any, bool, error) {
	held, there := d.decoded[table]
	if !there {
		return nil, false, nil
	}
	servers, ok := held.(map[string]any)
	if !ok {
		return nil, false, fmt.Errorf("%w: %s is no table", errShape, table)
	}
	value, found := servers[name]
	return value, found, nil
}

func (d *tomlDocument) insert(table, name string, entry []pair) (change, error) {
	var b strings.Builder
	end := "\n"
	if at := bytes.IndexByte(d.text, '\n'); at > 0 && d.text[at-1] == '\r' { // as the lines of the file end
		end = "\r\n"
	}
	if n := len(d.text); n > 0 {
		if d.text[n-1] != '\n' {
			b.WriteString(end)
		}
		b.WriteString(end)
	}
	fmt.Fprintf(&b, "[%s.%s]%s", table, name, end)
	for _, p := range entry {
		fmt.Fprintf(&b, "%s = %s%s", p.name, p.value, end)
	}
	return change{len(d.text), len(d.text), b.String()}, nil
}

var errNoTable = errors.New("has the server not as a table of its own")

// remove takes out the lines from the table's header to its last key. A table that has further tables below it is left to who made them.
func (d *tomlDocument) remove(table, name string) (change, error) {
	from, to, inside := -1, -1, false
	var p unstable.Parser
	p.Reset(d.text)
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			inside = false
			var keys []string
			start := -1
			for it := e.Key(); it.Next(); {
				key := it.Node()
				if start < 0 {
					start = int(key.Raw.Offset)
				}
				keys = append(keys, string(key.Data))
			}
			if len(keys) < 2 || keys[0] != table || keys[1] != name {
				continue
			}
			if len(keys) > 2 || e.Kind == unstable.ArrayTable || from >= 0 {
				return change{}, errNoTable
			}
			from = bytes.LastIndexByte(d.text[:start], '\n') + 1
			inside, to = true, d.line(start)
		case unstable.KeyValue:
			if inside {
				to = d.line(int(e.Raw.Offset) + int(e.Raw.Length) - 1)
			}
		}
	}
	if err := p.Error(); err != nil {
		return change{}, err
	}
	if from < 0 {
		return change{}, errNoTable
	}
	if before := bytes.TrimRight(d.text[:from], " \t\r\n"); to == len(d.text) || len(before) == 0 { // the empty line before it goes with it
		if at := bytes.IndexByte(d.text[len(before):from], '\n'); at >= 0 && len(before) > 0 {
			from = len(before) + at + 1
		}
	}
	return change{from, to, ""}, nil
}

// line is the end of the line in which that byte stands.
func (d *tomlDocument) line(at int) int {
	if n := bytes.IndexByte(d.text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(d.text)
}

var errNoGrants = errors.New("has no such lists")

func (d *tomlDocument) granted(string, string) (bool, error)  { return false, nil }
func (d *tomlDocument) grant(string, string) (change, error)  { return change{}, errNoGrants }
func (d *tomlDocument) revoke(string, string) (change, error) { return change{}, errNoGrants }
