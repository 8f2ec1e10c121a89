package caller

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
)

// Target is a session that can be called.
type Target struct {
	Session    int
	URL, Token string
	Agent      Agent // makes the call, where there is no token
	Place      string
}

// Options are what callers need.
type Options struct {
	Dice   fault.Dice
	Faults *fault.Set
	Book   *invariant.Book
	Calls  *ledger.Calls
	Tally  *ledger.Tally
	Tools  []Tool
	Rate   float64 // calls a second, all together
	First  int     // the number before that of the first call
	Keyed  float64 // share of the calls that have an idempotency key, besides those that are repeated
	// Pick chooses a session; false = there is none now.
	Pick func(intN func(n int) int) (Target, bool)
	// Bound is how long an answer may take at most; then the pod owes it.
	Bound time.Duration
	// Deadline is how long the pod waits for a request from the moment of its connection on, less what clocks differ by: where the machine
	// stands still for that long before the request is written, its connection is closed, and that is the answer. However long a call
	// lasts that was written in time, its connection stays.
	Deadline time.Duration
	// Request and Result are the pod's bounds in bytes.
	Request, Result int
	// Patient is how long a call that is repeated under its key waits before, so that it is over in the pod.
	Patient time.Duration
	// Open is how many calls may be open at once; what is over it is not made, and counted as such.
	Open int
}

// Tool is what may be called.
type Tool struct {
	Name     string
	ReadOnly bool
}

// Callers make the calls of a run.
type Callers struct {
	o      Options
	client *http.Client
	next   atomic.Int64
	open   atomic.Int64
	bytes  atomic.Int64
	calls  sync.WaitGroup
}

// New makes callers; Idle frees their connections.
func New(o Options) *Callers {
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	c := &Callers{o: o, client: &http.Client{Transport: &http.Transport{
		DialContext: dial(dialer), MaxIdleConnsPerHost: 256, MaxIdleConns: 256, IdleConnTimeout: 30 * time.Second,
	}}}
	c.next.Store(int64(o.First))
	return c
}

// Run starts calls at the rate until ctx ends, and returns when all of them have ended. A call counts from the moment in which it should
// have started.
func (c *Callers) Run(ctx context.Context) {
	defer c.o.Calls.SpareOrphans()
	defer c.calls.Wait()
	if c.o.Rate <= 0 {
		return
	}
	begun := time.Now()
	for n := 0; ; n++ {
		due := begun.Add(time.Duration(float64(n) / c.o.Rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		} else if ctx.Err() != nil {
			return
		}
		number := int(c.next.Add(1))
		if c.open.Load() >= int64(c.o.Open) {
			c.o.Tally.Count("not_made")
			continue
		}
		c.open.Add(1)
		c.calls.Go(func() {
			defer c.open.Add(-1)
			c.call(number, due)
		})
	}
}

// Open is how many calls are under way.
func (c *Callers) Open() int64 { return c.open.Load() }

// Bytes is what went through the facade: bodies of requests and answers.
func (c *Callers) Bytes() int64 { return c.bytes.Load() }

// Idle frees the connections that nobody uses.
func (c *Callers) Idle() { c.client.CloseIdleConnections() }
