package delivery

import (
	"bytes"
	"encoding/json/v2"
	"strings"
)

// want is one thing that has to stand in a file of an agent's.
type want struct {
	path  string // below the folder
	toml  bool
	table string // of servers, or the list of grants
	name  string // of the server, or what is granted
	entry []pair // nil: it is a grant
	ours  func(value any) bool
	proxy string // the address of the session's proxy that it names
}

// OwnError says that a file names the server openab in a way that is not ours: it is kept.
type OwnError struct{ Usable bool }

func (e *OwnError) Error() string {
	if e.Usable {
		return "has an entry openab that is the operator's own; it is kept, and it leads to this pod"
	}
	return "has an entry openab that is not this pod's; it is kept: remove it, or let it name this pod's facade and " + TokenVariable
}

// value is the entry as a reader of the file sees it.
func (w *want) value() (any, error) {
	if w.entry == nil {
		return w.name, nil
	}
	if !w.toml {
		var value any
		err := json.Unmarshal([]byte(object(w.entry)), &value)
		return value, err
	}
	c, _ := (&tomlDocument{}).insert(w.table, w.name, w.entry)
	d, err := readTOML([]byte(c.with))
	if err != nil {
		return nil, err
	}
	value, _, err := d.entry(w.table, w.name)
	return value, err
}

// compose says what the file becomes, and fills in what is recorded of it. A nil text is no change; kept is then what is recorded already.
func (d *Deliverer) compose(was []byte, w want, next *written, known []written) (text []byte, kept *written, err error) {
	if len(bytes.TrimSpace(was)) == 0 && w.entry != nil {
		next.Inserted = wholeFile(w)
		return append(bytes.Clone(was), next.Inserted...), nil, nil
	}
	doc, err := read(w.toml, was)
	if err != nil {
		return nil, nil, err
	}
	text = was
	there, found, err := present(doc, *next)
	if err != nil {
		return nil, nil, err
	}
	if found {
		is := digest(there)
		mine := recorded(known, is)
		switch {
		case is == next.Digest:
			return nil, mine, nil // if it is not recorded, somebody else wrote the very same
		case mine == nil && (w.ours == nil || !w.ours(there)):
			return nil, nil, &OwnError{Usable: d.usable(there)}
		}
		c, err := doc.remove(w.table, w.name)
		if err != nil {
			return nil, nil, err
		}
		if text, err = changed(w.toml, text, doc, c, w.table, w.name); err != nil {
			return nil, nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			next.Inserted = wholeFile(w)
			return append(bytes.Clone(text), next.Inserted...), nil, nil
		}
		if doc, err = read(w.toml, text); err != nil {
			return nil, nil, err
		}
	}
	c, err := add(doc, w)
	if err != nil {
		return nil, nil, err
	}
	next.Inserted = c.with
	text, err = changed(w.toml, text, doc, c, w.table, w.name)
	return text, nil, err
}

func add(doc document, w want) (change, error) {
	if w.entry == nil {
		return doc.grant(w.table, w.name)
	}
	return doc.insert(w.table, w.name, w.entry)
}

// wholeFile is the text of a file that holds the entry alone.
func wholeFile(w want) string {
	if w.toml {
		c, _ := (&tomlDocument{}).insert(w.table, w.name, w.entry)
		return c.with
	}
	return `{` + text(w.table) + `:{` + text(w.name) + `:` + object(w.entry) + "}}\n"
}

// present is what stands at a place now.
func present(doc document, w written) (value any, found bool, err error) {
	if w.Grant {
		found, err = doc.granted(w.Table, w.Name)
		return w.Name, found, err
	}
	return doc.entry(w.Table, w.Name)
}

func recorded(known []written, digest string) *written {
	for i := range known {
		if known[i].Digest == digest {
			return &known[i]
		}
	}
	return nil
}

// usable tells whether an operator's own entry leads to this pod's facade with the session's token.
func (d *Deliverer) usable(value any) bool {
	entry, ok := value.(map[string]any)
	if !ok || d.cfg.FacadeURL == "" {
		return false
	}
	here := false
	for _, key := range []string{"url", "httpUrl"} {
		here = here || entry[key] == d.cfg.FacadeURL
	}
	all, err := json.Marshal(entry)
	return here && err == nil && strings.Contains(string(all), TokenVariable)
}

// cutOut takes out the very bytes that were put in, where they still stand as they did; else what the file's syntax says belongs to the entry.
func cutOut(text []byte, doc document, w written) ([]byte, error) {
	if at := bytes.Index(text, []byte(w.Inserted)); at >= 0 && w.Inserted != "" && bytes.Count(text, []byte(w.Inserted)) == 1 {
		c := change{at, at + len(w.Inserted), ""}
		rest := c.apply(text)
		if len(bytes.TrimSpace(rest)) == 0 {
			return rest, nil
		}
		if out, err := changed(w.TOML, text, doc, c, w.Table, w.Name); err == nil {
			return out, nil
		}
	}
	c, err := doc.remove(w.Table, w.Name)
	if w.Grant {
		c, err = doc.revoke(w.Table, w.Name)
	}
	if err != nil {
		return nil, err
	}
	return changed(w.TOML, text, doc, c, w.Table, w.Name)
}

// empty tells whether nothing is left in a file but the brackets around what was there.
func empty(text []byte, table string) bool {
	bare := strings.Join(strings.Fields(string(text)), "")
	return bare == "" || bare == "{}" || bare == `{"`+table+`":{}}`
}
