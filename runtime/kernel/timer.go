package kernel

import "time"

// timer is one After that has not been delivered.
type timer struct {
	msg  Msg
	stop func() bool
}

func (c *cell) after(d time.Duration, msg Msg) (cancel func()) {
	t := &timer{msg: msg}
	m := c.mb
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		freeLeases(msg)
		return func() {}
	}
	if m.timers == nil {
		m.timers = map[*timer]struct{}{}
	}
	m.timers[t] = struct{}{}
	t.stop = c.k.clock.AfterFunc(d, func() {
		if !m.put(&m.control, item{msg: msg, tm: t, kind: timed}) {
			freeLeases(msg)
		}
	})
	return func() {
		m.mu.Lock()
		_, live := m.timers[t]
		delete(m.timers, t)
		m.mu.Unlock()
		if live && t.stop() {
			freeLeases(msg) // in the lane already: freed when its turn comes and is refused
		}
	}
}
