package connection

import (
	"slices"
	"sync"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// control is the name of the lane for what belongs to no stream: errors and answers of the pod's own, keep-alive, cancels,
// disconnects.
const control = ""

const (
	// controlFrames and controlBytes bound the control lane. A peer that lets this much of it pile up does not read.
	controlFrames = 2048
	controlBytes  = 2 << 20
	// controlBurst is how many control frames go before a stream's frame that waits.
	controlBurst = 16
)

// outFrame is one message on its way to the client, in up to three parts that are written one after the other.
type outFrame struct {
	stream string
	parts  [3][]byte
	lease  *kernel.Lease
	body   *kernel.Lease // of a part that lies in somebody else's buffer, which the frame keeps alive
	done   func(written bool)
	ask    uint64 // the id, when it is a request of ours: it can be taken out of the queue
	answer bool   // an answer to the client: its place is reserved, it is never refused and never taken out
	// prompted is the id of the prompt that this answers, else absent: such an answer tells that all of its turn was said.
	prompted jsonrpc.ID
}

func (f *outFrame) size() int64 {
	return int64(len(f.parts[0]) + len(f.parts[1]) + len(f.parts[2]))
}

// end ends the frame's life: it was written, or never will be.
func (f *outFrame) end(written bool) {
	f.lease.Release()
	f.body.Release()
	if f.done != nil {
		f.done(written)
	}
}

// stream is one queue; a stream with nothing queued does not exist.
type stream struct {
	name   string
	frames []*outFrame
}

// outbox holds what the writer has not written. Streams are served in turn, one frame each. All methods are safe from any
// goroutine; none blocks, and the lock is never held while anybody else's code runs.
type outbox struct {
	maxFrames int   // in one stream
	maxBytes  int64 // in all streams
	wake      chan struct{}

	mu           sync.Mutex
	control      []*outFrame
	controlBytes int64
	burst        int
	streams      map[string]*stream
	turns        []*stream // those with frames, next first
	bytes        int64
	pong         []byte
	pongDue      bool
	pingDue      bool
	finished     bool // nothing is taken any more
	abort        bool // nothing that is queued is written any more
}

func newOutbox(cfg *Config) *outbox {
	return &outbox{maxFrames: cfg.OutboundFrames, maxBytes: cfg.OutboundBytes, wake: make(chan struct{}, 1), streams: map[string]*stream{}}
}

// push queues a frame. Errors, by which the frame stays the caller's: *kernel.Overloaded, tunnel.ErrGone.
func (o *outbox) push(f *outFrame) error {
	o.mu.Lock()
	err := o.put(f)
	o.mu.Unlock()
	if err == nil {
		o.rouse()
	}
	return err
}

func (o *outbox) put(f *outFrame) error {
	size := f.size()
	if o.finished {
		return tunnel.ErrGone
	}
	if f.stream == control {
		if !f.answer && (len(o.control) >= controlFrames || o.controlBytes+size > controlBytes) {
			return &kernel.Overloaded{Scope: "control", Limit: controlBytes, Used: o.controlBytes, Size: size}
		}
		o.control = append(o.control, f)
		o.controlBytes += size
		return nil
	}
	s := o.streams[f.stream]
	if !f.answer {
		if s != nil && len(s.frames) >= o.maxFrames {
			return &kernel.Overloaded{Scope: "outbound_frames", Limit: int64(o.maxFrames), Used: int64(len(s.frames)), Size: 1}
		}
		if o.bytes+size > o.maxBytes {
			return &kernel.Overloaded{Scope: "outbound_bytes", Limit: o.maxBytes, Used: o.bytes, Size: size}
		}
	}
	if s == nil {
		s = &stream{name: f.stream}
		o.streams[f.stream] = s
		o.turns = append(o.turns, s)
	}
	s.frames = append(s.frames, f)
	o.bytes += size
	return nil
}

// takeOut removes a request of ours that is still queued, and reports whether it was.
func (o *outbox) takeOut(name string, ask uint64) bool {
	taken := o.remove(name, func(f *outFrame) bool { return f.ask == ask })
	for _, f := range taken {
		f.end(false)
	}
	return len(taken) > 0
}

// evict removes all of a stream but answers, and returns the requests of ours among it. The answer of a prompt whose turn
// loses words by that would claim that they were said: it becomes the superseded error.
func (o *outbox) evict(name string) (asks []uint64) {
	lost, short := false, []*outFrame(nil)
	taken := o.remove(name, func(f *outFrame) bool {
		if !f.answer {
			lost = true
			return true
		}
		if lost && !f.prompted.IsZero() {
			short = append(short, f)
			o.bytes -= f.size()
			f.parts = [3][]byte{jsonrpc.AppendError(nil, f.prompted, jsonrpc.SupersededError())}
			o.bytes += f.size()
		}
		return false
	})
	for _, f := range short {
		f.lease.Shrink(f.size())
	}
	return endAll(taken)
}

// recall removes the requests of ours from a stream and returns them; what else is queued is still written.
func (o *outbox) recall(name string) (asks []uint64) {
	return endAll(o.remove(name, func(f *outFrame) bool { return f.ask != 0 }))
}

func endAll(taken []*outFrame) (asks []uint64) {
	for _, f := range taken {
		if f.ask != 0 {
			asks = append(asks, f.ask)
		}
		f.end(false)
	}
	return asks
}

func (o *outbox) remove(name string, match func(*outFrame) bool) (taken []*outFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keep := func(queue []*outFrame) []*outFrame {
		return slices.DeleteFunc(queue, func(f *outFrame) bool {
			if !match(f) {
				return false
			}
			taken = append(taken, f)
			return true
		})
	}
	if name == control {
		o.control = keep(o.control)
		for _, f := range taken {
			o.controlBytes -= f.size()
		}
		return taken
	}
	if s := o.streams[name]; s != nil {
		s.frames = keep(s.frames)
		for _, f := range taken {
			o.bytes -= f.size()
		}
		if len(s.frames) == 0 {
			delete(o.streams, name)
			o.turns = slices.DeleteFunc(o.turns, func(x *stream) bool { return x == s })
		}
	}
	return taken
}

// answerPing queues a pong; of several that wait only the last is sent, as the protocol allows.
func (o *outbox) answerPing(payload []byte) {
	o.mu.Lock()
	o.pong, o.pongDue = payload, true
	o.mu.Unlock()
	o.rouse()
}

// ping queues a ping.
func (o *outbox) ping() {
	o.mu.Lock()
	o.pingDue = true
	o.mu.Unlock()
	o.rouse()
}

// finish takes nothing more. What is queued is still written when flush says so, else it ends here.
func (o *outbox) finish(flush bool) {
	o.mu.Lock()
	o.finished = true
	var dropped []*outFrame
	if !flush {
		o.abort = true
		dropped = o.empty()
	}
	o.mu.Unlock()
	for _, f := range dropped {
		f.end(false)
	}
	o.rouse()
}

// empty takes everything out, under the lock.
func (o *outbox) empty() []*outFrame {
	all := o.control
	for _, s := range o.turns {
		all = append(all, s.frames...)
	}
	o.control, o.controlBytes, o.turns, o.bytes = nil, 0, nil, 0
	clear(o.streams)
	return all
}

func (o *outbox) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// job is the writer's next piece of work: one of the four, or none.
type job struct {
	pong   []byte
	isPong bool
	ping   bool
	frame  *outFrame
	finish bool // nothing is left and nothing will come
}

// urgent is what may go between two fragments of one message.
func (o *outbox) urgent() (job, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.takeUrgent()
}

func (o *outbox) takeUrgent() (job, bool) {
	switch {
	case o.abort:
		return job{finish: true}, true
	case o.pongDue:
		p := o.pong
		o.pong, o.pongDue = nil, false
		return job{pong: p, isPong: true}, true
	case o.pingDue:
		o.pingDue = false
		return job{ping: true}, true
	}
	return job{}, false
}

// next is the writer's next job; false when there is nothing to do now.
func (o *outbox) next() (job, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if j, ok := o.takeUrgent(); ok {
		return j, true
	}
	if len(o.control) > 0 && (len(o.turns) == 0 || o.burst < controlBurst) {
		f := o.control[0]
		o.control[0] = nil
		o.control = o.control[1:]
		o.controlBytes -= f.size()
		if len(o.turns) > 0 {
			o.burst++
		}
		return job{frame: f}, true
	}
	if len(o.turns) > 0 {
		o.burst = 0
		s := o.turns[0]
		o.turns = o.turns[1:]
		f := s.frames[0]
		s.frames[0] = nil
		s.frames = s.frames[1:]
		o.bytes -= f.size()
		if len(s.frames) > 0 {
			o.turns = append(o.turns, s)
		} else {
			delete(o.streams, s.name)
		}
		return job{frame: f}, true
	}
	return job{finish: true}, o.finished
}

// queued is what waits, for the tree.
func (o *outbox) queued() (frames int, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames = len(o.control)
	for _, s := range o.turns {
		frames += len(s.frames)
	}
	return frames, o.controlBytes + o.bytes
}
