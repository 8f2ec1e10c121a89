package store

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/acpod/acpod/actors/session"
)

// change is one change of the folder. Its functions are called by whoever leads, one change after the other, under the folder's lock.
type change struct {
	do     string       // for its error
	check  func() error // whether it may still be done; nil = it may
	apply  func() error // the rename or the removal
	after  func()       // what the index knows from then on; under the mutex
	unsure func()       // when the folder could not be synced: whoever asked is told that it failed; under the mutex

	err  error
	done chan turn // room for one
}

// turn is what whoever waits is told: its change is done, or it leads now.
type turn bool

const (
	doneTurn turn = false
	leadTurn turn = true
)

const (
	writers   = 16  // temporary files that are written at once
	batchSize = 256 // changes that one sync of the folder pays for, at most
)

// write writes a record whose change passes check; unsure is as in a change.
func (s *Files) write(ctx context.Context, r stored, check func(name) error, unsure func(name)) error {
	b, err := encode(r)
	if err != nil {
		s.failed.Add(1)
		return &session.RecordError{Do: "write", Err: err, Fix: "open it with other folders"}
	}
	leave, err := s.use()
	if err != nil {
		return err
	}
	defer leave()
	temp, err := s.writeTemp(ctx, b)
	if err != nil {
		return err
	}
	n := nameOf(r.ID)
	err = s.commit(ctx, &change{
		do:    "write",
		check: func() error { return check(n) },
		apply: func() error {
			if err := s.opts.at(atRename); err != nil {
				return err
			}
			return os.Rename(temp, s.path(n))
		},
		after:  func() { s.enter(n, r, int64(len(b))) },
		unsure: func() { unsure(n) },
	})
	if err != nil {
		_ = os.Remove(temp) // it is gone when the rename was done
	}
	return err
}

// enter puts a record into the index. Called with the mutex.
func (s *Files) enter(n name, r stored, size int64) {
	s.index.put(entry{
		name: n, updated: r.Updated.UnixNano(), generation: r.generation, memory: EntryBytes, disk: onDisk(size), held: r.pod == s.pod.name,
	}, r.Key, r.Client)
}

// block is what file systems give a file at least.
const block = 4096

func onDisk(size int64) int64 { return (size + block - 1) / block * block }

// writeTemp writes a temporary file beside the records and has it on the disk.
func (s *Files) writeTemp(ctx context.Context, b []byte) (path string, err error) {
	select {
	case s.writes <- struct{}{}:
		defer func() { <-s.writes }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	path = s.temp()
	if err := s.opts.at(atCreate); err != nil {
		return "", s.wrong("write", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", s.wrong("write", err)
	}
	if err := s.fill(f, b); err != nil {
		_ = os.Remove(path)
		return "", s.wrong("write", err)
	}
	return path, nil
}

// fill writes a file in two parts, so that a test can end between them.
func (s *Files) fill(f *os.File, b []byte) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	half := len(b) / 2
	for _, part := range [][]byte{b[:half], b[half:]} {
		if err := s.opts.at(atWrite); err != nil {
			return err
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	if err := s.opts.at(atSync); err != nil {
		return err
	}
	return f.Sync()
}

// commit does a change together with others that wait for the same. Once it waits it is done, whatever becomes of the context.
func (s *Files) commit(ctx context.Context, c *change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	leave, err := s.use()
	if err != nil {
		return err
	}
	defer leave()
	c.done = make(chan turn, 1)
	s.mu.Lock()
	s.queue = append(s.queue, c)
	lead := !s.leading
	s.leading = true
	s.mu.Unlock()
	if lead || <-c.done == leadTurn {
		s.lead()
		<-c.done
	}
	_ = s.opts.at(atDone)
	return c.err
}

// lead does what waits, that of whoever calls it among it, and hands the lead over to the first that came meanwhile.
func (s *Files) lead() {
	s.mu.Lock()
	batch := s.queue[:min(batchSize, len(s.queue))]
	s.queue = s.queue[len(batch):]
	s.mu.Unlock()
	s.together(batch)
	s.mu.Lock()
	if len(s.queue) == 0 {
		s.leading, s.queue = false, nil
	} else {
		s.queue[0].done <- leadTurn
	}
	s.mu.Unlock()
	for _, c := range batch {
		c.done <- doneTurn
	}
}

// together does changes under one lock and one sync.
func (s *Files) together(batch []*change) {
	unlock, err := s.acquire()
	if err != nil {
		err = s.wrong("write", err)
		for _, c := range batch {
			c.err = err
		}
		return
	}
	defer unlock()
	applied := false
	for _, c := range batch {
		if c.check != nil {
			c.err = c.check()
		}
		if c.err != nil {
			continue
		}
		applied = true
		if c.err = c.apply(); c.err != nil {
			c.err = s.wrong(c.do, c.err)
			continue
		}
		if c.after != nil { // at once: the next check asks the index
			s.mu.Lock()
			c.after()
			s.mu.Unlock()
		}
	}
	if !applied {
		return
	}
	if err := s.syncFolder(); err != nil {
		err = s.wrong("write", err)
		s.mu.Lock()
		for _, c := range batch {
			if c.err == nil && c.unsure != nil {
				c.unsure()
			}
			if c.err == nil {
				c.err = err
			}
		}
		s.mu.Unlock()
		return
	}
	s.bound()
}

// bound removes what there is no room for.
func (s *Files) bound() {
	s.mu.Lock()
	excess := s.index.excess()
	s.mu.Unlock()
	if len(excess) == 0 {
		return
	}
	n, err := s.removeIdle(excess)
	s.forgotten.Add(int64(n))
	if err == nil {
		err = s.syncFolder()
	}
	if err != nil {
		s.failed.Add(1)
		s.opts.Log.Warn("records of sessions that there is no room for could not be removed", "error", err)
	}
}

func (s *Files) syncFolder() error {
	if err := s.opts.at(atFolder); err != nil {
		return err
	}
	return s.folder.Sync()
}

// removeIdle removes records that nobody holds and that are as the index knows them. Called by whoever leads.
func (s *Files) removeIdle(list []name) (removed int, err error) {
	for _, n := range list {
		s.mu.Lock()
		e := s.index.byName[n]
		var known entry
		if e != nil {
			known = *e
		}
		s.mu.Unlock()
		if e == nil || known.held {
			continue
		}
		r, size, err := s.read(n)
		switch {
		case errors.Is(err, os.ErrNotExist): // another pod's end of it
		case err != nil: // it stays, and is set aside when somebody asks for it
			s.forget(n)
			continue
		case s.free(r) != nil:
			s.relearn(n, r, size, true)
			continue
		case r.generation != known.generation || r.Updated.UnixNano() != known.updated: // another pod had it meanwhile
			s.relearn(n, r, size, false)
			continue
		default:
			if err := s.remove(n); err != nil {
				return removed, err
			}
			removed++
		}
		s.forget(n)
	}
	return removed, nil
}

// relearn enters what another pod made of a record.
func (s *Files) relearn(n name, r stored, size int64, elsewhere bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.pod = ""
	s.enter(n, r, size)
	s.index.mark(n, false, elsewhere)
}

// remove removes a record, if it is there.
func (s *Files) remove(n name) error {
	if err := s.opts.at(atRemove); err != nil {
		return err
	}
	if err := os.Remove(s.path(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
