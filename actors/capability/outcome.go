package capability

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// ended wraps an EndReason as the cause of a call's end.
type ended struct{ reason EndReason }

func (e *ended) Error() string { return string(e.reason) }

// Outcome says what the caller of a call is told that ended without a result:
// a pure function of why it ended, whether it may have left the pod, and whether
// its tool only reads. A call that was sent and may have had an effect is never
// refused in a way that invites a repeat.
func Outcome(cause error, sent, readOnly bool) *Refusal {
	var unsent *NotSent
	sent = sent && !errors.As(cause, &unsent)
	var (
		r    Refusal
		full *kernel.Overloaded
		by   *ended
		big  *TooLarge
		open *BreakerError
		told *explained
	)
	switch {
	case errors.Is(cause, ErrTimeout):
		r = Refusal{Code: TimedOut, Text: "the server did not answer in time"}
	case errors.Is(cause, ErrNeedsLogin):
		r = Refusal{Code: NeedsLogin, Text: oneLine(strings.TrimPrefix(cause.Error(), notSent))}
	case errors.As(cause, &open):
		r = Refusal{Code: BreakerOpen, Text: open.Error()}
	case errors.As(cause, &full):
		r = *overloaded(full)
	case errors.As(cause, &big):
		r = Refusal{Code: TooMuch, Text: big.Error(), Full: &kernel.Overloaded{Scope: "result_bytes", Limit: big.Limit, Used: big.Size, Size: big.Size}}
	case errors.As(cause, &by):
		r = Refusal{Code: CancelledCall, Text: string(by.reason)}
	case errors.As(cause, &told):
		r = Refusal{Code: NotAttached, Text: told.text()}
	default:
		r = Refusal{Code: NotAttached, Text: "the server's connection ended"}
	}
	if sent && !readOnly {
		r = Refusal{Code: OutcomeUnknown, Full: r.Full, Text: "the call was sent and its outcome is not known (" + r.Text + "); look at what it did before you repeat it"}
	}
	return &r
}

// explained is the cause of a call's end whose text may be told: that of a configured server, whose source has taken out what is secret.
type explained struct{ cause error }

func (e *explained) Error() string { return e.cause.Error() }
func (e *explained) Unwrap() error { return e.cause }

// longestCause bounds it, in bytes: what a process wrote last is in it.
const longestCause = 1500

func (e *explained) text() string {
	text := strings.TrimPrefix(strings.TrimPrefix(e.cause.Error(), notSent), ErrDetached.Error()+": ")
	return "the server is not there: " + kernel.Escape(text, longestCause)
}

// metaError is the member of a result's _meta in which the error object stands with which a server answered, to the byte.
const metaError = "acpod.dev/error"

// errorResult is the result object for a JSON-RPC error with which a server
// answered: its message as the text, and the whole of it in _meta.
func errorResult(e *jsonrpc.Error) []byte {
	out := mcp.ErrorResult(e.Message, "")
	object := e.Raw()
	if object == nil {
		object = e.AppendObject(nil)
	}
	out = slices.Grow(out[:len(out)-1], len(object)+64)
	out = append(out, `,"_meta":{"`+metaError+`":`...)
	out = append(out, object...)
	return append(out, "}}"...)
}

// isError reads a result's isError; object is false when the result is no object.
func isError(raw []byte) (is, object bool) {
	o, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return false, false
	}
	v, _ := o.Get("isError")
	is, _ = jsonrpc.Bool(v)
	return is, true
}

// noArguments stands for absent and null arguments.
var noArguments = []byte("{}")

// arguments are the bytes that are sent for the raw value of "arguments".
func arguments(raw []byte) []byte {
	if len(raw) == 0 || jsonrpc.IsNull(raw) {
		return noArguments
	}
	return raw
}

// argsSHA is the hash that the audit has of the bytes sent.
func argsSHA(raw []byte) [32]byte { return sha256.Sum256(arguments(raw)) }

// cut bounds what a caller chose for the audit.
func cut(s string) string {
	const most = 128
	if len(s) <= most {
		return s
	}
	return s[:most]
}
