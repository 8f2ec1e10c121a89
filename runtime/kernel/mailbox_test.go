package kernel

import (
	"errors"
	"testing"
	"time"
)

// manual is a scheduler that runs nothing until it is told to.
type manual struct{ ready []func() }

func (m *manual) Go(_ string, f func()) { m.ready = append(m.ready, f) }
func (m *manual) Batch() int            { return 1 }

func (m *manual) step() bool {
	if len(m.ready) == 0 {
		return false
	}
	f := m.ready[0]
	m.ready = m.ready[1:]
	f()
	return true
}

func (m *manual) drain() {
	for m.step() {
	}
}

type frozen struct{}

func (frozen) Now() time.Time { return time.Unix(1, 0) }
func (frozen) AfterFunc(time.Duration, func()) func() bool {
	return func() bool { return true }
}

// note is a message of the model: a number, a size, and perhaps a lease.
type note struct {
	n, size int
	control bool
}

func (n note) Size() int { return n.size }

type notedLease struct {
	note
	l *Lease
}

func (n notedLease) Lease() *Lease { return n.l }

type boxed struct {
	got  []note
	mood byte
	c    *Ctx
}

func (b *boxed) Receive(c *Ctx, m Msg) error {
	b.c = c
	switch x := m.(type) {
	case note:
		b.got = append(b.got, x)
	case notedLease:
		b.got = append(b.got, x.note)
		defer x.l.Release()
	}
	switch b.mood {
	case 1:
		b.mood = 0
		panic("mood")
	case 2:
		b.mood = 0
		return errors.New("mood")
	}
	return nil
}

// model is what a mailbox is, in its simplest form: two queues, a sum, and a limit.
type model struct {
	control, data []note
	charged       int64
	reserve       int64
	burst         int
	closed        bool
	limit         int64
	leased        int64
}

func (m *model) tell(n note, cost int64) bool {
	if m.closed || m.charged+m.leased+cost > m.limit {
		return false
	}
	m.charged += cost
	m.data = append(m.data, n)
	return true
}

func (m *model) signal(n note, cost int64) bool {
	if m.closed || m.reserve+cost > ControlBytes {
		return false
	}
	m.reserve += cost
	m.control = append(m.control, n)
	return true
}

// turn is the next message, as the lanes have it.
func (m *model) turn() (n note, ok bool) {
	switch {
	case len(m.control) > 0 && (len(m.data) == 0 || m.burst < controlPerData):
		if len(m.data) > 0 {
			m.burst++
		}
		n, m.control = m.control[0], m.control[1:]
		m.reserve -= MessageBytes + int64(n.size)
	case len(m.data) > 0:
		m.burst = 0
		n, m.data = m.data[0], m.data[1:]
		if n.size >= 0 {
			m.charged -= MessageBytes + int64(n.size)
		} else {
			m.charged -= MessageBytes
		}
	default:
		return note{}, false
	}
	return n, true
}

func (m *model) close() { m.closed, m.control, m.data, m.charged, m.reserve = true, nil, nil, 0, 0 }

