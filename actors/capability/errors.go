package capability

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is the answer of a source whose call's deadline passed.
var ErrTimeout = errors.New("the call's deadline passed")

// ErrDetached is wrapped by a source's errors when nothing serves it any more.
var ErrDetached = errors.New("the server is not connected")

// ErrNeedsLogin is wrapped by a source's errors when the server refuses our credentials.
var ErrNeedsLogin = errors.New("the server refuses the pod's credentials; its operator has to log in")

// BreakerError says that calls of a server are refused for a while, because its transport failed too often.
type BreakerError struct {
	Server     string        // its declared name; "" = not said
	RetryAfter time.Duration // at least a second
}

func (e *BreakerError) Error() string {
	who := "the server"
	if e.Server != "" {
		who += " " + e.Server
	}
	return who + " has failed too often; it is tried again in " + e.RetryAfter.Round(time.Second).String()
}

// NotSent wraps the reason why a call never left the pod, so that a repeat is safe.
type NotSent struct{ Cause error }

func (e *NotSent) Error() string { return notSent + e.Cause.Error() }
func (e *NotSent) Unwrap() error { return e.Cause }

// notSent begins the text of a NotSent.
const notSent = "not sent: "

// TooLarge says that a server answered with more than limits.result_bytes.
type TooLarge struct{ Size, Limit int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the result has %d bytes, and result_bytes allows %d; ask for less", e.Size, e.Limit)
}
