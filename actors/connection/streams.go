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
	// outFrameBytes is what a queued frame costs beside its bytes: itself, its leases, who is told of its end, its place in the queue. Most
	// are short, and a peer that reads slowly can have as many as its queues hold. Measured by a test.
	outFrameBytes = 256
)

// outFrame is one message on its way to the client, in up to three parts that are written one after the other.
type outFrame struct {
	stream  string
	parts   [3][]byte
	lease   *kernel.Lease // of own() bytes
	body    *kernel.Lease // of the bytes that lie in somebody else's buffer, which the frame keeps alive; nil = none do
	done    func(written bool)
	ask     uint64 // the id, when it is a request of ours: it can be taken out of the queue
	answer  bool   // an answer to the client: its place is reserved, it is never refused and never taken out
	patient bool   // it may wait: it is taken below the soft mark only
	// prompted is the id of the prompt that this answers, else absent: such an answer tells that all of its turn was said.
	prompted jsonrpc.ID
}

func (f *outFrame) size() int64 {
	return int64(len(f.parts[0]) + len(f.parts[1]) + len(f.parts[2]))
}

// own is what the frame's own lease stands for: the frame itself, and of its bytes what body does not stand for. An answer of a prompt
// may become an error, see evict, for which it then has paid.
func (f *outFrame) own() int64 {
	n := f.size()
	if f.body != nil {
		n -= int64(len(f.shared()))
	}
	if !f.prompted.IsZero() {
		n = max(n, int64(len(jsonrpc.AppendError(nil, f.prompted, jsonrpc.SupersededError()))))
	}
	return outFrameBytes + n
}

// shared is the part that body stands for: the one in the middle, or the only one.
func (f *outFrame) shared() []byte {
	if f.parts[1] == nil {
		return f.parts[0]
	}
	return f.parts[1]
}

// end ends the frame's life: it was written, or never will be.
func (f *outFrame) end(written bool) {
	f.lease.Release()
	f.body.Release()
	if f.done != nil {
		f.done(written)
	}
}

// outbox holds what the writer has not written. Streams are served in turn, each as many bytes. All methods are safe from any
// goroutine; none blocks, and the lock is never held while anybody else's code runs.
type outbox struct {
	frames marks // of one stream
	bytes  marks // of all streams
	// exceeded is called, outside the lock, when something that cannot wait found one of them full.
	exceeded func(window)
	wake     chan struct{}

	mu           sync.Mutex
	control      []*outFrame
	controlBytes int64
	burst        int
	turns        turns
	used         int64  // bytes of all streams
	over         uint64 // the window of the bytes that is open, 0 = none
	windows      uint64 // opened so far
	pong         []byte
	pongDue      bool
	pingDue      bool
	finished     bool // nothing is taken any more
	abort        bool // nothing that is queued is written any more
}

func newOutbox(cfg *Config) *outbox {
	return &outbox{
		frames: marksOf("outbound_frames", int64(cfg.OutboundFrames)), bytes: marksOf("outbound_bytes", cfg.OutboundBytes),
		exceeded: func(window) {}, wake: make(chan struct{}, 1), turns: newTurns(),
	}
}

// push queues a frame. Errors, by which the frame stays the caller's: *kernel.Overloaded, tunnel.ErrGone.
func (o *outbox) push(f *outFrame) error {
	o.mu.Lock()
	opened, err := o.put(f)
	o.mu.Unlock()
	if opened.n != 0 {
		o.exceeded(opened)
	}
	if err == nil {
		o.rouse()
	}
	return err
}

func (o *outbox) put(f *outFrame) (window, error) {
	size := f.size()
	if o.finished {
		return window{}, tunnel.ErrGone
	}
	if f.stream == control {
		if !f.answer && (len(o.control) >= controlFrames || o.controlBytes+size > controlBytes) {
			return window{}, &kernel.Overloaded{Scope: "control", Limit: controlBytes, Used: o.controlBytes, Size: size, RetryAfter: readAgain}
		}
		o.control = append(o.control, f)
		o.controlBytes += size
		return window{}, nil
	}
	s := o.turns.stream(f.stream)
	frames := int64(len(s.frames))
	var opened window
	switch full := o.full(f, frames, size); {
	case full == nil:
	case f.patient:
		return window{}, full
	default:
		opened = o.open(s, full)
		if !f.answer {
			return opened, full
		}
	}
	o.turns.add(s, f)
	o.used += size
	return opened, nil
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
	lost, short, bodies := false, []*outFrame(nil), []*kernel.Lease(nil)
	taken := o.remove(name, func(f *outFrame) bool {
		if !f.answer {
			lost = true
			return true
		}
		if lost && !f.prompted.IsZero() {
			short = append(short, f)
			o.used -= f.size()
			f.parts = [3][]byte{jsonrpc.AppendError(nil, f.prompted, jsonrpc.SupersededError())}
			bodies, f.body = append(bodies, f.body), nil
			o.used += f.size()
		}
		return false
	})
	for i, f := range short {
		f.lease.Shrink(f.own())
		bodies[i].Release()
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
	if s := o.turns.find(name); s != nil {
		s.frames = keep(s.frames)
		for _, f := range taken {
			o.used -= f.size()
		}
		o.turns.settle(s)
		o.close(s)
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
	for _, s := range o.turns.waiting {
		all = append(all, s.frames...)
	}
	o.control, o.controlBytes, o.turns, o.used = nil, 0, newTurns(), 0
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
	streams := len(o.turns.waiting) > 0
	if len(o.control) > 0 && (!streams || o.burst < controlBurst) {
		f := o.control[0]
		o.control[0] = nil
		o.control = o.control[1:]
		o.controlBytes -= f.size()
		if streams {
			o.burst++
		}
		return job{frame: f}, true
	}
	if streams {
		o.burst = 0
		s, f := o.turns.next()
		o.used -= f.size()
		o.close(s)
		return job{frame: f}, true
	}
	o.turns.rest()
	return job{finish: true}, o.finished
}

// queued is what waits, for the tree.
func (o *outbox) queued() (frames int, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames = len(o.control)
	for _, s := range o.turns.waiting {
		frames += len(s.frames)
	}
	return frames, o.controlBytes + o.used
}
