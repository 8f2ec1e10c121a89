package provider

import (
	"slices"
	"sync/atomic"

	"github.com/acpod/acpod/runtime/kernel"
)

// seats is what the servers know of the supervisor's table.
type seats struct {
	most    int         // servers connected at a time; 0 = any number
	crowded atomic.Bool // more are connected, because none was idle: who becomes idle says so
}

// Messages to the supervisor.
type (
	takeSeat  struct{ s *Server } // a question; answered when the server may connect
	leaveSeat struct{ s *Server } // it is not connected any more
	seatIdle  struct{ s *Server } // it has nothing in flight
	seatKept  struct{ s *Server } // it was asked to leave and had something in flight by then
)

// seated answers takeSeat.
type seated struct{}

// unseat asks a server to leave, when it has nothing in flight.
type unseat struct{}

// table is who is connected and who waits to be.
type table struct {
	taken   map[*Server]bool // true: it was asked to leave
	waiting []waiter
}

type waiter struct {
	s        *Server
	question *kernel.Question
}

// step is what the table does next: one waiter is let in, or one server is asked to leave; neither: nothing is to be done.
// The one that leaves is the one not used for the longest, of those that have nothing in flight. When there is none, and none is leaving,
// the bound is exceeded for a while.
func (t *table) step(most int) (admit bool, evict *Server) {
	leaving := 0
	for _, asked := range t.taken {
		if asked {
			leaving++
		}
	}
	over := len(t.taken) + len(t.waiting) - leaving - most
	switch {
	case most <= 0 || len(t.taken) < most:
		return len(t.waiting) > 0, nil
	case over <= 0:
		return false, nil
	}
	for s, asked := range t.taken {
		if asked || s.busy.Load() > 0 {
			continue
		}
		if evict == nil || s.used.Load() < evict.used.Load() || s.used.Load() == evict.used.Load() && s.entry.Name < evict.entry.Name {
			evict = s
		}
	}
	return evict == nil && leaving == 0 && len(t.waiting) > 0, evict
}

// Receive keeps the table.
func (v *supervisor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case takeSeat:
		v.table.waiting = append(v.table.waiting, waiter{m.s, c.Question()})
	case leaveSeat:
		v.drop(m.s)
	case seatKept:
		if v.table.taken[m.s] {
			v.table.taken[m.s] = false
		}
	case seatIdle:
	case kernel.Cancelled:
		v.table.waiting = slices.DeleteFunc(v.table.waiting, func(w waiter) bool { return w.question == m.Question })
	case kernel.Exited:
		for _, s := range v.p.servers {
			if s.entry.Name == m.Ref.Name() {
				v.drop(s)
			}
		}
	case kernel.Restarted:
	default:
		c.Refuse("message")
	}
	v.settle(c)
	return nil
}

func (v *supervisor) drop(s *Server) {
	delete(v.table.taken, s)
	v.table.waiting = slices.DeleteFunc(v.table.waiting, func(w waiter) bool { return w.s == s })
}

// settle does all that can be done now.
func (v *supervisor) settle(c *kernel.Ctx) {
	for {
		admit, evict := v.table.step(v.p.seats.most)
		switch {
		case admit:
			w := v.table.waiting[0]
			v.table.waiting = v.table.waiting[1:]
			v.table.taken[w.s] = false
			w.question.Answer(seated{}, nil)
			continue
		case evict != nil:
			v.table.taken[evict] = true
			if child, ok := c.Child(evict.entry.Name); !ok || child.Signal(unseat{}) != nil {
				v.drop(evict)
			}
			continue
		}
		break
	}
	v.p.seats.crowded.Store(v.p.seats.most > 0 && len(v.table.taken) > v.p.seats.most)
	c.Attr("connected", len(v.table.taken))
	c.Attr("waiting", len(v.table.waiting))
}
