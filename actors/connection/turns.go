package connection

import "slices"

// frameCost is what a frame counts in its stream's share besides its bytes: a header, a system call, a message for the client.
const frameCost = 512

// idleStreams is how many streams without frames are remembered, besides as many as have some.
const idleStreams = 64

// stream is one queue.
type stream struct {
	name   string
	frames []*outFrame
	at     int64  // when its next frame is due, in the time of turns
	over   uint64 // the window of its frames that is open, 0 = none
}

// turns serves streams so that each gets as many bytes as any other that has something to say. Its time is counted in bytes: a
// frame is due when its stream's frames before it are paid for, the one that is due first goes first (of two, the smaller), and
// the time is that of the frame which goes. So a stream that has sent 8 MiB waits until every other has sent as much, or has
// nothing left to send; who comes new is due at once. The share that a stream has used up is remembered while it is silent, as
// long as it counts.
type turns struct {
	named   map[string]*stream
	waiting []*stream // those with frames, in the order in which they were served or came
	now     int64
}

func newTurns() turns { return turns{named: map[string]*stream{}} }

func (t *turns) find(name string) *stream { return t.named[name] }

// stream finds a stream, or makes it.
func (t *turns) stream(name string) *stream {
	s := t.named[name]
	if s == nil {
		if len(t.named) > 2*len(t.waiting)+idleStreams {
			t.sweep()
		}
		s = &stream{name: name, at: t.now}
		t.named[name] = s
	}
	return s
}

// add queues a frame.
func (t *turns) add(s *stream, f *outFrame) {
	if len(s.frames) == 0 {
		s.at = max(s.at, t.now)
		t.waiting = append(t.waiting, s)
	}
	s.frames = append(s.frames, f)
}

// next takes the frame that is due. There is one.
func (t *turns) next() (*stream, *outFrame) {
	at := 0
	for i, s := range t.waiting {
		if best := t.waiting[at]; s.at < best.at || s.at == best.at && s.frames[0].size() < best.frames[0].size() {
			at = i
		}
	}
	s := t.waiting[at]
	f := s.frames[0]
	s.frames[0] = nil
	s.frames = s.frames[1:]
	t.now = s.at
	s.at += f.size() + frameCost
	t.waiting = append(slices.Delete(t.waiting, at, at+1), s)
	t.settle(s)
	return s, f
}

// settle notes that a stream may have no frames any more.
func (t *turns) settle(s *stream) {
	if len(s.frames) > 0 {
		return
	}
	s.frames = nil
	t.waiting = slices.DeleteFunc(t.waiting, func(x *stream) bool { return x == s })
}

// rest begins time anew: nothing waits, and nothing is being written.
func (t *turns) rest() {
	clear(t.named)
	t.now = 0
}

// sweep forgets the streams that are silent: first those whose share does not count any more, then all.
func (t *turns) sweep() {
	for _, late := range []bool{false, true} {
		for name, s := range t.named {
			if len(s.frames) == 0 && (late || s.at <= t.now) {
				delete(t.named, name)
			}
		}
		if len(t.named) <= 2*len(t.waiting)+idleStreams/2 {
			return
		}
	}
}
