package session

import (
	"sync/atomic"

	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/runtime/kernel"
)

// itemBytes is what an item costs besides its frame: its own memory, and what carries the frame to the socket.
const itemBytes = agent.LineOverhead

// weight says what is dropped last.
type weight uint8

const (
	fleeting weight = iota // news of the pod's own that the next client is told anyhow: neither kept nor counted
	plain
	terminal // the end of a tool call: dropped when nothing plain is left
	pinned   // the end of a turn, an answer, a question: never dropped
	owed     // no weight of its own: the acts that answer somebody are counted by it
	weights
)

// item is one thing that a session says to its client, in its place.
type item struct {
	body   atomic.Pointer[[]byte] // the frame; nil for an act, and once it has left
	size   int64
	lease  *kernel.Lease // of the frame, as long as it is ours
	credit *agent.Credit // nil once it is given back
	weight weight
	words  words // where the text of the frame is, once it was looked for
	count  int64 // updates of the agent that the frame holds
	said   int64 // their bytes, as frames of their own
	past   bool  // of a replay: for the client that asked for it, and nobody else
	gap    *gap  // it tells the client of what it does not get
	// act is said in place of a frame: an answer, or a request of the agent. *kernel.Overloaded puts it off.
	act    func() error
	answer bool   // the act answers a request: it is done however the session ends
	short  func() // answers a prompt whose turn's words the client does not get; nil for other answers
	drop   func() // what an act leaves behind that is never done; may be nil
	state  atomic.Uint32
}

const (
	here    uint32 = iota // not known to have left
	left                  // written to the socket
	stopped               // taken out of the stream
)

// newFrame is one frame of the pod's own; newUpdate one of the agent.
func newFrame(frame []byte, lease *kernel.Lease, w weight) *item {
	it := &item{size: int64(len(frame)), lease: lease, weight: w}
	it.body.Store(&frame)
	return it
}

func newUpdate(frame []byte, lease *kernel.Lease, credit *agent.Credit, w weight) *item {
	it := newFrame(frame, lease, w)
	it.credit, it.count, it.said = credit, 1, it.size
	return it
}

// again is the item of a frame that never left its client's stream, paid by lease.
func (it *item) again(lease *kernel.Lease) *item {
	next := &item{size: it.size, lease: lease, weight: it.weight, words: it.words, count: it.count, said: it.said, past: it.past}
	next.body.Store(it.body.Load())
	return next
}

// holds is the memory that the item keeps alive.
func (it *item) holds() int64 { return int64(cap(*it.body.Load())) + itemBytes }

// repay gives the credit back: from now on the agent's reader does not wait for this item.
func (it *item) repay() {
	it.credit.Done()
	it.credit = nil
}

func (it *item) forget() {
	if it.drop != nil {
		it.drop()
	}
}
