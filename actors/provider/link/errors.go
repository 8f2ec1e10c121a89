package link

import (
	"errors"
	"fmt"
)

// ErrUnsent is wrapped by errors of requests that the server never accepted: they may be sent again.
var ErrUnsent = errors.New("the request was not accepted by the server")

// ErrSessionLost says that the server does not know its own session any more. Nothing was accepted. The link lives on: what comes next
// over it is initialize, and other requests in flight are left to their ends.
var ErrSessionLost = fmt.Errorf("the server has lost its session: %w", ErrUnsent)

// AuthError is a 401 or a 403: the credentials of the configuration are not taken. Nothing was accepted. It holds no address that the
// server named.
type AuthError struct {
	Status int
	Scope  string // that the server asks for, "" = it named none; a peer's text
}

func (e *AuthError) Error() string {
	return fmt.Sprintf("the server answered %d: its credentials have to be renewed", e.Status)
}

// StatusError is any other HTTP status that is no answer.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answered with HTTP status %d", e.Status)
	if e.Status >= 300 && e.Status < 400 {
		text += ", a redirect, which is not followed: write the address that it leads to as url"
	}
	return text
}

// TooLargeError is a message over the limit. The link lives on.
type TooLargeError struct{ Size, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the server's message of at least %d bytes is over limits.result_bytes (%d) and was skipped", e.Size, e.Limit)
}

// ExitError is the end of a child process that nobody ended.
type ExitError struct {
	How    string // "exited with code 1", "killed by signal 9 (killed)"
	Stderr string // the last lines, escaped, secrets replaced, at most 1 KiB
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return "the server's process " + e.How
	}
	return "the server's process " + e.How + "; its stderr ends: " + e.Stderr
}
