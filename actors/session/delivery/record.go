package delivery

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/acpod/acpod/runtime/process"
)

// written is one thing that a pod has put into a file of an agent's. It is recorded before it is there.
type written struct {
	Root     string   `json:"root"` // agent.workdir, real
	Path     string   `json:"path"` // below it
	TOML     bool     `json:"toml,omitempty"`
	Table    string   `json:"table"`           // of servers, or the list of grants
	Name     string   `json:"name"`            // of the server, or what is granted
	Grant    bool     `json:"grant,omitempty"` // it is an element of a list
	Digest   string   `json:"sha256"`          // of the value: what has another is not ours any more
	Inserted string   `json:"inserted"`        // to the byte
	Created  bool     `json:"created,omitempty"`
	Made     []string `json:"made,omitempty"`  // folders made for it
	Mode     uint32   `json:"mode,omitempty"`  // permissions of the file before
	Proxy    string   `json:"proxy,omitempty"` // the address of the session's proxy that it names
	Choice   string   `json:"choice"`          // what was chosen then: see Deliverer.choice
	Pod      pod      `json:"pod"`             // who relies on it
}

// place is where something is written.
type place struct{ root, path, table, name string }

func (w written) place() place { return place{w.Root, w.Path, w.Table, w.Name} }

// pod is a process, by a name that no later one has.
type pod struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// thisPod is this process.
func thisPod() pod { return pod{os.Getpid(), born(os.Getpid())} }

// lives tells whether that process still runs.
func (p pod) lives() bool { return p.Start != 0 && born(p.PID) == p.Start }

// born is when a process started, in the kernel's ticks since boot; 0 = there is none.
func born(pid int) uint64 {
	_, start, err := process.Born(pid)
	if err != nil {
		return 0
	}
	return start
}

// record is the list of what was written, in the state folder. It is read and written under its lock.
type record struct {
	dir   string // "" = there is no state folder: what is written is known to this process alone
	list  []written
	aside error // one that could not be read was set aside
}

type recordFile struct {
	Version int       `json:"version"`
	Written []written `json:"written"`
}

const recordVersion = 1

// recordBytes bounds the record: some thousand places.
const recordBytes = 2 << 20

// lock waits until nobody else works with this state folder's record, and reads it. unlock ends that.
func (r *record) lock(ctx context.Context) (unlock func(), err error) {
	if r.dir == "" {
		return func() {}, nil
	}
	file, err := os.OpenFile(filepath.Join(r.dir, "delivery.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s is locked by another pod", file.Name()), file.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := r.load(); err != nil {
		if _, aside := errors.AsType[*RecordError](err); !aside {
			return nil, errors.Join(err, file.Close())
		}
		r.aside = err
	}
	return func() { _ = file.Close() }, nil
}

const lockPatience = 20 * time.Second

func (r *record) name() string { return filepath.Join(r.dir, "delivery.json") }

// load reads the record. One that cannot be read is set aside: what it named is then nobody's that we know, and stays.
func (r *record) load() error {
	r.list = nil
	file, err := os.OpenFile(r.name(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var read recordFile
	info, err := file.Stat()
	if err == nil && info.Size() <= recordBytes {
		if err = json.UnmarshalRead(file, &read); err == nil && read.Version != recordVersion {
			err = fmt.Errorf("version %d is not known", read.Version)
		}
	} else if err == nil {
		err = fmt.Errorf("it has more than %d bytes", recordBytes)
	}
	if err != nil {
		aside := r.name() + ".unreadable"
		if failed := os.Rename(r.name(), aside); failed != nil {
			return failed
		}
		return &RecordError{aside, err}
	}
	r.list = read.Written
	return nil
}

// RecordError says that the record of what was written was set aside.
type RecordError struct {
	Aside string
	Err   error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("the record of what was written into agents' configurations could not be read and is now %s: entries of former deliveries stay where they are (%v)", e.Aside, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// save writes the record, whole or not at all; it is on the disk then.
func (r *record) save() error {
	if r.dir == "" {
		return nil
	}
	text, err := json.Marshal(recordFile{recordVersion, slices.Concat([]written{}, r.list)})
	if err != nil {
		return err
	}
	if len(text) > recordBytes {
		return fmt.Errorf("%s would have more than %d bytes: remove the entries of folders that are not used any more, or set another agent.delivery for a while", r.name(), recordBytes)
	}
	state, err := openFolder(r.dir)
	if err != nil {
		return err
	}
	defer state.close()
	was, err := state.load("delivery.json")
	if err != nil && !errors.Is(err, errTooLarge) {
		return err
	}
	_, err = state.store(was, text, 0o600)
	return err
}

// put adds what is about to be written, all at once; what stood for those places stays beside it until settled says how it went.
func (r *record) put(list ...written) error {
	if len(list) == 0 {
		return nil
	}
	if len(r.list)+len(list) > manyPlaces { // folders come and go
		r.list = slices.DeleteFunc(r.list, func(old written) bool {
			_, err := os.Lstat(filepath.Join(old.Root, filepath.FromSlash(old.Path)))
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	before := len(r.list)
	r.list = append(r.list, list...)
	err := r.save()
	if err != nil {
		r.list = r.list[:before]
	}
	return err
}

// manyPlaces is when the record is looked through for files that are gone.
const manyPlaces = 1000

// outcome is all that is recorded of a place from then on.
type outcome struct {
	of   place
	kept []written
}

// settled leaves of all that is recorded of those places what is kept of each: the record is written once.
func (r *record) settled(list ...outcome) error {
	places, kept := map[place]bool{}, 0
	for _, o := range list {
		places[o.of] = true
		kept += len(o.kept)
	}
	before := len(r.list)
	r.list = slices.DeleteFunc(r.list, func(w written) bool { return places[w.place()] })
	if kept == 0 && before == len(r.list) {
		return nil
	}
	for _, o := range list {
		r.list = append(r.list, o.kept...)
	}
	return r.save()
}

// places is what is recorded of each: what was written last, and before that, what may still stand there.
func (r *record) places() map[place][]written {
	all := map[place][]written{}
	for _, w := range r.list {
		all[w.place()] = append(all[w.place()], w)
	}
	return all
}
