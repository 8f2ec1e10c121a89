package session

import (
	"github.com/acpod/acpod/actors/session/agent"
)

// Bounds of what an outbox keeps while the agent does not wait for anybody.
const (
	// keptFrames and keptBytes: for the next client. Agents say a word or two in an update, so it is the bytes that count.
	keptFrames = 4096
	keptBytes  = agent.CreditBytes
	// smallFrame is the mean below which frames are put together before any is dropped: most of them is envelope.
	smallFrame = 1 << 10
	// newsFrames: news of the pod's own that wait for a client that reads slowly; the latest says it all.
	newsFrames = 32
)

// bound makes room where too much is kept. Frames become fewer first, by text that is put together; then items are dropped, the
// plain ones first, then ends of tool calls, the oldest of each. With a client that only reads slowly the agent waits, and
// nothing of it is dropped.
func (o *outbox) bound() {
	if o.client != nil && !o.held {
		for o.weighs[fleeting] > newsFrames {
			o.miss(o.remove(o.oldest()))
		}
		for o.open && o.updates() > 1 && o.crowded() && o.drop("session_bytes") {
		}
		return
	}
	if o.beyond(keptFrames) && o.bytes < int64(o.updates())*smallFrame {
		o.compact()
	}
	for o.updates() > 1 && o.beyond(keptFrames) && o.drop("kept_updates") {
	}
}

// updates is how many of the agent's updates are in the queue; frames that were put together count once.
func (o *outbox) updates() int { return o.weighs[plain] + o.weighs[terminal] }

func (o *outbox) beyond(frames int) bool { return o.updates() > frames || o.bytes > keptBytes }

// crowded tells whether the session's account has no room left for the longest line of the agent: it must not be what a slow
// client has not read that keeps the agent's last words out.
func (o *outbox) crowded() bool { return o.account.Used() > o.account.Limit()-o.spare }

// compact joins the text updates of the queue that follow each other.
func (o *outbox) compact() {
	queue := o.queue
	o.queue, o.bytes, o.weighs = queue[:0], 0, [weights]int{}
	var last *item
	for _, it := range queue {
		if last != nil {
			before := last.size
			if last.merge(it, o.account) {
				o.bytes += last.size - before
				continue
			}
		}
		o.append(it)
		last = it
	}
	clear(queue[len(o.queue):])
}

// drop takes out what can best be spared; false: there is nothing. A client that is there is told, in the place of what is
// missing; the next one is by the account.
func (o *outbox) drop(scope string) bool {
	at := o.oldest()
	if at < 0 {
		return false
	}
	it := o.remove(at)
	for range it.count {
		o.refused(scope)
	}
	if o.client == nil || it.count == 0 {
		o.miss(it)
		return true
	}
	it.lease.Release()
	it.repay()
	o.leaveGap(at, gap{updates: it.count, bytes: it.said, scope: scope})
	return true
}

// oldest is the place of the item that is dropped next, -1 for none.
func (o *outbox) oldest() int {
	for w := fleeting; w < pinned; w++ {
		if o.weighs[w] == 0 {
			continue
		}
		for i, it := range o.queue {
			if it.weight == w && it.act == nil {
				return i
			}
		}
	}
	return -1
}

func (o *outbox) miss(it *item) {
	it.lease.Release()
	it.repay()
	if it.past {
		return // it was said before
	}
	o.missed += it.count // the agent's updates; what else there is, an account tells
	o.missedBytes += it.said
}
