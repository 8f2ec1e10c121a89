package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/session"
)

// Files keeps records in the state directory. It implements [session.Store]; several pods may share the directory, each with one of its
// own.
type Files struct {
	dir    string // of the records
	opts   Options
	pod    *pod
	folder *os.File // for its sync
	lock   *os.File
	writes chan struct{} // a place for each temporary file that is written
	serial atomic.Uint64 // of temporary files

	forgotten, aside, failed atomic.Int64

	mu      sync.Mutex
	index   *index
	queue   []*change
	leading bool
	closed  bool
	users   sync.WaitGroup
	scanned time.Time // when the folder was read last

	foreign atomic.Bool // another pod has changed a record since the folder was read
}

var _ session.Store = (*Files)(nil)

// errClosed is what is asked of a store that was closed.
var errClosed = errors.New("the pod ends")

// fixDisk is what an operator does when the folder cannot be used.
func (s *Files) fixDisk() string { return "make room in " + s.dir + " and let the pod write there" }

func (s *Files) wrong(do string, err error) error {
	s.failed.Add(1)
	return &session.RecordError{Do: do, Err: err, Fix: s.fixDisk()}
}

// Create implements session.Store.
func (s *Files) Create(ctx context.Context, d session.Durable) (session.Lease, error) {
	l := session.Lease{ID: d.ID, Owner: s.pod.name, Generation: 1}
	err := s.write(ctx, stored{d, l.Generation, s.pod.name}, func(n name) error {
		if exists(s.path(n)) {
			return s.wrong("write", os.ErrExist)
		}
		return nil
	}, func(n name) {
		_ = s.remove(n)
		s.index.remove(n)
	})
	if err != nil {
		return session.Lease{}, err
	}
	return l, nil
}

// takes is how often a record is read again that another pod takes at the same time.
const takes = 8

// errMoved says that a record is not what it was when it was read.
var errMoved = errors.New("another pod changes it")

// Take implements session.Store.
func (s *Files) Take(ctx context.Context, id string) (session.Durable, session.Lease, error) {
	n := nameOf(id)
	for range takes {
		r, _, err := s.find(ctx, n)
		if errors.Is(err, errMoved) {
			continue
		}
		if err == nil && r.ID != id {
			err = session.ErrNoRecord
		}
		if err == nil {
			err = s.free(r)
		}
		if err != nil {
			return session.Durable{}, session.Lease{}, err
		}
		next := stored{r.Durable, r.generation + 1, s.pod.name}
		err = s.write(ctx, next, func(n name) error {
			now, _, err := s.read(n)
			if err != nil || now.generation != r.generation || now.pod != r.pod || !now.Updated.Equal(r.Updated) {
				return errMoved
			}
			return s.free(now)
		}, func(n name) { s.index.mark(n, false, false) })
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return session.Durable{}, session.Lease{}, err
		}
		return r.Durable, session.Lease{ID: id, Owner: s.pod.name, Generation: next.generation}, nil
	}
	return session.Durable{}, session.Lease{}, s.wrong("write", errMoved)
}

// free tells whether this pod may take a record.
func (s *Files) free(r stored) error {
	if r.pod == "" || r.pod == s.pod.name || !podLives(s.dir, r.pod) {
		return nil
	}
	return &session.HeldError{Owner: r.pod}
}

// Put implements session.Store.
func (s *Files) Put(ctx context.Context, l session.Lease, d session.Durable) error {
	return s.replace(ctx, l, d, s.pod.name)
}

// Release implements session.Store.
func (s *Files) Release(ctx context.Context, l session.Lease, d session.Durable) error {
	err := s.replace(ctx, l, d, "")
	if err != nil && !errors.Is(err, session.ErrLeaseLost) {
		s.mu.Lock()
		if n := nameOf(l.ID); s.index.holds(n, l.Generation) {
			s.index.mark(n, false, false)
		}
		s.mu.Unlock()
	}
	return err
}

