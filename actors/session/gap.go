package session

import (
	"slices"
	"strconv"

	"github.com/acpod/acpod/protocol/jsonrpc"
)

// gap is what a client that is there does not get of its session: so many updates, because that limit was reached.
type gap struct {
	updates, bytes int64
	scope          string
}

// methodDropped tells a client so.
const methodDropped = "_acpod/dropped" // {sessionId, updates, bytes, scope}

func (g gap) frame(session string) []byte {
	rest := strconv.AppendInt([]byte(`,"updates":`), g.updates, 10)
	rest = strconv.AppendInt(append(rest, `,"bytes":`...), g.bytes, 10)
	rest = jsonrpc.AppendString(append(rest, `,"scope":`...), g.scope)
	return methodFrame(methodDropped, session, append(rest, '}'))
}

// leaveGap tells the client at that place of the queue; gaps that touch are one.
func (o *outbox) leaveGap(at int, g gap) {
	for _, near := range []int{at, at - 1} {
		if near < 0 || near >= len(o.queue) || o.queue[near].gap == nil || o.queue[near].gap.scope != g.scope {
			continue
		}
		old := o.queue[near]
		g.updates, g.bytes = g.updates+old.gap.updates, g.bytes+old.gap.bytes
		o.remove(near).lease.Release()
		at = min(at, near)
	}
	if it, ok := o.newGap(g); ok {
		o.queue = slices.Insert(o.queue, at, it)
		o.weigh(it, 1)
	}
}

// newGap is the item that tells it. It counts as missed when its client never reads it.
func (o *outbox) newGap(g gap) (*item, bool) {
	frame := g.frame(o.session)
	lease, err := o.account.Acquire(int64(cap(frame)) + itemBytes)
	if err != nil {
		o.missed, o.missedBytes = o.missed+g.updates, o.missedBytes+g.bytes
		return nil, false
	}
	it := newFrame(frame, lease, pinned)
	it.count, it.said, it.gap = g.updates, g.bytes, &g
	return it, true
}

// skip notes an update that was never read whole: the client that is there is told in its place, the next one by the account.
func (o *outbox) skip(g gap) {
	if o.client == nil {
		o.missed, o.missedBytes = o.missed+g.updates, o.missedBytes+g.bytes
	} else if it, ok := o.newGap(g); ok {
		o.push(it)
	}
}
