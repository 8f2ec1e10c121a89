package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/session"
)

// Memory keeps records for as long as the process lives. It implements [session.Store] for a pod without a state directory; nobody
// shares it.
type Memory struct {
	mu        sync.Mutex
	index     *index
	forgotten int64
}

var _ session.Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory(opts Options) *Memory {
	opts = opts.withDefaults()
	return &Memory{index: newIndex(opts)}
}

// memoryPod is what leases name as their owner.
const memoryPod = "memory"

func memoryOf(d *session.Durable) int64 {
	n := 2*EntryBytes + len(d.ID) + len(d.Key) + len(d.Agent) + len(d.Cwd) + len(d.Pins) + len(d.LastTurn)
	for _, list := range [][]string{d.Additional, d.Servers} {
		for _, text := range list {
			n += 16 + len(text)
		}
	}
	return int64(n)
}

// Create implements session.Store.
func (s *Memory) Create(ctx context.Context, d session.Durable) (session.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index.byName[nameOf(d.ID)] != nil {
		return session.Lease{}, memoryError(errors.New("there is one of that id"))
	}
	return s.put(ctx, d, 1, true)
}

func memoryError(err error) error {
	return &session.RecordError{Do: "write", Err: err, Fix: "report this with the pod's log"}
}

func (s *Memory) put(ctx context.Context, d session.Durable, generation uint64, held bool) (session.Lease, error) {
	if err := ctx.Err(); err != nil {
		return session.Lease{}, err
	}
	if n := memoryOf(&d); n > session.DurableBytes {
		return session.Lease{}, memoryError(errors.New("it is longer than a record may be"))
	}
	d = copyOf(d)
	n := nameOf(d.ID)
	s.index.put(entry{name: n, updated: d.Updated.UnixNano(), generation: generation, memory: memoryOf(&d), held: held, kept: &d}, d.Key, d.Client)
	for _, n := range s.index.excess() {
		s.index.remove(n)
		s.forgotten++
	}
	return session.Lease{ID: d.ID, Owner: memoryPod, Generation: generation}, nil
}

// copyOf is a record that shares nothing that anybody may change.
func copyOf(d session.Durable) session.Durable {
	d.Additional, d.Servers = slices.Clone(d.Additional), slices.Clone(d.Servers)
	d.Pins, d.LastTurn = slices.Clone(d.Pins), slices.Clone(d.LastTurn)
	return d
}

// Take implements session.Store.
func (s *Memory) Take(ctx context.Context, id string) (session.Durable, session.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.byName[nameOf(id)]
	if e == nil {
		return session.Durable{}, session.Lease{}, session.ErrNoRecord
	}
	d := *e.kept
	l, err := s.put(ctx, d, e.generation+1, true)
	if err != nil {
		return session.Durable{}, session.Lease{}, err
	}
	return copyOf(d), l, nil
}

// Put implements session.Store.
func (s *Memory) Put(ctx context.Context, l session.Lease, d session.Durable) error {
	return s.replace(ctx, l, d, true)
}

// Release implements session.Store.
func (s *Memory) Release(ctx context.Context, l session.Lease, d session.Durable) error {
	return s.replace(ctx, l, d, false)
}

func (s *Memory) replace(ctx context.Context, l session.Lease, d session.Durable, held bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(l.ID)
	if !s.index.holds(n, l.Generation) {
		return session.ErrLeaseLost
	}
	if d.ID != l.ID {
		return memoryError(errors.New("it is another session's"))
	}
	_, err := s.put(ctx, d, l.Generation, held)
	if err != nil && !held {
		s.index.mark(n, false, false)
	}
	return err
}

// Delete implements session.Store.
func (s *Memory) Delete(_ context.Context, l session.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(l.ID)
	if !s.index.holds(n, l.Generation) {
		return session.ErrLeaseLost
	}
	s.index.remove(n)
	return nil
}

// List implements session.Store.
func (s *Memory) List(_ context.Context, key string, client [32]byte, limit int) ([]session.Durable, error) {
	if client == [32]byte{} || limit <= 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.index.list(key, client)
	var found []session.Durable
	for _, n := range list[:min(limit, len(list))] {
		found = append(found, copyOf(*s.index.byName[n].kept))
	}
	return found, nil
}

// Renew implements session.Store.
func (s *Memory) Renew(context.Context) error { return nil }

// Sweep implements session.Store.
func (s *Memory) Sweep(_ context.Context, before time.Time) (removed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := s.index.stale(before.UnixNano())
	for _, n := range stale {
		s.index.remove(n)
	}
	return len(stale), nil
}

// Figures implements session.Store.
func (s *Memory) Figures() session.Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session.Figures{Kind: "memory", Records: len(s.index.byName), Held: s.index.held, Forgotten: s.forgotten}
}
