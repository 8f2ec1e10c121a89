package facade

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// What waits for a client beside its result is bounded in notes and in bytes; what does not fit is dropped, as the next
// note says more than the one before. noteRoom is paid for while the call runs.
const (
	noteQueue = 16
	noteRoom  = 64 << 10
)

// The longest notes that are passed on, in bytes. Progress says how far a call is and has a line of text; a log record
// has something to look at; a question has a form.
const (
	longestProgress = 4 << 10
	longestLog      = 16 << 10
	longestQuestion = 32 << 10
)

// note is one thing that a call says while it runs.
type note struct {
	method string
	params []byte
	// answer is called with what the user says, for a question; nil for a notification.
	answer func(result []byte, failed *jsonrpc.Error)
}

// notes passes on what one call says while it runs, as events. The response becomes a stream with the first of them; a call
// without any is answered as a plain response. It has one goroutine, which ends before close returns.
type notes struct {
	front  *front
	caller capability.Caller
	out    outlet
	wants  asides
	room   *kernel.Lease

	queue   chan note
	queued  atomic.Int64 // bytes
	ended   chan struct{}
	closing sync.Once
	asked   atomic.Bool // a question was put, so it may be open

	err error // of the client; it belongs to the goroutine until ended is closed
}

// startNotes is nil where the client reads no stream, wants no notes, or has no room for them: the call goes on without.
func (x *exchange) startNotes(wants asides) *notes {
	if wants.nothing() || !x.streams {
		return nil
	}
	room, err := x.payer().Acquire(noteRoom)
	if err != nil {
		return nil
	}
	wants.progressToken = bytes.Clone(wants.progressToken)
	n := &notes{front: x.front, caller: x.caller, out: x.out, wants: wants, room: room,
		queue: make(chan note, noteQueue), ended: make(chan struct{})}
	go n.write()
	return n
}

// asides are what a call is given to speak by. They run on the turn of a source: they copy and never block. A note after
// the end is dropped, and a question declined.
func (n *notes) asides() capability.Asides {
	a := capability.Asides{Progress: n.progress, Log: n.log}
	if n.wants.elicits != 0 {
		a.Elicit = n.elicit
	}
	return a
}

func (n *notes) progress(params []byte) {
	if n.wants.progressToken != nil && len(params) <= longestProgress {
		n.offer(note{method: "notifications/progress", params: params})
	}
}

func (n *notes) log(params []byte) {
	if n.wants.logLevel != "" && len(params) <= longestLog && atLeast(params, n.wants.logLevel) {
		n.offer(note{method: "notifications/message", params: params})
	}
}

func (n *notes) elicit(e capability.Elicitation) {
	params, ok := questionFor(e, n.wants.elicits)
	if !ok || !n.offer(note{method: "elicitation/create", params: params, answer: e.Answer}) {
		n.front.count("declined_question")
		decline(e.Answer)
	}
}

// offer queues a note, copied, where there is room.
func (n *notes) offer(one note) bool {
	size := int64(len(one.params))
	if n.queued.Add(size) > noteRoom {
		n.queued.Add(-size)
		return false
	}
	one.params = bytes.Clone(one.params)
	select {
	case <-n.ended:
		n.queued.Add(-size)
		return false
	default:
	}
	select {
	case n.queue <- one:
	default:
		n.queued.Add(-size)
		return false
	}
	select {
	case <-n.ended: // meanwhile, so nobody reads it
		n.drain()
	default:
	}
	return true
}

// drain declines the questions that wait for nobody any more.
func (n *notes) drain() {
	for {
		select {
		case one := <-n.queue:
			if one.answer != nil {
				decline(one.answer)
			}
		default:
			return
		}
	}
}

func (n *notes) write() {
	defer close(n.ended)
	for one := range n.queue {
		if one.method == "" {
			return
		}
		n.send(one)
		n.queued.Add(-int64(len(one.params)))
	}
}

// send writes one note as an event. A question is registered before it is written, so that its answer finds it.
func (n *notes) send(one note) {
	if n.err != nil {
		if one.answer != nil {
			decline(one.answer)
		}
		return
	}
	event, ok := answer{}, true
	switch {
	case one.answer != nil:
		n.asked.Store(true)
		var id jsonrpc.ID
		if id, ok = n.front.putQuestion(n.caller, n, one.answer); ok {
			event.payload = jsonrpc.AppendRequest(nil, id, one.method, one.params)
		}
	case one.method == "notifications/progress":
		event, ok = progressNote(one.params, n.wants.progressToken)
	default:
		event.payload = jsonrpc.AppendNotification(nil, one.method, one.params)
	}
	if !ok {
		return
	}
	n.err = n.out.event(event)
}

// close ends the goroutine; what waits is still written. The empty note is the end: the channel itself is not closed,
// since a source may offer at any time.
func (n *notes) close() {
	n.closing.Do(func() { n.queue <- note{} })
	<-n.ended
}

// end closes, takes back the questions that nobody answered, and pays back.
func (n *notes) end() {
	if n == nil {
		return
	}
	n.close()
	n.drain()
	if n.asked.Load() {
		n.front.withdraw(n)
	}
	n.room.Release()
}

// answer implements responder.
func (n *notes) answer(a answer, status int) error {
	if n.close(); n.err != nil {
		return n.err
	}
	return n.out.answer(a, status)
}

// levels are the severities of log records, least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
