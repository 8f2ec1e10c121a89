package kernel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// waitlist holds those who wait for bytes anywhere in one tree of accounts, first come first served for each account that is
// short. Releases wake it; nothing polls.
type waitlist struct {
	n       atomic.Int32 // waiting or about to: releases look here first, without the lock
	mu      sync.Mutex
	waiters []*waiter
}

type waiter struct {
	account *Account
	size    int64
	ready   chan error // one slot
}

// wait queues up for n bytes of a. last is the refusal so far.
func (l *waitlist) wait(ctx context.Context, a *Account, n int64, last error) (*Lease, error) {
	w := &waiter{account: a, size: n, ready: make(chan error, 1)}
	l.mu.Lock()
	l.n.Add(1) // before the look below: a release after it sees us, one before it is seen by the look
	l.waiters = append(l.waiters, w)
	l.serve()
	l.mu.Unlock()
	select {
	case err := <-w.ready:
		return w.result(err)
	case <-ctx.Done():
	}
	l.mu.Lock()
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
		l.n.Add(-1)
		l.serve() // those behind us may fit
		l.mu.Unlock()
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			return nil, cause
		}
		return nil, last
	}
	l.mu.Unlock()
	return w.result(<-w.ready) // served in the last moment
}

func (w *waiter) result(err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return &Lease{account: w.account, size: w.size}, nil
}

// wake serves the waiters after a release.
func (l *waitlist) wake() {
	if l.n.Load() == 0 {
		return
	}
	l.mu.Lock()
	l.serve()
	l.mu.Unlock()
}

// serve gives to those who fit, in order. Who is behind a waiter that the same account keeps waiting, waits too:
// a large request is not starved by small ones.
func (l *waitlist) serve() {
	var short []*Account
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool {
		for x := w.account; x != nil; x = x.parent {
			if slices.Contains(short, x) {
				return false
			}
		}
		refused, stopped := w.account.take(w.size)
		switch {
		case stopped:
			w.ready <- ErrStopped
		case refused != nil:
			short = append(short, refused)
			return false
		default:
			w.ready <- nil
		}
		l.n.Add(-1)
		return true
	})
}
