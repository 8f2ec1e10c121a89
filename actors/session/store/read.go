package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/acpod/acpod/actors/session"
)

// damage is a record that is there and cannot be read.
type damage struct{ cause error }

func (d *damage) Error() string { return d.cause.Error() }
func (d *damage) Unwrap() error { return d.cause }

// read reads one record and tells how long it is: os.ErrNotExist, *damage, or what else kept it from being read.
func (s *Files) read(n name) (stored, int64, error) {
	r, size, err := readRecord(s.path(n))
	if err == nil && nameOf(r.ID) != n {
		return stored{}, 0, &damage{errors.New("it is another session's")}
	}
	return r, size, err
}

// readRecord reads a file. Whatever stands under its name, nobody waits for it.
func readRecord(path string) (stored, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO), errors.Is(err, os.ErrPermission):
		return stored{}, 0, &damage{err}
	case err != nil:
		return stored{}, 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return stored{}, 0, err
	case !info.Mode().IsRegular():
		return stored{}, 0, &damage{errors.New("it is no file")}
	case info.Size() > session.DurableBytes:
		return stored{}, 0, &damage{fmt.Errorf("it is longer than %d bytes", session.DurableBytes)}
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return stored{}, 0, err
	}
	r, err := decode(b)
	if err != nil {
		return stored{}, 0, &damage{err}
	}
	return r, info.Size(), nil
}

// find reads the record that somebody asks for; ErrNoRecord also when it cannot be read, and is set aside.
func (s *Files) find(ctx context.Context, n name) (stored, int64, error) {
	r, size, err := s.read(n)
	bad := (*damage)(nil)
	switch {
	case err == nil:
		return r, size, nil
	case errors.Is(err, os.ErrNotExist):
		s.forget(n)
		return stored{}, 0, session.ErrNoRecord
	case !errors.As(err, &bad):
		return stored{}, 0, s.wrong("read", err)
	}
	err = s.commit(ctx, &change{
		do: "read",
		check: func() error {
			if _, _, err := s.read(n); !errors.As(err, &bad) { // somebody wrote it anew
				return errMoved
			}
			return nil
		},
		apply: func() error { return s.setAside(n, bad) },
		after: func() { s.index.remove(n) },
	})
	if err != nil {
		return stored{}, 0, err
	}
	return stored{}, 0, session.ErrNoRecord
}

// setAside gives a record that cannot be read a name under which nobody looks for it. Called by whoever leads.
func (s *Files) setAside(n name, bad *damage) error {
	to := s.asideName(n, bad)
	if err := os.Rename(s.path(n), to); err != nil {
		return fmt.Errorf("it cannot be read (%w) nor set aside: %w", bad, err)
	}
	s.aside.Add(1)
	s.opts.Log.Error("the record of a session cannot be read and was set aside: that session is not found again", "file", to, "cause", bad.Error())
	return nil
}

func (s *Files) asideName(n name, bad *damage) string {
	path := s.path(n)
	if errors.Is(bad, errNewer) {
		return path + newerSuffix[len(recordSuffix):]
	}
	return path + aside[len(recordSuffix):] + s.opts.Now().UTC().Format("20060102T150405.000000000")
}
