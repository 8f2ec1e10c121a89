package provider

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
)

// broken ends the connection, or the attempt at one, because something is wrong with it.
func (a *actor) broken(c *kernel.Ctx, err error) {
	n := a.conn
	if n == nil || n.phase == ending {
		return
	}
	err = a.redacted(err)
	started := n.phase == ready
	if started {
		a.restarts++
		c.Attr("restarts", a.restarts)
		if c.Now().Sub(n.since) >= brokenFor {
			a.failures = 0
		}
	}
	a.failures++
	a.turned = false
	var auth *link.AuthError
	if errors.As(err, &auth) {
		a.login = login{refused: true, hash: n.resolved.Hash, err: err}
	} else if isFault(err) && a.harms(n) {
		a.fault(c, n, a.s.sequence.Load())
	}
	a.breaker.abandon()
	c.Log().Warn("a provider's connection ended", "server", a.s.entry.Name, "started", started, "error", shown(err))
	a.end(c, err)
	a.ended = err
	a.publish(c)
	if !started {
		a.refuseWaiting(c, err)
	}
	a.again(c)
}

// harms tells whether the end of a connection counts for the breaker, which is about calls: an attempt that only the pod made of itself, or a
// death of which nobody took notice, has its backoff, and is no reason to refuse the first one who calls.
func (a *actor) harms(n *conn) bool {
	return a.breaker.probing || len(a.calls.waiting) > 0 || a.meant() || n.phase == ready && len(a.calls.byID) > 0
}

// fault counts a fault of the transport, unless it is the same as one that was counted: what was sent before that, over the same connection, fails
// with it.
func (a *actor) fault(c *kernel.Ctx, n *conn, sent int64) {
	if n.faulted > 0 && sent <= n.faulted {
		return
	}
	n.faulted = a.s.sequence.Load()
	a.breaker.fault(c.Now())
}

// end ends the connection. Whatever is on it is told why.
func (a *actor) end(c *kernel.Ctx, why error) {
	n := a.conn
	was := n.phase
	n.phase = ending
	if n.stop != nil {
		n.stop()
	}
	if a.idle != nil {
		a.idle()
		a.idle = nil
	}
	for id, x := range a.inner {
		x.stop()
		delete(a.inner, id)
	}
	for _, k := range a.calls.sent() {
		a.finish(c, k)
		k.question.Fail(fmt.Errorf("%w: %w", capability.ErrDetached, why))
	}
	a.calls.suspects = nil
	a.asked.open = nil // the numbers go on: an answer that comes late must find no question of another connection
	a.list.unplug()
	hideUsage(c)
	if was == seating {
		c.Cancel(n.ticket)
		a.leaveSeat(c)
		a.conn = nil
		return
	}
	n.cancel(why)
}

// quit ends a connection with which nothing is wrong.
func (a *actor) quit(c *kernel.Ctx, why error) {
	a.end(c, why)
	a.ended = nil
	a.publish(c)
}

// linkEnded is told when nothing of a link is left: now another may be made.
func (a *actor) linkEnded(c *kernel.Ctx, m linkEnded) {
	if a.conn == nil || a.conn.number != m.number {
		return
	}
	err := m.err
	if err == nil {
		err = errors.New("the server closed the connection")
	}
	a.broken(c, err)
	a.conn.owed.Discharge()
	a.conn = nil
	a.count(c)
	a.leaveSeat(c)
	a.publish(c)
	a.next(c)
	if a.conn == nil && a.retry == nil && a.ended != nil { // its time came while the link still ended
		a.again(c)
	}
}

// next is what comes after the end of a connection: another one, for calls that have come meanwhile, or for who wants a list and
// does not have to wait for a backoff.
func (a *actor) next(c *kernel.Ctx) {
	if a.turning {
		a.turning = false
		a.wake(c)
		return
	}
	calls := len(a.calls.waiting) > 0
	a.breaker.abandonUnless(calls)
	ok, after := a.breaker.admits(c.Now())
	switch {
	case calls && (ok || a.breaker.probing), len(a.asking) > 0 && ok && (a.retry == nil || a.owed()):
		a.breaker.probe()
		a.wake(c)
	case calls:
		a.refuseWaiting(c, &capability.BreakerError{Server: a.s.entry.Name, RetryAfter: after})
	default:
		a.answerAsking()
	}
}

