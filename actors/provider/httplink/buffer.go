package httplink

import (
	"context"
	"errors"
	"io"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
)

// buffer is one message while it is read. What it may hold is paid for before it is there; while it grows, both the old room and
// the new are.
type buffer struct {
	account *kernel.Account
	limit   int64 // of the message, in bytes
	b       []byte
	lease   *kernel.Lease
}

// reserve makes room for n bytes more, exactly when it is the first and at least twice as much as there was afterwards. It waits
// for the account's room, at most roomTimeout. Its errors are *link.TooLargeError, *kernel.Overloaded and ctx's cause.
func (b *buffer) reserve(ctx context.Context, n int) error {
	need := int64(len(b.b)) + int64(n)
	if need > b.limit {
		return &link.TooLargeError{Size: need, Limit: b.limit}
	}
	if need <= int64(cap(b.b)) {
		return nil
	}
	room := max(need, min(2*int64(cap(b.b)), b.limit))
	lease, err := acquire(ctx, b.account, room)
	if err != nil {
		return err
	}
	grown := make([]byte, len(b.b), room)
	copy(grown, b.b)
	b.lease.Release()
	b.b, b.lease = grown, lease
	return nil
}

// acquire pays for n bytes, and waits for room at most roomTimeout.
func acquire(ctx context.Context, a *kernel.Account, n int64) (*kernel.Lease, error) {
	lease, err := a.Acquire(n)
	if _, full := errors.AsType[*kernel.Overloaded](err); !full {
		return lease, err
	}
	waiting, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	return a.AcquireWait(waiting, n)
}

// add appends a copy.
func (b *buffer) add(ctx context.Context, more []byte) error {
	if err := b.reserve(ctx, len(more)); err != nil {
		return err
	}
	b.b = append(b.b, more...)
	return nil
}

// readAll reads r to its end: size bytes, or as many as come when size is negative.
func (b *buffer) readAll(ctx context.Context, r io.Reader, size int64) error {
	if size >= 0 {
		if size > b.limit {
			return &link.TooLargeError{Size: size, Limit: b.limit}
		}
		if err := b.reserve(ctx, int(size)); err != nil {
			return err
		}
		b.b = b.b[:size]
		n, err := io.ReadFull(r, b.b)
		b.b = b.b[:n]
		return err
	}
	for {
		want := 1
		if b.b == nil {
			want = int(max(1, min(firstRead, b.limit)))
		}
		if err := b.reserve(ctx, want); err != nil {
			// The limit itself is no error when nothing comes any more.
			if _, large := errors.AsType[*link.TooLargeError](err); large {
				if n, end := io.ReadFull(r, make([]byte, 1)); n == 0 && errors.Is(end, io.EOF) {
					return nil
				}
			}
			return err
		}
		n, err := r.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// firstRead is the room of a message of unknown length at first, in bytes.
const firstRead = 4 << 10

// take hands the message and its lease on.
func (b *buffer) take() ([]byte, *kernel.Lease) {
	bytes, lease := b.b, b.lease
	b.b, b.lease = nil, nil
	return bytes, lease
}

// drop forgets what there is.
func (b *buffer) drop() {
	_, lease := b.take()
	lease.Release()
}
