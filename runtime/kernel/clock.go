package kernel

import "time"

// Clock is where the kernel's time comes from. A simulation brings its own; testing/synctest works with the default.
type Clock interface {
	Now() time.Time
	// AfterFunc runs f on a goroutine of its own after d; stop reports whether it came in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }
func (wallClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