func (a *actor) leaveSeat(c *kernel.Ctx) {
	if a.s.seats != nil {
		a.told(c, c.Parent().Signal(leaveSeat{a.s}))
	}
}

// told counts a signal that found no room.
func (a *actor) told(c *kernel.Ctx, err error) {
	if err != nil && !errors.Is(err, kernel.ErrStopped) {
		c.Refuse("signal")
	}
}

// again sets the next attempt, unless nobody has used the server for so long that it would be idle by now, or none can help.
func (a *actor) again(c *kernel.Ctx) {
	a.unretry()
	now := c.Now()
	if ttl := a.ttl(); a.login.refused || ttl > 0 && now.Sub(time.Unix(0, a.s.used.Load())) >= ttl {
		return
	}
	wait := backoff(a.failures, a.s.cfg.Rand())
	if !a.breaker.closed() {
		wait = max(wait, a.breaker.until.Sub(now))
	}
	a.retry = c.After(wait, retryDue{})
}

func (a *actor) unretry() {
	if a.retry != nil {
		a.retry()
		a.retry = nil
	}
}

// retryDue starts a server again that nobody had to call for that.
func (a *actor) retryDue(c *kernel.Ctx) {
	a.retry = nil
	if a.conn != nil {
		return
	}
	if ok, _ := a.breaker.admits(c.Now()); !ok {
		return // a probe is on its way
	}
	a.breaker.probe()
	a.wake(c)
}

// ttl is how long the server stays connected unused; 0 = for ever. What a session has to itself ends with the session: what
// it knows would be lost.
func (a *actor) ttl() time.Duration {
	if a.s.keeps {
		return 0
	}
	return a.s.cfg.Set.IdleTTL
}

// lookIdle sets the next look at whether anybody uses the server.
func (a *actor) lookIdle(c *kernel.Ctx) {
	if ttl := a.ttl(); ttl > 0 {
		left := time.Unix(0, a.s.used.Load()).Add(ttl).Sub(c.Now())
		a.idle = c.After(max(left, min(minIdle, ttl)), idleDue{})
	}
}

func (a *actor) idleDue(c *kernel.Ctx) {
	a.idle = nil
	if a.conn == nil || a.conn.phase != ready {
		return
	}
	if a.calls.n() == 0 && c.Now().Sub(time.Unix(0, a.s.used.Load())) >= a.ttl() {
		a.quit(c, errIdle)
		return
	}
	a.lookIdle(c)
}

// unseat gives the place to another server, unless this one has become busy.
func (a *actor) unseat(c *kernel.Ctx) {
	switch {
	case a.conn != nil && a.conn.phase == ready && a.calls.n() == 0:
		a.quit(c, errPlace)
	case a.conn == nil || a.conn.phase == ending: // it has left, or is leaving
	default:
		a.told(c, c.Parent().Signal(seatKept{a.s}))
	}
}

// use notes that somebody has an interest in the server.
func (a *actor) use(c *kernel.Ctx) { a.s.used.Store(c.Now().UnixNano()) }

// refuseWaiting tells everybody who waits for a connection that there is none.
func (a *actor) refuseWaiting(c *kernel.Ctx, err error) {
	a.answerAsking()
	for _, k := range slices.Clone(a.calls.waiting) {
		a.refuse(c, k, "", a.refusal(err))
	}
}

// refusal is why a call cannot be sent.
func (a *actor) refusal(err error) error {
	var auth *link.AuthError
	var open *capability.BreakerError
	if errors.As(err, &open) {
		return err
	}
	if errors.As(err, &auth) {
		return fmt.Errorf("%w: %w", capability.ErrNeedsLogin, err)
	}
	return fmt.Errorf("%w: %w", capability.ErrDetached, err)
}
