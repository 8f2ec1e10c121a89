package capability

import (
	"slices"
	"time"
)

const (
	// mostDead is how many revoked tokens a desk remembers; past it the oldest is forgotten, and counted.
	mostDead = 128
	// deadFor is how long one is remembered: a request that was let in with it before takes half as long to arrive at most.
	deadFor = time.Minute
)

// deadTokens are the tokens of a session that were revoked a moment ago: a call that was on its way with one must not be made.
// Each agent that a session starts has a token, so a session of a month would have thousands. The zero value is ready.
type deadTokens []deadToken // oldest first

type deadToken struct {
	sum   [32]byte
	since time.Time
}

func (d deadTokens) has(sum [32]byte) bool {
	return slices.ContainsFunc(d, func(t deadToken) bool { return t.sum == sum })
}

// add remembers a token and forgets what is old. full tells that one had to be forgotten before its time.
func (d *deadTokens) add(sum [32]byte, now time.Time) (full bool) {
	kept := slices.DeleteFunc(*d, func(t deadToken) bool { return now.Sub(t.since) > deadFor || t.sum == sum })
	if full = len(kept) >= mostDead; full {
		kept = slices.Delete(kept, 0, 1)
	}
	*d = append(kept, deadToken{sum, now})
	return full
}
