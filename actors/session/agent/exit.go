package agent

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// ErrNotReady answers a request that came before Ready.
var ErrNotReady = errors.New("the agent has not finished its handshake; wait until it is ready")

// ErrClosed answers a request that the process cannot get any more: it has closed its stdin, or is gone.
var ErrClosed = errors.New("the agent takes nothing any more")

// tailBytes bounds what an error shows of stderr.
const tailBytes = 1 << 10

// Exited is the cause of an agent whose process ended by itself, and the answer of every request that was open.
type Exited struct {
	Code   int            // -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited
	Stderr string         // the last lines of stderr, escaped, at most 1 KiB
	Reason string         // why the pod ended it, when it did (it did not read its stdin, …)
}

// Error is one line.
func (e *Exited) Error() string {
	var b strings.Builder
	switch {
	case e.Reason != "":
		b.WriteString("the agent was ended: " + e.Reason)
	case e.Signal != 0:
		fmt.Fprintf(&b, "the agent was killed by signal %d (%s)", int(e.Signal), e.Signal)
	default:
		fmt.Fprintf(&b, "the agent exited with code %d", e.Code)
	}
	if e.Stderr != "" {
		b.WriteString("; its stderr ends: " + e.Stderr)
	}
	return b.String()
}

// StartError says why an agent never became ready. Unwrap gives the cause: *Exited, *jsonrpc.Error, an error of the
// operating system.
type StartError struct {
	Command string        // argv[0], escaped
	Timeout time.Duration // set when the handshake took longer than that
	Stderr  string        // the last line of stderr, escaped, bounded
	Err     error         // nil for a timeout
}

// Error is one line that says what to do next.
func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent %s did not start: ", e.Command)
	if e.Err == nil {
		fmt.Fprintf(&b, "no answer to initialize within %s; check that agent.command speaks ACP on stdio, or raise agent.start_timeout", e.Timeout)
		if e.Stderr != "" {
			b.WriteString("; its stderr ends: " + e.Stderr)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%v; check agent.command", e.Err)
	return b.String()
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// LineTooLong answers a request whose response was longer than Config.LineBytes; the line was skipped and the
// process lives on.
type LineTooLong struct{ Bytes, Limit int64 }

// Error is one line.
func (e *LineTooLong) Error() string {
	return fmt.Sprintf("the agent's response of %d bytes is over limits.agent_line_bytes (%d) and was skipped", e.Bytes, e.Limit)
}
