package ledger

import (
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
)

// Connections are the MCP connections that one socket has let the pod open.
type Connections struct {
	book *invariant.Book
	name string

	mu     sync.Mutex
	open   map[string]opened
	ended  map[string]struct{}
	exempt map[string]struct{}
	count  int64
}

type opened struct {
	server string
	over   time.Time // when its server was over for us: the disconnect is due from then on; zero = it is not
}

// NewConnections makes the ledger of one socket.
func NewConnections(book *invariant.Book, name string) *Connections {
	return &Connections{book: book, name: name, open: map[string]opened{}, ended: map[string]struct{}{}, exempt: map[string]struct{}{}}
}

// Open enters a connection before the answer that gives its id is written.
func (c *Connections) Open(id, server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[id] = opened{server: server}
	c.count++
}

// Exempt takes out an id that we gave in a way in which no one knows what it means: twice, or empty.
func (c *Connections) Exempt(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id)
	c.exempt[id] = struct{}{}
}

// Disconnect enters a disconnect of the pod.
func (c *Connections) Disconnect(id string) {
	c.mu.Lock()
	_, open := c.open[id]
	_, ended := c.ended[id]
	_, exempt := c.exempt[id]
	delete(c.open, id)
	if open {
		c.ended[id] = struct{}{}
	}
	c.mu.Unlock()
	switch {
	case exempt:
	case open:
		c.book.Exercise(invariant.DisconnectedOnce)
	case ended:
		c.book.Break(invariant.DisconnectedOnce, []string{c.name}, "%s: MCP connection %s was disconnected twice", c.name, id)
	default:
		c.book.Break(invariant.DisconnectedOnce, []string{c.name}, "%s: MCP connection %s was disconnected and never opened here", c.name, id)
	}
}

// Ended reports whether the pod has disconnected it: nothing is served on it any more.
func (c *Connections) Ended(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ended := c.ended[id]
	return ended
}

// Over notes that a server is over: its session was closed, or another declaration took its place. Its connections are to be disconnected.
func (c *Connections) Over(server string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, o := range c.open {
		if o.server == server && o.over.IsZero() {
			o.over = now
			c.open[id] = o
		}
	}
}

// Due is how many connections are over and not yet disconnected.
func (c *Connections) Due() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		if !o.over.IsZero() {
			n++
		}
	}
	return n
}

// Standing is how many connections a server has that is not over.
func (c *Connections) Standing(server string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		if o.server == server && o.over.IsZero() {
			n++
		}
	}
	return n
}

// Check breaks the promise for each connection that is over for longer than grace, once.
func (c *Connections) Check(now time.Time, grace time.Duration) {
	c.mu.Lock()
	var left []string
	for id, o := range c.open {
		if !o.over.IsZero() && now.Sub(o.over) > grace {
			left = append(left, id)
			delete(c.open, id)
			c.exempt[id] = struct{}{}
		}
	}
	c.mu.Unlock()
	for _, id := range left {
		c.book.Break(invariant.DisconnectedOnce, []string{c.name}, "%s: MCP connection %s was not disconnected in %s after its server was over, and the socket lives", c.name, id, grace)
	}
}

// Close is for the end of the socket, which ends them all.
func (c *Connections) Close() {
	c.mu.Lock()
	n := len(c.open)
	clear(c.open)
	c.mu.Unlock()
	c.book.ExerciseN(invariant.DisconnectedOnce, int64(n))
}

// Count is how many were opened.
func (c *Connections) Count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}
