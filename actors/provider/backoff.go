package provider

import "time"

// backoff is the pause after the n-th failure in a row (1 is the first): its bound doubles up to backoffMax, and the pause is anywhere below
// it, because servers that failed together must not come back together. random is in [0, 1).
func backoff(n int, random float64) time.Duration {
	top := backoffMin
	for ; n > 1 && top < backoffMax; n-- {
		top *= 2
	}
	return time.Duration(float64(min(top, backoffMax)) * random)
}
