package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// recordSuffix marks the records in their folder.
const recordSuffix = ".groups"

// recordCompact is the size past which a record is written anew.
const recordCompact = 64 << 10

// record is the file in which a living pod keeps its groups, locked as long as it lives: the lock, unlike a pid in
// the file, ends with the pod whatever way it ends, and is right across containers that share the folder.
type record struct {
	f    *os.File
	size int
	boot string
}

// newRecord makes this pod's record. The folder is made when it is missing.
func newRecord(folder string) (*record, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	for range 10 {
		f, err := os.CreateTemp(folder, "pod-*"+recordSuffix)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil && linked(f) {
			r := &record{f: f, boot: bootID()}
			return r, r.rewrite(nil)
		}
		_ = f.Close() // a sweep came between: it was faster with the lock and has removed the file
	}
	return nil, errors.New("no record could be locked")
}

// linked tells whether the file still has a name.
func linked(f *os.File) bool {
	var s syscall.Stat_t
	return syscall.Fstat(int(f.Fd()), &s) == nil && s.Nlink > 0
}

// append keeps one line; a failure only costs the third net and is not worth an error.
func (r *record) append(line string, known book) {
	if r == nil {
		return
	}
	if r.size+len(line) > recordCompact {
		_ = r.rewrite(known)
		return
	}
	n, _ := r.f.WriteString(line)
	r.size += n
}

// rewrite starts the file anew with what is known.
func (r *record) rewrite(known book) error {
	var b strings.Builder
	fmt.Fprintf(&b, "boot %s\n", r.boot)
	for g := range known {
		b.WriteString(addLine(g))
	}
	if err := r.f.Truncate(0); err != nil {
		return err
	}
	if _, err := r.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := r.f.WriteString(b.String())
	r.size = n
	return err
}

// close unlocks the record, and removes it when nothing is left to be swept.
func (r *record) close(remove bool) {
	if r == nil || r.f == nil {
		return
	}
	if remove {
		_ = os.Remove(r.f.Name())
	}
	_ = r.f.Close()
	r.f = nil
}

// Sweep ends what pods that are gone have left, by the records in the folder: TERM, KILL after two seconds. Records
// of living pods are not touched. It returns the groups that it ended; a folder that does not exist holds none. A
// pod calls it at its start, before its first child.
func Sweep(folder string) ([]Group, error) {
	entries, err := os.ReadDir(folder) // no pattern: a folder may be called by what means something in one
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var groups []Group
	var records []*os.File
	defer func() {
		for _, f := range records {
			_ = f.Close()
		}
	}()
	var failed error
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), recordSuffix) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(folder, entry.Name()), os.O_RDWR, 0)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				failed = errors.Join(failed, err)
			}
			continue
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil || !linked(f) {
			_ = f.Close() // its pod lives, or another sweep has it
			continue
		}
		records = append(records, f)
		groups = append(groups, readRecord(f)...)
	}
	found := remaining(groups)
	left := endGroups(found, guardianGrace)
	if len(left) > 0 {
		return found, errors.Join(failed, fmt.Errorf("%d process groups of earlier pods live on, the first is %d", len(left), left[0].PGID))
	}
	for _, f := range records {
		failed = errors.Join(failed, os.Remove(f.Name()))
	}
	return found, failed
}

// readRecord returns the groups of a record; start times of another boot mean nothing.
func readRecord(r io.Reader) []Group {
	known := book{}
	lines := bufio.NewScanner(r)
	if !lines.Scan() || lines.Text() != "boot "+bootID() {
		return nil
	}
	for lines.Scan() {
		known.apply(lines.Text())
	}
	return known.groups()
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
