package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// phase is how far a connection has come.
type phase uint8

const (
	seating      phase = iota // waits until it may be made
	dialing                   // its link is coming up
	initializing              // the handshake
	listing                   // its tools for the first time
	ready
	ending // its link is being ended; nothing of it counts any more
)

// conn is one connection, from the attempt to the end of its link.
type conn struct {
	number   uint64
	resolved mcpjson.Resolved
	phase    phase
	ticket   kernel.Ticket // of its seat
	link     link.Link
	cancel   context.CancelCauseFunc
	owed     *kernel.Obligation
	stop     func() // takes back the timer of the link's coming up
	greeting greeting
	since    time.Time // when it became ready
	heard    time.Time // when the server said something last
	session  int       // how often the server has lost its session
	renewing bool      // the server lost its session: the handshake runs again
	faulted  int64     // what was sent up to this number has failed with a fault that was counted
	draining bool      // takes no more calls, and ends with the last that it has
}

// is tells whether that connection is the one that counts.
func (a *actor) is(number uint64) bool {
	return a.conn != nil && a.conn.number == number && a.conn.phase != ending
}

// up reports whether requests can be sent now.
func (a *actor) serves() bool {
	return a.conn != nil && a.conn.phase == ready && !a.conn.renewing && !a.conn.draining
}

// wake makes a connection for whoever waits for one: at once, also where a backoff is pending, and once.
func (a *actor) wake(c *kernel.Ctx) {
	if a.conn != nil {
		return // it is there, or coming up, or its end wakes
	}
	a.unretry()
	resolved, err := a.s.entry.Resolve(a.s.cfg.Env)
	if err != nil {
		a.unable(c, err)
		return
	}
	if a.login.refused && a.login.hash == resolved.Hash {
		a.unable(c, a.login.err)
		return
	}
	a.login = login{}
	a.number++
	a.conn = &conn{number: a.number, resolved: resolved}
	a.count(c)
	a.publish(c)
	if a.s.seats == nil {
		a.dial(c)
		return
	}
	if a.conn.ticket, err = c.Request(c.Parent(), takeSeat{a.s}); err != nil {
		a.unable(c, err)
	}
}

// unable ends an attempt before anything was tried. It is no fault of a transport.
func (a *actor) unable(c *kernel.Ctx, err error) {
	a.conn = nil
	a.breaker.abandon()
	a.ended = err
	a.publish(c)
	a.refuseWaiting(c, err)
}

// seated goes on when the supervisor has a place.
func (a *actor) seated(c *kernel.Ctx, m kernel.Answer) {
	if a.conn == nil || a.conn.phase != seating || a.conn.ticket != m.Ticket {
		return
	}
	if m.Err != nil {
		a.unable(c, m.Err)
		return
	}
	a.dial(c)
}

// dial starts the link.
func (a *actor) dial(c *kernel.Ctx) {
	n := a.conn
	var held *kernel.Lease
	if a.s.seats == nil { // there may be one in each session
		var err error
		if held, err = c.Account().Acquire(Footprint); err != nil {
			a.unable(c, err)
			return
		}
	}
	l, err := a.s.cfg.Dial(n.resolved, a.modern)
	if err != nil {
		held.Release()
		a.leaveSeat(c)
		a.unable(c, err)
		return
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	n.phase, n.link, n.cancel = dialing, l, cancel
	to := &sink{ctx: ctx, self: c.Self(), account: c.Account(), number: n.number}
	over := make(chan struct{})
	n.owed = c.Own("connection", func(release context.Context, cause error) {
		cancel(cause)
		select {
		case <-over:
		case <-release.Done():
		}
	})
	c.Go("link", func(context.Context) kernel.Msg {
		defer close(over)
		defer held.Release()
		err := l.Run(ctx, to)
		cancel(err)
		return linkEnded{n.number, err}
	})
	n.stop = c.After(a.patience(), stepOver{n.number})
}

// up begins the handshake.
func (a *actor) up(c *kernel.Ctx, m linkUp) {
	if !a.is(m.number) || a.conn.phase != dialing {
		return
	}
	a.conn.stop()
	hideUsage(c)
	if m.pid > 0 {
		c.Attr("pid", m.pid)
		c.After(usageFirst, usageDue(m))
	}
	if a.modern {
		a.askWhatItIs(c)
		return
	}
	a.initialize(c)
}

func (a *actor) initialize(c *kernel.Ctx) {
	if !a.conn.renewing {
		a.conn.phase = initializing
	}
	a.ask(c, mcp.MethodInitialize, initializeParams(a.s.cfg.Version), a.patience(), a.initialized)
}

// initialized goes on with the server's answer.
func (a *actor) initialized(c *kernel.Ctx, result []byte, err error) {
	n := a.conn
	if err == nil {
		n.greeting, err = parseGreeting(result)
	}
	if !n.renewing && a.turn(c, err) {
		return
	}
	if err != nil {
		a.broken(c, fmt.Errorf("initialize: %w", err))
		return
	}
	n.link.Speaks(n.greeting.version)
	c.Attr("mcp", n.greeting.version)
	if err := a.notify(c, mcp.MethodInitialized, nil); err != nil && !errors.Is(err, link.ErrUnsent) { // what is asked next finds out
		a.broken(c, fmt.Errorf("notifications/initialized: %w", err))
		return
	}
	if level := a.s.entry.LogLevel; level != "" && n.greeting.logging {
		a.ask(c, methodSetLevel, setLevelParams(level), a.patience(), func(c *kernel.Ctx, _ []byte, err error) {
			if err != nil {
				c.Refuse("log_level")
			}
		})
	}
	if n.renewing {
		n.renewing = false
		a.flush(c)
		a.changed(c)
		return
	}
	n.phase = listing
	a.fetch(c)
}

// connected is the end of a start.
func (a *actor) connected(c *kernel.Ctx) {
	n := a.conn
	n.phase, n.since = ready, c.Now()
	a.ended, a.turned = nil, false
	a.publish(c)
	a.answerAsking()
	a.flush(c)
	a.count(c)
	a.lookIdle(c)
	a.listen(c)
	if d := a.s.entry.PingInterval; d > 0 {
		c.After(d, pingDue{n.number})
	}
}

// renew runs the handshake again, once for all who found that the server has lost that session.
func (a *actor) renew(c *kernel.Ctx, session int) {
	if n := a.conn; n.phase == ready && n.session == session {
		n.session++
		n.renewing = true
		c.Refuse("session_lost")
		a.initialize(c)
	}
}

// isFault tells a fault of the transport from a server that answers, refuses us, or finds no room here.
func isFault(err error) bool {
	var auth *link.AuthError
	var big *link.TooLargeError
	var full *kernel.Overloaded
	return err != nil && !isAnswer(err) && !errors.Is(err, errHandshake) && !errors.As(err, &auth) && !errors.As(err, &big) && !errors.As(err, &full)
}

// Reasons to end a connection with which nothing is wrong.
var (
	errIdle  = errors.New("nobody uses it")
	errPlace = errors.New("another server needs its place")
	errProbe = errors.New("what comes next tries it on a new connection")
	errStale = fmt.Errorf("%w: its credentials have changed", capability.ErrDetached)
)
