package agent

import (
	"context"
	"sync"
)

// Bounds of what lies between the agent's pipe and the client's socket.
const (
	CreditLines = 256
	CreditBytes = 1 << 20
)

// Credits bound what an agent's reader has handed on and nobody has given back yet. A line longer than the bytes
// passes when it is alone. Safe from any goroutine: the reader takes, whoever ends an update's life gives back.
type Credits struct {
	mu      sync.Mutex
	lines   int
	bytes   int64
	open    bool
	changed chan struct{} // closed and replaced whenever something is given back or opened
}

// Credit is what one update holds. The nil Credit holds nothing.
type Credit struct {
	of    *Credits
	bytes int64
	once  sync.Once
}

// NewCredits returns credits of which nothing is taken.
func NewCredits() *Credits { return &Credits{changed: make(chan struct{})} }

// Take waits until a line of n bytes may pass; it fails only with the context's error.
func (c *Credits) Take(ctx context.Context, n int) (*Credit, error) {
	for {
		c.mu.Lock()
		if c.open || c.lines == 0 || (c.lines < CreditLines && c.bytes+int64(n) <= CreditBytes) {
			c.lines++
			c.bytes += int64(n)
			c.mu.Unlock()
			return &Credit{of: c, bytes: int64(n)}, nil
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Done gives the credit back; a second call does nothing.
func (c *Credit) Done() {
	if c == nil || c.of == nil {
		return
	}
	c.once.Do(func() {
		of := c.of
		of.mu.Lock()
		defer of.mu.Unlock()
		of.lines--
		of.bytes -= c.bytes
		of.wake()
	})
}

// Join makes one credit of two whose lines became one: other's bytes are c's from now on, and its line is given back. It
// returns what stands for both. Neither may have been given back before; credits of different readers are not joined (ok
// is false, and nothing has changed).
func (c *Credit) Join(other *Credit) (both *Credit, ok bool) {
	switch {
	case other == nil || other.of == nil:
		return c, true
	case c == nil || c.of == nil:
		return other, true
	case c.of != other.of:
		return c, false
	}
	other.once.Do(func() {
		of := c.of
		of.mu.Lock()
		defer of.mu.Unlock()
		of.lines--
		c.bytes += other.bytes
		of.wake()
	})
	return c, true
}

// Open lets everything pass until Shut: after a cancel, the loss of the client or a stop, so that the agent's last
// words are reached. What is taken meanwhile counts on.
func (c *Credits) Open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
	c.wake()
}

// Shut ends Open: from now on a line waits for its credit again.
func (c *Credits) Shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
}

// Taken tells how many lines and bytes are out.
func (c *Credits) Taken() (lines int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines, c.bytes
}

// Open opens the credits that this one belongs to.
func (c *Credit) Open() {
	if c != nil && c.of != nil {
		c.of.Open()
	}
}

func (c *Credits) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}
