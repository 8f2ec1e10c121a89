package session

import (
	"slices"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// queued is a prompt that waits for the turns before it, of which there are at most agent.queue.
type queued struct {
	params []byte
	held   *kernel.Lease
	asker  *request // nil when its client is gone: it runs all the same, and its end is told to the next
}

// enqueue takes a prompt whose content is good.
func (x *session) enqueue(m Prompt) {
	x.queue = append(x.queue, &queued{params: m.Params, held: m.Held, asker: x.asker(m)})
	x.c.Attr("queue", len(x.queue))
}

// nextTurn begins the turn of the prompt that has waited longest, once there is nothing before it. One that the pod's drain has
// overtaken is refused, and so the one behind it.
func (x *session) nextTurn() {
	for len(x.queue) > 0 && x.turn.phase == idle && x.opening == nil && !x.over {
		q := x.queue[0]
		x.unqueue(q)
		if x.s.draining.Load() {
			x.refuse(q, nil, jsonrpc.Draining(0))
			continue
		}
		x.startTurn(q.params, q.held, q.asker)
	}
}

func (x *session) unqueue(q *queued) {
	x.queue = slices.DeleteFunc(x.queue, func(other *queued) bool { return other == q })
	if len(x.queue) == 0 {
		x.queue = nil
		x.c.Attr("queue", nil)
	} else {
		x.c.Attr("queue", len(x.queue))
	}
}

// refuse answers a prompt that never began.
func (x *session) refuse(q *queued, result []byte, bad *jsonrpc.Error) {
	q.held.Release()
	if q.asker != nil {
		x.answer(q.asker, result, nil, bad)
	}
}

// cancelQueued is a cancel before the turn: of the prompt with that number, 0 = of all. It tells whether there was one.
func (x *session) cancelQueued(req uint64) (found bool) {
	for _, q := range slices.Clone(x.queue) {
		if req == 0 || q.asker != nil && q.asker.req == req {
			x.unqueue(q)
			x.refuse(q, cancelledResult, nil)
			found = true
		}
	}
	return found
}

// leaveQueue is the end of the client that asked. What it asked for still runs when it lost its socket, and is not begun when
// another client has the session.
func (x *session) leaveQueue(taken bool) {
	for _, q := range slices.Clone(x.queue) {
		asker := q.asker
		q.asker = nil
		if taken {
			x.unqueue(q)
			q.held.Release()
		}
		switch {
		case asker == nil:
		case taken:
			asker.give(x.id, nil, nil, jsonrpc.SupersededError())
		default:
			asker.owed.Moot()
		}
	}
}
