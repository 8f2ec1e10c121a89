package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// folderName is that of the records, below the state directory.
const folderName = "sessions"

// Open takes the folder of records in a state directory, makes it if it is not there, removes what a dead pod left half written and reads
// what there is. The error says what to do; a record that cannot be read is none: it is set aside. Close it at the end.
func Open(stateDir string, opts Options) (*Files, error) {
	dir := filepath.Join(stateDir, folderName)
	s := &Files{dir: dir, opts: opts.withDefaults(), writes: make(chan struct{}, writers)}
	s.index = newIndex(s.opts)
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("the folder of sessions, %s: %w; %s", dir, err, s.fixDisk())
	}
	return s, nil
}

func (s *Files) open() (err error) {
	for _, dir := range []string{s.dir, filepath.Join(s.dir, podsFolder)} {
		if err := ownFolder(dir); err != nil {
			return err
		}
	}
	if s.folder, err = os.Open(s.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.folder.Close()
		}
	}()
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.lock.Close()
		}
	}()
	unlock, err := s.flock()
	if err != nil {
		return err
	}
	defer unlock()
	if s.pod, err = newPod(s.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.pod.close()
		}
	}()
	if err := errors.Join(buryPods(s.dir), s.sign()); err != nil {
		return err
	}
	if err := s.takeIn(); err != nil {
		return err
	}
	if err := errors.Join(s.syncFolder(), syncDir(filepath.Dir(s.dir))); err != nil {
		return err
	}
	s.bound()
	return nil
}

// ownFolder makes a folder that nobody else may look into.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// takeIn is what a pod does first: it removes the temporary files of dead pods, brings back what a newer acpod wrote if this is one, and
// reads all records.
func (s *Files) takeIn() error {
	damaged, newer := 0, 0
	err := s.eachFile(func(file string) error {
		path := filepath.Join(s.dir, file)
		if writer, _, ok := strings.Cut(file, "-"); ok && strings.HasSuffix(file, tempSuffix) {
			if writer != s.pod.name && !podLives(s.dir, writer) {
				_ = os.Remove(path)
			}
			return nil
		}
		n, ok := parseName(file, newerSuffix)
		if !ok {
			return nil
		}
		if r, _, err := readRecord(path); err == nil && nameOf(r.ID) == n && !exists(s.path(n)) {
			return os.Rename(path, s.path(n))
		}
		newer++
		return nil
	})
	if err != nil {
		return err
	}
	err = s.scan(func(n name, bad *damage) error {
		if errors.Is(bad, errNewer) {
			newer++
		} else {
			damaged++
		}
		s.aside.Add(1)
		return os.Rename(s.path(n), s.asideName(n, bad))
	})
	if damaged > 0 {
		s.opts.Log.Error("records of sessions cannot be read and were set aside: those sessions are not found again", "records", damaged, "folder", s.dir, "named", "*"+aside+"*")
	}
	if newer > 0 {
		s.opts.Log.Warn("records of sessions were written by a newer acpod: those sessions are found again when it runs", "records", newer, "folder", s.dir, "named", "*"+newerSuffix)
	}
	return err
}

// scan reads the records that the index does not know, and those that another pod had, and forgets those that are gone. Called with
// the folder's lock.
func (s *Files) scan(bad func(name, *damage) error) error {
	s.foreign.Store(false)
	seen, living := map[name]bool{}, map[string]bool{}
	err := s.eachFile(func(file string) error {
		n, ok := parseName(file, recordSuffix)
		if !ok {
			return nil
		}
		seen[n] = true
		s.mu.Lock()
		e := s.index.byName[n]
		known := e != nil && !e.elsewhere
		s.mu.Unlock()
		if known {
			return nil
		}
		r, size, err := s.read(n)
		if damaged := (*damage)(nil); errors.As(err, &damaged) {
			return bad(n, damaged)
		}
		if err != nil {
			s.opts.Log.Warn("the record of a session could not be read", "file", s.path(n), "error", err)
			return nil
		}
		lives, asked := living[r.pod]
		if !asked {
			lives = s.free(r) != nil
			living[r.pod] = lives
		}
		s.relearn(n, r, size, lives)
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, e := range s.index.byName {
		if !seen[n] && !e.held {
			s.index.remove(n)
		}
	}
	s.scanned = s.opts.Now()
	return nil
}

// eachFile gives the names in the folder, a few at a time.
func (s *Files) eachFile(visit func(file string) error) error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	for {
		some, err := d.Readdirnames(1024)
		for _, file := range some {
			if err := visit(file); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

const (
	rescanEvery  = time.Second     // while other pods change records
	lockPatience = 5 * time.Second // with another pod that has the folder's lock, for some milliseconds
	lockRetry    = 2 * time.Millisecond
)

// refresh reads the folder again when another pod has changed a record in it.
func (s *Files) refresh(ctx context.Context) error {
	leave, err := s.use()
	if err != nil {
		return err
	}
	defer leave()
	s.mu.Lock()
	lately := s.opts.Now().Sub(s.scanned)
	s.mu.Unlock()
	if !s.foreign.Load() && s.signed() || lately >= 0 && lately < rescanEvery {
		return nil
	}
	return s.commit(ctx, &change{do: "read", apply: func() error { return s.scan(s.setAside) }})
}

// acquire takes the folder's lock, and notes whether another pod had it meanwhile.
func (s *Files) acquire() (unlock func(), err error) {
	unlock, err = s.flock()
	if err != nil || s.signed() {
		return unlock, err
	}
	s.foreign.Store(true)
	return unlock, s.sign()
}

func (s *Files) flock() (unlock func(), err error) {
	deadline := time.Now().Add(lockPatience)
	for {
		err := flock(s.lock, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = flock(s.lock, syscall.LOCK_UN) }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return nil, fmt.Errorf("another process holds its lock: %w", err)
		}
		<-time.After(lockRetry)
	}
}

// sign leaves this pod's name in the lock file: while it stands there, nobody else has changed a record.
func (s *Files) sign() error {
	_, err := s.lock.WriteAt([]byte(s.pod.name), 0)
	return err
}

func (s *Files) signed() bool {
	b := make([]byte, len(s.pod.name))
	_, err := s.lock.ReadAt(b, 0)
	return err == nil && string(b) == s.pod.name
}
