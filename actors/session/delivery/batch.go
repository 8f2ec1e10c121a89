package delivery

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/acpod/acpod/runtime/kernel"
)

// job is one file, and what has to stand in it: what cannot be put in keeps out what comes after it.
type job struct {
	path     string
	wants    []want
	first    bool // without it there are no tools
	known    [][]written
	noted    []written // what may come to stand in it: recorded before it is written
	outcomes []outcome
	written  bool
	err      error
}

// fails tells whether nothing else is of use.
func (j *job) fails() bool {
	own, isOwn := errors.AsType[*OwnError](j.err)
	return j.first && j.err != nil && !(isOwn && own.Usable)
}

// writeAll writes all that an agent's configuration needs. The first place has to succeed; of the others, what is wrong is said.
func (d *Deliverer) writeAll(ctx context.Context, f *folder, profile *Profile, mode Mode, cwd, proxy, choice string) (reason string, err error) {
	jobs, said := d.jobs(f, profile, mode, cwd, proxy)
	d.perform(ctx, f, jobs, choice)
	for _, j := range jobs {
		if j.err == nil {
			continue
		}
		err := fmt.Errorf("%s %w", kernel.Escape(j.path, 200), told(j.err))
		if j.fails() {
			return "", err
		}
		d.log.Warn("an agent's configuration", "file", kernel.Escape(j.path, 200), "what", err.Error())
		said = append(said, err.Error())
	}
	return kernel.Escape(strings.Join(said, "; "), 400), nil
}

// jobs are the files of a profile, and what is wrong with those that cannot be told.
func (d *Deliverer) jobs(f *folder, profile *Profile, mode Mode, cwd, proxy string) (jobs []*job, said []string) {
	url := d.cfg.FacadeURL
	if proxy != "" {
		url = proxy
	}
	for i := range profile.Files {
		place := &profile.Files[i]
		entry := place.http(url)
		if mode == Bridge {
			entry = place.stdio(d.cfg.Bridge)
		}
		names, err := place.names(f, cwd)
		if err != nil {
			said = append(said, err.Error())
		}
		for _, name := range names {
			j := &job{path: name, first: i == 0, wants: []want{{path: name, toml: place.TOML, table: place.Servers, name: EntryName, entry: entry, proxy: proxy}}}
			if place.Workdir {
				j.wants[0].ours = staticEntry
			}
			if place.Grants != "" { // no grant without the entry
				j.wants = append(j.wants, want{path: name, table: place.Grants, name: "@" + EntryName, proxy: proxy})
			}
			jobs = append(jobs, j)
		}
	}
	return jobs, said
}

// perform looks at all files, records what may become of them, writes them, and records what became of them: the record is written twice,
// however many they are, and one text is in memory at a time.
func (d *Deliverer) perform(ctx context.Context, f *folder, jobs []*job, choice string) {
	known := d.record.places()
	for _, j := range jobs {
		for _, w := range j.wants {
			j.known = append(j.known, known[place{f.path, w.path, w.table, w.name}])
		}
		if j.err = context.Cause(ctx); j.err == nil {
			d.plan(f, j, choice)
		}
		if j.fails() {
			return
		}
	}
	d.note(jobs)
	for _, j := range jobs {
		if len(j.noted) > 0 {
			j.err = d.write(ctx, f, j, choice)
		}
		if j.fails() {
			break
		}
	}
	synced := f.sync()
	var outcomes []outcome
	for _, j := range jobs {
		if j.written && synced != nil { // both may be there after a crash
			j.err = synced
			continue
		}
		outcomes = append(outcomes, j.outcomes...)
	}
	if err := d.record.settled(outcomes...); err != nil {
		jobs[0].err = errors.Join(jobs[0].err, unnoted(err))
	}
}

func unnoted(err error) error {
	return fmt.Errorf("cannot be noted in the state folder: %w", plainly(err))
}

// plan finds out what would be written.
func (d *Deliverer) plan(f *folder, j *job, choice string) {
	c := d.composeFile(f, j, choice)
	j.noted, j.err = c.next, c.err
	if len(c.next) == 0 {
		j.outcomes = c.kept
		return
	}
	if f.readOnly(c.was) {
		j.noted, j.err = nil, errReadOnly
		return
	}
	j.restore()
}

