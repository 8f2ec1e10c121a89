package delivery

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acpod/acpod/runtime/kernel"
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

// write puts it into the file, unless it is there, and records that first.
func (d *Deliverer) write(ctx context.Context, f *folder, w want, choice string) error {
	for range 8 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := d.writeOnce(f, w, choice); !errors.Is(err, errBusy) {
			return err
		}
	}
	return errBusy
}

func (d *Deliverer) writeOnce(f *folder, w want, choice string) error {
	value, err := w.value()
	if err != nil {
		return err
	}
	was, err := f.load(w.path)
	if err != nil {
		return err
	}
	next := written{Root: f.path, Path: w.path, TOML: w.toml, Table: w.table, Name: w.name, Grant: w.entry == nil, Digest: digest(value), Proxy: w.proxy, Choice: choice, Pod: d.pod}
	known := d.record.of(next)
	if len(known) > 0 {
		last := known[len(known)-1]
		next.Created, next.Made, next.Mode = last.Created, last.Made, last.Mode
	}
	text, kept, err := d.compose(was, w, &next, known)
	if err != nil || text == nil {
		if err == nil && kept != nil && (kept.Choice != choice || kept.Pod != d.pod) {
			kept.Choice, kept.Pod = choice, d.pod
			err = d.record.settled(next, *kept)
		}
		return err
	}
	if f.readOnly(was) {
		return errReadOnly
	}
	if len(known) == 0 {
		next.Created = was.info == nil
		if was.info != nil {
			next.Mode = uint32(was.info.Mode().Perm())
		}
	}
	if err := d.record.put(next); err != nil {
		return fmt.Errorf("cannot be noted in the state folder: %w", plainly(err))
	}
	made, err := f.store(was, text, 0o600)
	if err != nil {
		return errors.Join(err, d.record.settled(next, known...))
	}
	next.Made = append(next.Made, made...)
	return d.record.settled(next, next)
}

// compose says what the file becomes, and fills in what is recorded of it. A nil text is no change; kept is then what is recorded already.
func (d *Deliverer) compose(was found, w want, next *written, known []written) (text []byte, kept *written, err error) {
	if len(bytes.TrimSpace(was.text)) == 0 && w.entry != nil {
		next.Inserted = wholeFile(w)
		return append(bytes.Clone(was.text), next.Inserted...), nil, nil
	}
	doc, err := read(w.toml, was.text)
	if err != nil {
		return nil, nil, err
	}
	text = was.text
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

// erase takes out of a file what was written into it, if it still is that.
func (d *Deliverer) erase(ctx context.Context, w written) error {
	f, err := openFolder(w.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return d.record.settled(w)
	}
	if err != nil {
		return plainly(err)
	}
	defer f.close()
	for range 8 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err = d.eraseOnce(f, w); !errors.Is(err, errBusy) {
			break
		}
	}
	if err != nil {
		return err
	}
	return d.record.settled(w)
}

func (d *Deliverer) eraseOnce(f *folder, w written) error {
	was, err := f.load(w.Path)
	if err != nil || was.info == nil {
		return err
	}
	if len(bytes.TrimSpace(was.text)) == 0 {
		return nil
	}
	doc, err := read(w.TOML, was.text)
	if err != nil {
		return err
	}
	value, found, err := present(doc, w)
	switch {
	case err != nil || !found:
		return err
	case digest(value) != w.Digest && recorded(d.record.of(w), digest(value)) == nil:
		d.log.Info("an entry that this pod wrote was changed since: it is kept", "file", kernel.Escape(w.Path, 200), "entry", w.Name)
		return nil
	}
	text, err := cutOut(was.text, doc, w)
	if err != nil {
		return err
	}
	if w.Created && empty(text, w.Table) {
		return f.discard(was, w.Made)
	}
	mode := asItWas(was)
	if w.Mode != 0 {
		mode = fs.FileMode(w.Mode).Perm()
	}
	_, err = f.store(was, text, mode)
	return err
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
