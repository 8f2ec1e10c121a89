package provider

import "time"

// breaker keeps calls away from a server whose transport has failed several times in a row. It knows three states: closed;
// open until a time; and half open after it, when one attempt may show that the server is back.
type breaker struct {
	faults  int       // in a row
	until   time.Time // zero: closed
	probing bool      // the one attempt is under way
}

func (b *breaker) closed() bool { return b.until.IsZero() }

// admits says whether something may be tried now, and if not, when; at least a second from now.
func (b *breaker) admits(now time.Time) (ok bool, after time.Duration) {
	switch {
	case b.closed():
		return true, 0
	case b.probing:
		return false, time.Second
	case now.Before(b.until):
		return false, max(b.until.Sub(now), time.Second)
	}
	return true, 0
}

// probe begins the one attempt, where the breaker is half open.
func (b *breaker) probe() { b.probing = !b.closed() }

// abandon ends an attempt that showed nothing.
func (b *breaker) abandon() { b.probing = false }

// fault counts one transport fault. Each one after the breaker opened opens it for its whole time again.
func (b *breaker) fault(now time.Time) {
	if b.faults++; b.faults >= brokenAfter {
		b.until, b.probing = now.Add(brokenFor), false
	}
}

// success closes it.
func (b *breaker) success() { *b = breaker{} }

func (b *breaker) state(now time.Time) string {
	switch {
	case b.closed():
		return "closed"
	case b.probing || !now.Before(b.until):
		return "half-open"
	}
	return "open"
}

// abandonUnless is abandon where nobody takes the attempt up.
func (b *breaker) abandonUnless(taken bool) { b.probing = b.probing && taken }
