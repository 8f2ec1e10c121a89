package delivery

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/acpod/acpod/runtime/kernel"
)

// eraseAll takes out of their files what was written into them, if it still is that. The record forgets what is gone when all is done: if
// this process ends before, the next one finds that it is gone. failed is told what is not, and stays recorded.
func (d *Deliverer) eraseAll(ctx context.Context, list []written, failed func(written, error)) {
	known := d.record.places()
	var outcomes []outcome
	for _, in := range alike(list, func(w written) string { return w.Root }) {
		for _, w := range d.eraseIn(ctx, in, known, failed) {
			outcomes = append(outcomes, outcome{of: w.place()})
		}
	}
	if err := d.record.settled(outcomes...); err != nil {
		failed(list[0], plainly(err))
	}
}

// alike cuts a list into those that have the same key, in the order of the first of each.
func alike(list []written, key func(written) string) (groups [][]written) {
	at := map[string]int{}
	for _, w := range list {
		i, known := at[key(w)]
		if !known {
			i = len(groups)
			at[key(w)], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// eraseIn does that in one folder, and gives what is gone from the disk.
func (d *Deliverer) eraseIn(ctx context.Context, list []written, known map[place][]written, failed func(written, error)) (gone []written) {
	f, err := openFolder(list[0].Root)
	if errors.Is(err, fs.ErrNotExist) {
		return list
	}
	if err == nil {
		defer f.close()
		for _, in := range alike(list, func(w written) string { return w.Path }) {
			errs := d.eraseFrom(ctx, f, in, known)
			for i, w := range in {
				if errs[i] == nil {
					gone = append(gone, w)
				} else {
					failed(w, errs[i])
				}
			}
		}
		list, err = gone, f.sync()
	}
	if err == nil {
		return gone
	}
	for _, w := range list {
		failed(w, plainly(err))
	}
	return nil
}

// eraseFrom does that in one file: an error for each.
func (d *Deliverer) eraseFrom(ctx context.Context, f *folder, list []written, known map[place][]written) []error {
	errs := make([]error, len(list))
	err := errBusy
	for try := 0; try < 8 && errors.Is(err, errBusy); try++ {
		if err = context.Cause(ctx); err == nil {
			err = d.eraseOnce(f, list, known, errs)
		}
	}
	for i := range errs {
		if err != nil {
			errs[i] = err
		}
	}
	return errs
}

func (d *Deliverer) eraseOnce(f *folder, list []written, known map[place][]written, errs []error) error {
	was, err := f.load(list[0].Path)
	if err != nil || was.info == nil {
		return err
	}
	text, mode := was.text, fs.FileMode(0)
	var created *written
	for i, w := range list {
		rest, out, err := d.less(text, w, known[w.place()])
		if errs[i] = err; !out {
			continue
		}
		text = rest
		if mode == 0 { // the first saw the file before the others did
			mode = fs.FileMode(w.Mode).Perm()
		}
		if w.Created {
			created = &list[i]
		}
	}
	switch {
	case bytes.Equal(text, was.text):
		return nil
	case created != nil && empty(text, created.Table):
		return f.discard(was, created.Made)
	case mode == 0:
		mode = asItWas(was)
	}
	_, err = f.replace(was, text, mode)
	return err
}

// less is a text without what was written; out tells whether that stood there.
func (d *Deliverer) less(text []byte, w written, known []written) (rest []byte, out bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, false, nil
	}
	doc, err := read(w.TOML, text)
	if err != nil {
		return nil, false, err
	}
	value, found, err := present(doc, w)
	switch {
	case err != nil || !found:
		return nil, false, err
	case digest(value) != w.Digest && recorded(known, digest(value)) == nil:
		d.log.Info("an entry that this pod wrote was changed since: it is kept", "file", kernel.Escape(w.Path, 200), "entry", w.Name)
		return nil, false, nil
	}
	rest, err = cutOut(text, doc, w)
	return rest, err == nil, err
}
