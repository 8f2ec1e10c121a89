package kernel

// link enters a question into the list of those delivered and unanswered. Under the lock.
func (m *mailbox) link(q *Question) {
	q.linked, q.prev, q.next = true, nil, m.open
	if m.open != nil {
		m.open.prev = q
	}
	m.open = q
}

// cut takes a question out of that list. Under the lock.
func (m *mailbox) cut(q *Question) bool {
	if !q.linked {
		return false
	}
	if q.prev != nil {
		q.prev.next = q.next
	} else {
		m.open = q.next
	}
	if q.next != nil {
		q.next.prev = q.prev
	}
	q.linked, q.prev, q.next = false, nil, nil
	return true
}

// unlink is for a question that was answered.
func (m *mailbox) unlink(q *Question) {
	m.mu.Lock()
	m.cut(q)
	m.mu.Unlock()
}

// withdraw is for a question that its asker cancelled: the callee is told, when it knows the question already.
func (m *mailbox) withdraw(q *Question) {
	m.mu.Lock()
	delivered := m.cut(q)
	m.mu.Unlock()
	if delivered {
		m.post(Cancelled{q})
	}
}

// failOpen answers all that was delivered and left unanswered.
func (m *mailbox) failOpen(cause error) {
	for {
		m.mu.Lock()
		q := m.open
		if q != nil {
			m.cut(q)
		}
		m.mu.Unlock()
		if q == nil {
			return
		}
		q.Fail(cause)
	}
}

// cancel is for one of this actor's own requests.
func (m *mailbox) cancel(id uint64) {
	m.mu.Lock()
	q := m.asks[id]
	delete(m.asks, id)
	m.mu.Unlock()
	if q != nil {
		q.cancel() // false: the answer is on its way, and dropped when it arrives
	}
}

// cancelAll is for the end of the asking generation.
func (m *mailbox) cancelAll() {
	m.mu.Lock()
	asks := m.asks
	m.asks = nil
	m.mu.Unlock()
	for _, id := range sortedKeys(asks) {
		asks[id].cancel()
	}
}

// request puts a question of this cell to another.
func (c *cell) request(to *cell, msg Msg) (Ticket, error) {
	q := &Question{id: c.k.ids.Add(1), callee: to, asker: c}
	c.mb.mu.Lock()
	if c.mb.closed {
		c.mb.mu.Unlock()
		leaseOf(msg).Release()
		return Ticket{}, ErrStopped
	}
	if c.mb.asks == nil {
		c.mb.asks = map[uint64]*Question{}
	}
	c.mb.asks[q.id] = q // before the question can be answered
	c.mb.mu.Unlock()
	if err := to.mb.ask(msg, q, c); err != nil {
		c.mb.mu.Lock()
		delete(c.mb.asks, q.id)
		c.mb.mu.Unlock()
		return Ticket{}, err
	}
	return Ticket{q.id}, nil
}
