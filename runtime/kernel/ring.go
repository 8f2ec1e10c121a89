package kernel

// ring is a growable first-in first-out queue of items; not safe for concurrent use.
type ring struct {
	buf     []item
	head, n int
}

func (r *ring) push(it item) {
	if r.n == len(r.buf) {
		buf := make([]item, max(4, 2*len(r.buf)))
		k := copy(buf, r.buf[r.head:])
		copy(buf[k:], r.buf[:r.head])
		r.buf, r.head = buf, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = it
	r.n++
}

func (r *ring) pop() item {
	it := r.buf[r.head]
	r.buf[r.head] = item{} // what was queued is not kept alive by the queue
	r.head = (r.head + 1) % len(r.buf)
	if r.n--; r.n == 0 && len(r.buf) > 64 {
		r.buf, r.head = nil, 0 // give a burst's memory back
	}
	return it
}

// first is the oldest item, nil when there is none.
func (r *ring) first() *item {
	if r.n == 0 {
		return nil
	}
	return &r.buf[r.head]
}
