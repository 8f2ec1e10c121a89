package capability

import "github.com/acpod/acpod/protocol/mcp"

// Code is why a call was not made, or what is known of one that was: the
// closed set of the contract, as it stands in `_meta["acpod.dev/refusal"]`.
type Code string

const (
	Unknown          Code = "unknown"
	MalformedName    Code = "malformed_name"
	ServerNotGranted Code = "server_not_granted"
	ToolNotGranted   Code = "tool_not_granted"
	PinChanged       Code = "pin_changed"
	BadArguments     Code = "bad_arguments"
	NotAttached      Code = "detached"
	NeedsLogin       Code = "needs_login"
	BreakerOpen      Code = "breaker_open"
	TooMuch          Code = "overloaded"
	TimedOut         Code = "timeout"
	CancelledCall    Code = "cancelled"
	OutcomeUnknown   Code = "outcome_unknown"
)

// Refusal is an error that the agent is told as a tool result.
type Refusal struct {
	Code Code
	Text string // one line, says what to do next, no bytes of a payload
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Text }

// Result is the refusal as the result object of tools/call: isError, one text
// block and `_meta["acpod.dev/refusal"]`.
func (r *Refusal) Result() []byte { return mcp.ErrorResult(r.Text, string(r.Code)) }
