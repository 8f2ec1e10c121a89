package session

// earlyFrames and keptBytes bound it.
const earlyFrames = 100

// early is what a new agent says before its answer to session/new tells which session it has here. Until then nobody knows whether it
// is about this one; no client is told, and the agent does not wait, because that answer comes behind it in the same pipe.
type early struct {
	items []*item
	about []string // the agent's id, of each; "" = it is about the agent itself
	bytes int64
	gap   gap // what there was too much of
}

// wait keeps an update until its session is known: the newest, at most earlyFrames and keptBytes.
func (o *outbox) wait(it *item, about string) {
	it.repay()
	e := &o.early
	e.items, e.about, e.bytes = append(e.items, it), append(e.about, about), e.bytes+it.size
	for len(e.items) > earlyFrames || e.bytes > keptBytes {
		oldest := e.items[0]
		e.items[0] = nil
		e.items, e.about, e.bytes = e.items[1:], e.about[1:], e.bytes-oldest.size
		e.gap.updates, e.gap.bytes = e.gap.updates+oldest.count, e.gap.bytes+oldest.said
		oldest.lease.Release()
		o.refused("early_updates")
	}
}

// known says what was kept of the session with that id of the agent, and drops what was about another.
func (o *outbox) known(id string) {
	e := o.early
	o.early = early{}
	if e.gap.updates > 0 {
		e.gap.scope = "early_updates"
		o.skip(e.gap)
	}
	for i, it := range e.items {
		if e.about[i] == id || e.about[i] == "" {
			o.push(it)
			continue
		}
		it.lease.Release()
		o.refused("agent_update")
	}
}

// unknown drops it: its agent is gone and never told.
func (o *outbox) unknown() {
	e := o.early
	o.early = early{}
	for _, it := range e.items {
		it.lease.Release()
		o.refused("early_updates")
	}
}
