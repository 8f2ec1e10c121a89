package capability

import (
	"errors"
	"fmt"
)

// ErrTimeout is the answer of a source whose call's deadline passed.
var ErrTimeout = errors.New("the call's deadline passed")

// ErrDetached is wrapped by a source's errors when nothing serves it any more.
var ErrDetached = errors.New("the server is not connected")

// NotSent wraps the reason why a call never left the pod, so that a repeat is safe.
type NotSent struct{ Cause error }

func (e *NotSent) Error() string { return "not sent: " + e.Cause.Error() }
func (e *NotSent) Unwrap() error { return e.Cause }

// TooLarge says that a server answered with more than limits.result_bytes.
type TooLarge struct{ Size, Limit int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the result has %d bytes, and result_bytes allows %d; ask for less", e.Size, e.Limit)
}
