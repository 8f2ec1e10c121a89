package kernel

// ringFirst and ringPiece are how many items a ring has room for at first, and in each piece: it grows to one piece by doubling and
// from then on piece by piece, so that what waits costs little more than itself.
const (
	ringFirst = 4
	ringPiece = 32
)

// ring is a growable first-in first-out queue of items; not safe for concurrent use. The front is a circular buffer; behind it
// stand pieces that are filled in order, and each becomes the front in its turn.
type ring struct {
	n       int // of all
	front   []item
	head, k int // of the front: its first item, and how many
	rest    [][]item
}

func (r *ring) push(it item) {
	r.n++
	if len(r.rest) == 0 {
		if r.k == len(r.front) && r.k < ringPiece {
			wider := make([]item, max(ringFirst, 2*r.k))
			k := copy(wider, r.front[r.head:])
			copy(wider[k:], r.front[:r.head])
			r.front, r.head = wider, 0
		}
		if r.k < len(r.front) {
			r.front[(r.head+r.k)%len(r.front)] = it
			r.k++
			return
		}
	}
	last := len(r.rest) - 1
	if last < 0 || len(r.rest[last]) == ringPiece {
		r.rest = append(r.rest, make([]item, 0, ringPiece))
		last++
	}
	r.rest[last] = append(r.rest[last], it)
}

func (r *ring) pop() item {
	it := r.front[r.head]
	r.front[r.head] = item{} // what was queued is not kept alive by the queue
	r.head = (r.head + 1) % len(r.front)
	r.n--
	if r.k--; r.k > 0 {
		return it
	}
	switch {
	case len(r.rest) > 0:
		next := r.rest[0]
		r.front, r.head, r.k = next[:ringPiece], 0, len(next)
		r.rest[0] = nil
		if r.rest = r.rest[1:]; len(r.rest) == 0 {
			r.rest = nil
		}
	case len(r.front) > 2*ringFirst:
		r.front, r.head = nil, 0 // give a burst's memory back
	}
	return it
}

// first is the oldest item, nil when there is none.
func (r *ring) first() *item {
	if r.n == 0 {
		return nil
	}
	return &r.front[r.head]
}
