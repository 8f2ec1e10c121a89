package httplink

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
)

// unsentError is an error that proves that the server did not accept the request: it may be sent again.
type unsentError struct{ cause error }

func (e *unsentError) Error() string   { return e.cause.Error() }
func (e *unsentError) Unwrap() []error { return []error{e.cause, link.ErrUnsent} }

func unsent(err error) error { return &unsentError{err} }

// statusError is what an HTTP status means that brings no answer. The session is the one that the request named.
//
// Unsent are those by which HTTP and MCP say that the request was not taken: the client's errors, redirects (which are not followed), 501,
// 503 and 505. 408 says that it did not come whole. 409 and 5xx of a server or of a gateway that had begun say nothing; 302 and 303 are what web
// servers answer to a form that they have acted upon.
func statusError(status int, header http.Header, session string) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return unsent(&link.AuthError{Status: status, Scope: scopeOf(header.Values("Www-Authenticate"))})
	case status == http.StatusNotFound && session != "":
		return link.ErrSessionLost
	case status == http.StatusConflict, status == http.StatusFound, status == http.StatusSeeOther:
		return &link.StatusError{Status: status}
	case status >= 300 && status < 500, status == http.StatusNotImplemented, status == http.StatusServiceUnavailable, status == http.StatusHTTPVersionNotSupported:
		return unsent(&link.StatusError{Status: status})
	}
	return &link.StatusError{Status: status}
}

// NotAnswerError is a server's 200 that holds no answer to the request. The server may have done what it was asked.
type NotAnswerError struct{ What string }

func (e *NotAnswerError) Error() string {
	return "the server accepted the request and answered with " + e.What
}

func notAnswer(format string, args ...any) error {
	return &NotAnswerError{fmt.Sprintf(format, args...)}
}

// CutError is a connection that ended, or an answer that did, before the answer was whole. The server may have done what it was asked.
type CutError struct{ cause error }

func (e *CutError) Error() string {
	return "the connection to the server ended before its answer was whole: " + shown(e.cause)
}
func (e *CutError) Unwrap() error { return e.cause }

// UnreachableError is a connection that could not be made.
type UnreachableError struct{ cause error }

func (e *UnreachableError) Error() string { return "the server cannot be reached: " + shown(e.cause) }
func (e *UnreachableError) Unwrap() error { return e.cause }

// errStreamEnded is an answer's stream that the server closed before the answer.
var errStreamEnded = errors.New("the server closed the stream")

// shown is an error of the network on one line: it may repeat what a peer wrote.
func shown(err error) string { return kernel.Escape(err.Error(), 200) }