func (s *Files) replace(ctx context.Context, l session.Lease, d session.Durable, pod string) error {
	if d.ID != l.ID {
		return s.wrong("write", errors.New("it is another session's"))
	}
	if err := s.fence(l); err != nil {
		return err
	}
	return s.write(ctx, stored{d, l.Generation, pod}, func(n name) error { return s.stillHeld(n, l) }, func(name) {})
}

// fence refuses a lease that this pod knows to be lost.
func (s *Files) fence(l session.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Owner != s.pod.name || !s.index.holds(nameOf(l.ID), l.Generation) {
		return session.ErrLeaseLost
	}
	return nil
}

// stillHeld is the fence as the folder has it. A record that is gone, or cannot be read, is nobody else's: it is written anew. Called by
// whoever leads.
func (s *Files) stillHeld(n name, l session.Lease) error {
	if err := s.fence(l); err != nil {
		return err
	}
	r, _, err := s.read(n)
	if bad := (*damage)(nil); errors.As(err, &bad) {
		if err := s.setAside(n, bad); err != nil {
			return s.wrong("write", err)
		}
		return nil
	}
	if err == nil && (r.pod != s.pod.name || r.generation != l.Generation) {
		s.mu.Lock()
		s.index.mark(n, false, r.pod != "")
		s.mu.Unlock()
		return session.ErrLeaseLost
	}
	return nil
}

// Delete implements session.Store.
func (s *Files) Delete(ctx context.Context, l session.Lease) error {
	n := nameOf(l.ID)
	return s.commit(ctx, &change{
		do:    "remove",
		check: func() error { return s.stillHeld(n, l) },
		apply: func() error { return s.remove(n) },
		after: func() { s.index.remove(n) },
	})
}

// List implements session.Store.
func (s *Files) List(ctx context.Context, key string, client [32]byte, limit int) ([]session.Durable, error) {
	if client == [32]byte{} || limit <= 0 {
		return nil, nil
	}
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	list := s.index.list(key, client)
	s.mu.Unlock()
	var found []session.Durable
	for _, n := range list {
		if len(found) == limit || ctx.Err() != nil {
			break
		}
		r, _, err := s.read(n)
		switch {
		case errors.Is(err, os.ErrNotExist): // another pod's end of it
			s.forget(n)
		case err == nil && r.Key == key && r.Client == client:
			found = append(found, r.Durable)
		}
	}
	return found, ctx.Err()
}

func (s *Files) forget(n name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.index.byName[n]; e != nil && !e.held {
		s.index.remove(n)
	}
}

// Renew implements session.Store: a lease of files ends with the pod's process.
func (s *Files) Renew(context.Context) error { return nil }

// sweepBatch is how many records are removed under one lock.
const sweepBatch = 256

// Sweep implements session.Store.
func (s *Files) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	if err := s.refresh(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	stale := s.index.stale(before.UnixNano())
	s.mu.Unlock()
	for len(stale) > 0 {
		some := stale[:min(sweepBatch, len(stale))]
		stale = stale[len(some):]
		n := 0
		err := s.commit(ctx, &change{
			do: "remove",
			apply: func() (err error) {
				n, err = s.removeIdle(some)
				return err
			},
		})
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// Figures implements session.Store.
func (s *Files) Figures() session.Figures {
	s.mu.Lock()
	records, held := len(s.index.byName), s.index.held
	s.mu.Unlock()
	return session.Figures{
		Kind: "files", Records: records, Held: held,
		Forgotten: s.forgotten.Load(), Aside: s.aside.Load(), Failed: s.failed.Load(),
	}
}

// Close lets go of all that this pod holds, after what is under way; what comes later is refused.
func (s *Files) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.users.Wait()
	return errors.Join(s.pod.close(), s.lock.Close(), s.folder.Close())
}

// use keeps the store open until done is called.
func (s *Files) use() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &session.RecordError{Do: "reach", Err: errClosed, Fix: "ask the next pod"}
	}
	s.users.Add(1)
	return s.users.Done, nil
}

func (s *Files) path(n name) string { return filepath.Join(s.dir, n.file()) }

func (s *Files) temp() string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%d%s", s.pod.name, s.serial.Add(1), tempSuffix))
}
