package connection

import "time"

// began is where stamps are counted from.
var began = time.Now()

// stamp is this moment on the monotonic clock, in nanoseconds, for an atomic. Whoever sets the wall clock does not move it.
func stamp() int64 { return int64(time.Since(began)) }

// moment is the time of a stamp.
func moment(stamp int64) time.Time { return began.Add(time.Duration(stamp)) }
