package kernel

import "sync"

// Lease is bytes on an account that outlive a turn. Whoever ends the life of what they stand for releases it, once; a second
// release does nothing. A nil Lease is a lease on nothing. All methods are safe from any goroutine.
type Lease struct {
	mu      sync.Mutex
	account *Account // nil once released
	size    int64
}

// Size is the number of bytes that it stands for, 0 once released.
func (l *Lease) Size() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Account is who pays, nil once released.
func (l *Lease) Account() *Account {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.account
}

// Move makes another account pay, all or nothing: on an error the old account still does. What both are below is not charged twice.
// The error is *Overloaded, or ErrStopped when the new account is closed or the lease was released already.
func (l *Lease) Move(to *Account) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil {
		return ErrStopped
	}
	if l.account == to {
		return nil
	}
	top := ancestor(l.account, to)
	refused, stopped := to.takeBelow(l.size, top)
	if stopped {
		return ErrStopped
	}
	if refused != nil {
		to.root.wake()
		return refused.refusal(l.size)
	}
	l.account.giveBelow(l.size, top)
	l.account = to
	return nil
}

// Shrink gives back all but to bytes. It never grows a lease.
func (l *Lease) Shrink(to int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if to = max(to, 0); l.account == nil || to >= l.size {
		return
	}
	back := l.size - to
	l.size = to
	l.account.give(back)
}

// grow charges more to the same account.
func (l *Lease) grow(by int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil {
		return ErrStopped
	}
	if err := l.account.charge(by); err != nil {
		return err
	}
	l.size += by
	return nil
}

// Release gives the bytes back.
func (l *Lease) Release() {
	if l != nil {
		l.release()
	}
}

// release reports how many bytes it gave back: 0 after the first time.
func (l *Lease) release() int64 {
	l.mu.Lock()
	a, n := l.account, l.size
	l.account, l.size = nil, 0
	l.mu.Unlock()
	if a != nil {
		a.give(n)
	}
	return n
}

// leaseOf finds the lease that a message brings, nil when none.
func leaseOf(m Msg) *Lease {
	if x, ok := m.(Leased); ok {
		return x.Lease()
	}
	return nil
}
