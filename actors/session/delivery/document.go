package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// document is one configuration file, read: what is asked of both syntaxes. It is changed by byte ranges, so that all else stays as it was.
type document interface {
	// entry gives the value of the server of that name, decoded. It is an error when the table is none, or a name stands twice.
	entry(table, name string) (value any, found bool, err error)
	// insert gives the change that adds a server which is not there.
	insert(table, name string, entry []pair) (change, error)
	// remove gives the change that takes a server out.
	remove(table, name string) (change, error)
	// granted tells whether a list of texts has that one, grant adds it, and revoke takes it out.
	granted(list, text string) (bool, error)
	grant(list, text string) (change, error)
	revoke(list, text string) (change, error)
	// all is the whole file, decoded.
	all() map[string]any
}

// change replaces text[from:to].
type change struct {
	from, to int
	with     string
}

func (c change) apply(text []byte) []byte {
	return slices.Concat(text[:c.from], []byte(c.with), text[c.to:])
}

var (
	errNoDocument = errors.New("cannot be read")
	errTwice      = errors.New("has the same name twice")
	errShape      = errors.New("is not shaped as its agent wants it")
	errSpoilt     = errors.New("would not be the same but for the change")
)

// values bounds how many things stand in a file: a reader needs some 3 KiB for each, with all that becomes garbage, and a stack as deep as they are nested.
const values = 8 << 10

// Footprint is what the one file that is read at a time costs at most, read twice and changed.
const Footprint = 32 << 20

// read reads the text of a configuration file.
func read(toml bool, text []byte) (document, error) {
	n := 0
	for _, c := range text {
		if c == ',' || c == '[' || c == '{' || toml && c == '=' {
			n++
		}
	}
	if n > values {
		return nil, fmt.Errorf("%w: it has more than %d values", errNoDocument, values)
	}
	if toml {
		return readTOML(text)
	}
	return readJSON(text)
}

// changed makes the change, and reads what came of it: everything but what stands at path must be as it was.
func changed(toml bool, text []byte, before document, c change, path ...string) ([]byte, error) {
	out := c.apply(text)
	after, err := read(toml, out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpoilt, err)
	}
	if !reflect.DeepEqual(without(before.all(), path), without(after.all(), path)) {
		return nil, errSpoilt
	}
	return out, nil
}

// without is the file less what stands at path, and less the table or list that held it when nothing else does.
func without(all map[string]any, path []string) map[string]any {
	out := make(map[string]any, len(all))
	for name, value := range all {
		if name != path[0] {
			out[name] = value
			continue
		}
		switch held := value.(type) {
		case map[string]any:
			less := make(map[string]any, len(held))
			for inner, v := range held {
				if inner != path[1] {
					less[inner] = v
				}
			}
			if len(less) > 0 {
				out[name] = less
			}
		case []any:
			less := slices.DeleteFunc(slices.Clone(held), func(v any) bool { return v == any(path[1]) })
			if len(less) > 0 {
				out[name] = less
			}
		default:
			out[name] = value
		}
	}
	return out
}

// digest stands for a value, whatever its spaces, escapes and order are.
func digest(value any) string {
	canonical, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
