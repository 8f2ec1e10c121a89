package connection

import (
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// readAgain is the hint of a refusal that an answer ends: by then a client that reads and answers has done something.
const readAgain = time.Second

// marks are the two marks of a bound. Updates are taken below the soft one; what waits behind them waits in its session, where
// it coalesces, and with it the agent. So a client that reads slowly, however slowly, stays there and loses nothing. What cannot
// wait is taken up to the hard one; answers always are.
type marks struct {
	scope      string
	soft, hard int64
}

func marksOf(scope string, hard int64) marks {
	return marks{scope: scope, soft: (hard + 1) / 2, hard: hard}
}

// most is up to where an update of a stream that has nothing else queued is taken although the bytes of the others are above the
// soft mark: a flood of some must not keep the others out.
func (m marks) most() int64 { return m.soft + m.soft/2 }

// full tells which bound has no room for a frame of a stream with so many frames, nil when all have. An update above what is
// left to the soft mark passes when there is room for it below the hard one: so the longest line of an agent always does.
func (o *outbox) full(f *outFrame, frames, size int64) *kernel.Overloaded {
	limit := o.frames.hard
	if f.patient {
		limit = o.frames.soft
	}
	refused := func(m marks, used, size int64) *kernel.Overloaded {
		return &kernel.Overloaded{Scope: m.scope, Limit: m.hard, Used: used, Size: size, RetryAfter: readAgain}
	}
	switch {
	case frames >= limit:
		return refused(o.frames, frames, 1)
	case o.used+size > o.bytes.hard,
		f.patient && o.used >= o.bytes.soft && (frames > 0 || o.used+size > o.bytes.most()):
		return refused(o.bytes, o.used, size)
	}
	return nil
}

// window is the time that a client has after something that cannot wait found no room: it has to read until the soft mark is
// free again.
type window struct {
	n      uint64 // which one; 0 = none
	stream string // whose frames it is about
	full   *kernel.Overloaded
}

// open opens a window, unless the one for this bound is open already, or it is the frame that is too large and not the client
// that is slow: then, it returns none.
func (o *outbox) open(s *stream, full *kernel.Overloaded) window {
	over := &o.over
	if full.Scope == o.frames.scope {
		over = &s.over
	} else if o.used < o.bytes.soft {
		return window{}
	}
	if *over != 0 {
		return window{}
	}
	o.windows++
	*over = o.windows
	return window{n: o.windows, stream: s.name, full: full}
}

// close ends the windows of what is below its soft mark.
func (o *outbox) close(s *stream) {
	if int64(len(s.frames)) < o.frames.soft {
		s.over = 0
	}
	if o.used < o.bytes.soft {
		o.over = 0
	}
}

// stands tells whether a window is still open.
func (o *outbox) stands(w window) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.full.Scope == o.bytes.scope {
		return o.over == w.n
	}
	s := o.turns.find(w.stream)
	return s != nil && s.over == w.n
}
