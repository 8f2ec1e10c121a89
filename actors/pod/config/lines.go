package config

import (
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions maps the full path of each key to the line where it stands.
type positions map[string]int

// of is the line of path, or of the nearest key around it; 0 when nothing around it is in the file.
func (p positions) of(path string) int {
	for {
		if line, ok := p[path]; ok {
			return line
		}
		at := strings.LastIndexAny(path, ".[")
		if at < 0 {
			return 0
		}
		path = path[:at]
	}
}

// keyLines walks the syntax tree of a text that is known to be TOML: the decoder gives values without their places, and the
// messages about them need lines.
func keyLines(text []byte) positions {
	w := lineWalk{found: positions{}, lists: map[string]int{}}
	for i, b := range text {
		if b == '\n' {
			w.newlines = append(w.newlines, i)
		}
	}
	parser := &unstable.Parser{}
	parser.Reset(text)
	here := ""
	for parser.NextExpression() {
		switch node := parser.Expression(); node.Kind {
		case unstable.Table, unstable.ArrayTable:
			here = w.header(node)
		case unstable.KeyValue:
			w.keyValue(here, node)
		}
	}
	return w.found
}

type lineWalk struct {
	found    positions
	lists    map[string]int // how many [[tables]] a path has so far
	newlines []int
}

func (w *lineWalk) note(path string, node *unstable.Node) {
	if _, known := w.found[path]; !known {
		w.found[path] = sort.SearchInts(w.newlines, int(node.Raw.Offset)) + 1
	}
}

// header is the path that [a.b] or [[a.b]] opens. A part that names a list of tables means its last element.
func (w *lineWalk) header(node *unstable.Node) string {
	path, key := "", node.Key()
	for key.Next() {
		part := key.Node()
		path = join(path, string(part.Data))
		w.note(path, part)
		if node.Kind == unstable.ArrayTable && key.IsLast() {
			w.lists[path]++
		}
		if n := w.lists[path]; n > 0 {
			path += "[" + strconv.Itoa(n-1) + "]"
			w.note(path, part)
		}
	}
	return path
}

func (w *lineWalk) keyValue(path string, node *unstable.Node) {
	key := node.Key()
	for key.Next() {
		path = join(path, string(key.Node().Data))
		w.note(path, key.Node())
	}
	w.value(path, node.Value())
}

// value descends into what may hold further keys.
func (w *lineWalk) value(path string, node *unstable.Node) {
	switch node.Kind {
	case unstable.InlineTable:
		for children := node.Children(); children.Next(); {
			w.keyValue(path, children.Node())
		}
	case unstable.Array:
		i := 0
		for children := node.Children(); children.Next(); {
			child := children.Node()
			if child.Kind == unstable.Comment {
				continue
			}
			full := path + "[" + strconv.Itoa(i) + "]"
			if child.Raw.Length > 0 {
				w.note(full, child)
			}
			w.value(full, child)
			i++
		}
	}
}
