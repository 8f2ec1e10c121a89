package kernel

import "time"

func (b Backoff) orDefault() Backoff {
	if b.Min <= 0 {
		b.Min = DefaultBackoff.Min
	}
	if b.Max <= 0 {
		b.Max = DefaultBackoff.Max
	}
	b.Max = max(b.Max, b.Min)
	return b
}

// wait is the pause after the n-th failure in a row (0 is the first): capped exponential with full jitter, random in [0, 1).
// Full jitter, because what fails together must not come back together.
func (b Backoff) wait(n int, random float64) time.Duration {
	top := b.Min
	for ; n > 0 && top < b.Max; n-- {
		if top > b.Max/2 {
			top = b.Max
			break
		}
		top *= 2
	}
	if top = min(top, b.Max); random >= 1 {
		return top
	}
	return min(top, time.Duration(float64(top)*max(random, 0)))
}