// FuzzMailbox gives a mailbox and the model the same operations: what is admitted, in which order it is delivered (I6), what is
// charged (I1, I2), and that nothing comes after a close (I4).
func FuzzMailbox(f *testing.F) {
	f.Add([]byte{0, 10, 1, 20, 2, 0, 0, 30, 3, 0, 2, 0, 2, 0, 2, 0, 4, 0, 0, 1})
	f.Add([]byte("tell, signal, turn, close; tell, signal, turn, panic"))
	f.Add([]byte{1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 2, 0, 2, 0, 2, 0, 5, 0, 2, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		const limit = 4000
		s := &manual{}
		k := New(Options{Limit: limit, Scheduler: s, Clock: frozen{}})
		beh := &boxed{}
		ref, err := k.Root(Spec{Name: "box", New: func() Behavior { return beh }})
		if err != nil {
			t.Fatal(err)
		}
		s.drain()
		m := &model{limit: limit}
		leases := map[*Lease]bool{}
		number := 0
		for i := 0; i+1 < len(ops); i += 2 {
			n := note{n: number, size: int(ops[i+1]) * 10}
			number++
			switch ops[i] % 8 {
			case 0:
				if got, want := ref.Tell(n) == nil, m.tell(n, MessageBytes+int64(n.size)); got != want {
					t.Fatalf("op %d: tell admitted %v, model %v", i, got, want)
				}
			case 1:
				n.control = true
				if got, want := ref.Signal(n) == nil, m.signal(n, MessageBytes+int64(n.size)); got != want {
					t.Fatalf("op %d: signal admitted %v, model %v", i, got, want)
				}
			case 2, 3:
				want, any := m.turn()
				before := len(beh.got)
				if s.step(); any != (len(beh.got) == before+1) && !m.closed {
					t.Fatalf("op %d: delivered %d, model has one: %v", i, len(beh.got)-before, any)
				}
				if any && beh.got[before] != want {
					t.Fatalf("op %d: delivered %+v, model %+v", i, beh.got[before], want)
				}
				if !any {
					s.drain()
				}
			case 4:
				l, err := k.Account().Acquire(int64(n.size))
				if err != nil {
					continue
				}
				leases[l] = true
				m.leased += int64(n.size)
				n.size = -1 // the lease pays; the message costs the fixed part
				want := m.tell(n, MessageBytes)
				if got := ref.Tell(notedLease{n, l}) == nil; got != want {
					t.Fatalf("op %d: parcel admitted %v, model %v", i, got, want)
				}
			case 5:
				if ops[i+1] < 16 {
					ref.Stop(ErrDone)
					m.close()
				}
			case 6:
				if ops[i+1] < 16 && len(m.control)+len(m.data) > 0 {
					beh.mood = 1 + ops[i+1]%2
					m.turn()
					s.step()
					m.close()
					beh.mood = 0
				}
			}
			m.leased = 0
			for l := range leases {
				m.leased += l.Size()
			}
			stat, _ := ref.c.mb.stat()
			if used := k.Account().Used(); used != m.charged+m.leased || used > limit || stat.Control != m.reserve {
				t.Fatalf("op %d: %d used, model has %d charged and %d leased; reserve %d, model %d", i, used, m.charged, m.leased, stat.Control, m.reserve)
			}
			if stat.N != len(m.control)+len(m.data) {
				t.Fatalf("op %d: %d wait, model %d", i, stat.N, len(m.control)+len(m.data))
			}
		}
		delivered := len(beh.got)
		ref.Stop(ErrShutdown)
		s.drain()
		if len(beh.got) != delivered {
			t.Fatal("a message after the stop")
		}
		if ref.Tell(note{}) != ErrStopped || ref.Signal(note{}) != ErrStopped {
			t.Fatal("a closed mailbox admits")
		}
		select {
		case <-k.Done():
		default:
			t.Fatal("it did not end")
		}
		if k.Account().Used() != 0 {
			t.Fatalf("%d bytes left", k.Account().Used())
		}
	})
}

func TestTheRingKeepsOrderAndGivesMemoryBack(t *testing.T) {
	var r ring
	in, out := 0, 0
	for round := range 50 {
		for range round * 7 % 40 {
			r.push(item{cost: int64(in)})
			in++
		}
		for range min(r.n, round*5%30) {
			if got := r.pop().cost; got != int64(out) {
				t.Fatalf("got %d, want %d", got, out)
			}
			out++
		}
	}
	for r.n > 0 {
		if got := r.first().cost; got != int64(out) {
			t.Fatalf("first is %d, want %d", got, out)
		}
		r.pop()
		out++
	}
	if in != out || r.first() != nil {
		t.Errorf("%d in, %d out", in, out)
	}
	for range 1000 {
		r.push(item{})
	}
	for r.n > 0 {
		r.pop()
	}
	if r.front != nil || r.rest != nil {
		t.Errorf("a burst's %d places and %d pieces are kept", len(r.front), len(r.rest))
	}
}
