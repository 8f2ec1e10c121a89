package capability

import "time"

// RelistAfter is how long a source waits until it asks for its list again that it knows to have changed, and could not get so many times
// in a row (1 is the first): 2 s, then twice as long each time, up to a minute. Nobody else will say again that it has changed.
func RelistAfter(failures int) time.Duration {
	const first, longest = 2 * time.Second, time.Minute
	wait := first
	for ; failures > 1 && wait < longest; failures-- {
		wait *= 2
	}
	return min(wait, longest)
}
