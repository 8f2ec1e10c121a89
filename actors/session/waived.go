package session

// waived is what was kept for a client and then dropped, because a replay that is under way says it too. Once the client has been shown all of that
// it is forgotten; a replay that does not reach its end leaves it missed.
type waived struct {
	updates, bytes int64
	open           bool // the request that the replay is for has no answer yet
}

// waive drops what is kept of the session's words, because a replay says them all. What is owed to somebody stays, and what is left of an earlier
// replay is nobody's.
func (o *outbox) waive() {
	o.resolve(true)
	queue := o.queue
	o.queue, o.bytes, o.weighs = nil, 0, [weights]int{}
	for _, it := range queue {
		if it.act != nil || it.weight == fleeting {
			o.append(it)
			continue
		}
		o.miss(it)
	}
	o.waived = waived{o.waived.updates + o.missed, o.waived.bytes + o.missedBytes, true}
	o.missed, o.missedBytes = 0, 0
}

// shown is the answer to who asked for the replay: it stands behind the whole of it.
func (o *outbox) shown() {
	o.waived.open = false
	o.settleWaived()
}

// settleWaived forgets what was waived when nothing of the replay is on its way any more.
func (o *outbox) settleWaived() {
	if o.waived.open || o.waived == (waived{}) {
		return
	}
	for _, it := range o.flight {
		if it.past {
			return
		}
	}
	o.waived = waived{}
}

// unshown is the end of a replay that was not shown whole: what was waived for it is missed.
func (o *outbox) unshown() {
	o.missed, o.missedBytes = o.missed+o.waived.updates, o.missedBytes+o.waived.bytes
	o.waived = waived{}
}
