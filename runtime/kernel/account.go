package kernel

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// retryAfter is the hint in a refusal: long enough that a queue of small messages has moved, short enough for a person.
const retryAfter = 250 * time.Millisecond

// Account is a node in the tree of byte accounts. What is charged to it is charged to all above it, or to none.
// All methods are safe from any goroutine.
type Account struct {
	parent *Account
	root   *waitlist // one for the whole tree
	scope  string
	limit  int64
	depth  int
	used   atomic.Int64
	closed atomic.Bool
}

// NewAccount makes the root of a tree of its own, with limit in bytes: a bound on something that a [Kernel]'s tree pays for
// besides. The root that actors are charged to is [Kernel.Account].
func NewAccount(scope string, limit int64) *Account {
	return &Account{scope: scope, limit: limit, root: &waitlist{}}
}

// Child makes an account below a. Limit is in bytes; 0 means no limit but those above.
func (a *Account) Child(scope string, limit int64) *Account {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &Account{parent: a, root: a.root, scope: scope, limit: limit, depth: a.depth + 1}
}

// Scope is the account's name, as it stands in refusals.
func (a *Account) Scope() string { return a.scope }

// Limit is in bytes.
func (a *Account) Limit() int64 { return a.limit }

// Used is the number of bytes charged to a and all below it, now.
func (a *Account) Used() int64 { return a.used.Load() }

// Parent is the account that a is charged to as well, nil for the root.
func (a *Account) Parent() *Account { return a.parent }

// Close ends admission: Acquire says ErrStopped from now on, waiters are told the same. What is charged stays charged until it is released.
func (a *Account) Close() {
	if !a.closed.Swap(true) {
		a.root.wake()
	}
}

// take charges n to a and all above, or says who refused. It never lets a counter pass its limit, not even for an instant.
func (a *Account) take(n int64) (refused *Account, stopped bool) { return a.takeBelow(n, nil) }

// takeBelow charges the path from a up to, and without, top.
func (a *Account) takeBelow(n int64, top *Account) (refused *Account, stopped bool) {
	for x := a; x != nil; x = x.parent {
		if x.closed.Load() {
			stopped = true
		}
	}
	if stopped {
		return nil, true
	}
	for x := a; x != top; x = x.parent {
		if !x.add(n) {
			for y := a; y != x; y = y.parent {
				y.used.Add(-n)
			}
			return x, false
		}
	}
	return nil, false
}

func (a *Account) add(n int64) bool {
	for {
		u := a.used.Load()
		if n > a.limit-u {
			return false
		}
		if a.used.CompareAndSwap(u, u+n) {
			return true
		}
	}
}

func (a *Account) give(n int64) { a.giveBelow(n, nil) }

func (a *Account) giveBelow(n int64, top *Account) {
	if n == 0 {
		return
	}
	for x := a; x != top; x = x.parent {
		x.used.Add(-n)
	}
	a.root.wake()
}

func (a *Account) refusal(n int64) *Overloaded {
	return &Overloaded{Scope: a.scope, Limit: a.limit, Used: a.used.Load(), Size: n, RetryAfter: retryAfter}
}

// charge is take with the error that callers see.
func (a *Account) charge(n int64) error {
	refused, stopped := a.take(n)
	if stopped {
		return ErrStopped
	}
	if refused != nil {
		a.root.wake() // what was taken on the way and given back may be what a waiter lacked
		return refused.refusal(n)
	}
	return nil
}

// Acquire charges n bytes to a and all above it, or nothing: then the error is *Overloaded with the account that refused,
// or ErrStopped when a is closed. It never waits.
func (a *Account) Acquire(n int64) (*Lease, error) {
	if n < 0 {
		n = 0
	}
	if err := a.charge(n); err != nil {
		return nil, err
	}
	return &Lease{account: a, size: n}, nil
}

// AcquireWait is Acquire that waits for bytes to be released until ctx ends; then it gives the refusal that it would have
// had from Acquire, or ctx's cause when that is not a deadline. For goroutines that may wait (a socket's reader); never in a turn.
func (a *Account) AcquireWait(ctx context.Context, n int64) (*Lease, error) {
	if n < 0 {
		n = 0
	}
	l, err := a.Acquire(n)
	if _, full := errors.AsType[*Overloaded](err); !full {
		return l, err
	}
	return a.root.wait(ctx, a, n, err)
}

// ancestor finds the lowest account that is above (or is) both, nil when they are in different trees.
func ancestor(a, b *Account) *Account {
	for a != b {
		if a == nil || b == nil {
			return nil
		}
		if a.depth >= b.depth {
			a = a.parent
		} else {
			b = b.parent
		}
	}
	return a
}