// restore has all be recorded as it was before, of what was noted.
func (j *job) restore() {
	j.outcomes = nil
	for i, w := range j.wants {
		at := slices.IndexFunc(j.noted, func(n written) bool { return n.Table == w.table && n.Name == w.name })
		if at >= 0 {
			j.outcomes = append(j.outcomes, outcome{j.noted[at].place(), j.known[i]})
		}
	}
}

// settle has that be recorded of those places.
func (j *job) settle(list ...outcome) {
	for _, is := range list {
		j.outcomes = slices.DeleteFunc(j.outcomes, func(was outcome) bool { return was.of == is.of })
		j.outcomes = append(j.outcomes, is)
	}
}

// note records what may be written, before it is. When that is too much, the first file comes first.
func (d *Deliverer) note(jobs []*job) {
	var all []written
	for _, j := range jobs {
		all = append(all, j.noted...)
	}
	err := d.record.put(all...)
	if err == nil {
		return
	}
	without := jobs
	if first := jobs[0].noted; len(first) < len(all) && d.record.put(first...) == nil {
		without = jobs[1:]
	}
	for _, j := range without {
		if len(j.noted) > 0 {
			j.noted, j.outcomes, j.err = nil, nil, unnoted(err)
		}
	}
}

// composed is what a file becomes.
type composed struct {
	was  found
	text []byte
	next []written // what is new in it; none: it stays as it is
	kept []outcome // what is recorded already, and this pod relies on now
	err  error     // of what could not be put in beside that
}

func (d *Deliverer) composeFile(f *folder, j *job, choice string) (c composed) {
	if c.was, c.err = f.load(j.path); c.err != nil {
		return c
	}
	c.text = c.was.text
	for i, w := range j.wants {
		var value any
		if value, c.err = w.value(); c.err != nil {
			return c
		}
		next := written{Root: f.path, Path: w.path, TOML: w.toml, Table: w.table, Name: w.name, Grant: w.entry == nil, Digest: digest(value), Proxy: w.proxy, Choice: choice, Pod: d.pod}
		known := j.known[i]
		if len(known) > 0 {
			last := known[len(known)-1]
			next.Created, next.Made, next.Mode = last.Created, last.Made, last.Mode
		} else if next.Created = c.was.info == nil; !next.Created {
			next.Mode = uint32(c.was.info.Mode().Perm())
		}
		var text []byte
		var kept *written
		if text, kept, c.err = d.compose(c.text, w, &next, known); c.err != nil {
			return c
		}
		switch {
		case text != nil:
			c.text, c.next = text, append(c.next, next)
		case kept != nil && (kept.Choice != choice || kept.Pod != d.pod):
			mine := *kept
			mine.Choice, mine.Pod = choice, d.pod
			c.kept = append(c.kept, outcome{mine.place(), []written{mine}})
		}
	}
	return c
}

// write puts into a file what it needs, unless it is there by now. All of it has been recorded.
func (d *Deliverer) write(ctx context.Context, f *folder, j *job, choice string) error {
	for range 8 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := d.writeOnce(f, j, choice); !errors.Is(err, errBusy) {
			return err
		}
	}
	return errBusy
}

func (d *Deliverer) writeOnce(f *folder, j *job, choice string) error {
	c := d.composeFile(f, j, choice)
	if len(c.next) == 0 {
		j.settle(c.kept...)
		return c.err
	}
	if f.readOnly(c.was) {
		return errReadOnly
	}
	if !reflect.DeepEqual(c.next, j.noted) { // it has changed since
		if err := d.record.put(c.next...); err != nil {
			return unnoted(err)
		}
		j.noted = append(j.noted, c.next...)
		j.restore()
	}
	made, err := f.replace(c.was, c.text, 0o600)
	if err != nil {
		return err
	}
	j.written = true
	for _, next := range c.next {
		next.Made = slices.Concat(next.Made, made)
		j.settle(outcome{next.place(), []written{next}})
	}
	j.settle(c.kept...)
	return c.err
}
