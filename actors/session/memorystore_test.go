package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// records is a Store of a few lines, which a test can look into, make fail and take from.
type records struct {
	mu   sync.Mutex
	all  map[string]*kept
	fail func(op string) error // nil = nothing fails
	ops  []string
	ends time.Duration // of a lease; 0 = none
	now  func() time.Time
}

type kept struct {
	d    Durable
	gen  uint64
	held bool
}

func newRecords() *records { return &records{all: map[string]*kept{}, now: time.Now} }

func (s *records) begin(op string) (func(), error) {
	s.mu.Lock()
	s.ops = append(s.ops, op)
	if s.fail != nil {
		if err := s.fail(op); err != nil {
			s.mu.Unlock()
			return nil, err
		}
	}
	return s.mu.Unlock, nil
}

func (s *records) lease(id string, k *kept) Lease {
	l := Lease{ID: id, Owner: "test", Generation: k.gen}
	if s.ends > 0 {
		l.Expires = s.now().Add(s.ends)
	}
	return l
}

func (s *records) Create(_ context.Context, d Durable) (Lease, error) {
	end, err := s.begin("create")
	if err != nil {
		return Lease{}, err
	}
	defer end()
	k := &kept{d: d, gen: 1, held: true}
	s.all[d.ID] = k
	return s.lease(d.ID, k), nil
}

func (s *records) Take(_ context.Context, id string) (Durable, Lease, error) {
	end, err := s.begin("take")
	if err != nil {
		return Durable{}, Lease{}, err
	}
	defer end()
	k := s.all[id]
	if k == nil {
		return Durable{}, Lease{}, ErrNoRecord
	}
	k.gen, k.held = k.gen+1, true
	return k.d, s.lease(id, k), nil
}

func (s *records) replace(op string, l Lease, d Durable, held bool) error {
	end, err := s.begin(op)
	if err != nil {
		if !held { // it is let go of all the same
			s.is(func(s *records) {
				if k := s.all[l.ID]; k != nil && k.gen == l.Generation {
					k.held = false
				}
			})
		}
		return err
	}
	defer end()
	k := s.all[l.ID]
	if k == nil || !k.held || k.gen != l.Generation {
		return ErrLeaseLost
	}
	k.d, k.held = d, held
	return nil
}

func (s *records) Put(_ context.Context, l Lease, d Durable) error {
	return s.replace("put", l, d, true)
}

func (s *records) Release(_ context.Context, l Lease, d Durable) error {
	return s.replace("release", l, d, false)
}

func (s *records) Delete(_ context.Context, l Lease) error {
	end, err := s.begin("delete")
	if err != nil {
		return err
	}
	defer end()
	k := s.all[l.ID]
	if k == nil || k.gen != l.Generation {
		return ErrLeaseLost
	}
	delete(s.all, l.ID)
	return nil
}

func (s *records) List(_ context.Context, key string, client [32]byte, limit int) (list []Durable, err error) {
	end, err := s.begin("list")
	if err != nil {
		return nil, err
	}
	defer end()
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		if d := s.all[id].d; d.Key == key && d.Client == client && len(list) < limit {
			list = append(list, d)
		}
	}
	return list, nil
}

func (s *records) Renew(context.Context) error {
	end, err := s.begin("renew")
	if err == nil {
		end()
	}
	return err
}

func (s *records) Sweep(_ context.Context, before time.Time) (removed int, err error) {
	end, err := s.begin("sweep")
	if err != nil {
		return 0, err
	}
	defer end()
	maps.DeleteFunc(s.all, func(_ string, k *kept) bool { return !k.held && k.d.Updated.Before(before) })
	return 0, nil
}

func (s *records) Figures() Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := Figures{Kind: "test", Records: len(s.all)}
	for _, k := range s.all {
		if k.held {
			f.Held++
		}
	}
	return f
}

// has tells what the store has of a session.
func (s *records) has(id string) (d Durable, held, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.all[id]
	if k == nil {
		return d, false, false
	}
	return k.d, k.held, true
}

// did is what was asked since this was asked last.
func (s *records) did() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := s.ops
	s.ops = nil
	return ops
}

// is sets how the store behaves from now on.
func (s *records) is(set func(s *records)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s)
}
