package capability

import (
	"crypto/sha256"
	"errors"

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
	if errors.As(cause, &unsent) {
		sent, cause = false, unsent.Cause
	}
	var (
		r    Refusal
		full *kernel.Overloaded
		by   *ended
		big  *TooLarge
	)
	switch {
	case errors.Is(cause, ErrTimeout):
		r = Refusal{Code: TimedOut, Text: "the server did not answer in time"}
	case errors.As(cause, &full):
		r = *overloaded(full)
	case errors.As(cause, &big):
		r = Refusal{Code: TooMuch, Text: big.Error(), Full: &kernel.Overloaded{Scope: "result_bytes", Limit: big.Limit, Used: big.Size, Size: big.Size}}
	case errors.As(cause, &by):
		r = Refusal{Code: CancelledCall, Text: string(by.reason)}
	default:
		r = Refusal{Code: NotAttached, Text: "the server's connection ended"}
	}
	if sent && !readOnly {
		r = Refusal{Code: OutcomeUnknown, Full: r.Full, Text: "the call was sent and its outcome is not known (" + r.Text + "); look at what it did before you repeat it"}
	}
	return &r
}

// errorResult is the result object for a JSON-RPC error with which a server
// answered. The text is the server's own.
func errorResult(e *jsonrpc.Error) []byte {
	return mcp.ErrorResult(e.Message, "")
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
