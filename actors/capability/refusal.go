package capability

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

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
	// Schema is the input schema that the text speaks of, as its server wrote it; [Refusal.Result] puts it behind the text. nil = none.
	Schema []byte
	// Full is the account or the queue that had no room, nil when that was not the cause.
	Full *kernel.Overloaded
}

// longestSchema bounds the schema in the text of a refusal, in bytes. A longer one is found by a search.
const longestSchema = 16 << 10

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Text }

// Result is the refusal as the result object of tools/call: isError, one text
// block and `_meta["acpod.dev/refusal"]`; where something was full,
// `_meta["acpod.dev/overload"]` as well, which is the data of an error -32000.
func (r *Refusal) Result() []byte {
	if r.Full == nil {
		return mcp.ErrorResult(r.Text+r.schema(), string(r.Code))
	}
	return mcp.OverloadResult(r.Text, string(r.Code), jsonrpc.OverloadData{
		Scope: r.Full.Scope, Limit: r.Full.Limit, Used: r.Full.Used, Size: r.Full.Size, RetryAfter: r.Full.RetryAfter})
}

// schema is the input schema as the end of a text, on one line.
func (r *Refusal) schema() string {
	if len(r.Schema) == 0 {
		return ""
	}
	one := jsontext.Value(bytes.Clone(r.Schema))
	if one.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil || len(one) > longestSchema {
		return fmt.Sprintf("; its input schema has %d bytes: search_capabilities shows it", len(r.Schema))
	}
	return "; its input schema: " + string(one)
}

// overloaded is the refusal for an account or a queue without room.
func overloaded(full *kernel.Overloaded) *Refusal {
	named := *full
	if named.RetryAfter <= 0 {
		named.RetryAfter = time.Second // nothing that can be full stays so for ever
	}
	return &Refusal{Code: TooMuch, Full: &named, Text: "the pod has no room for this now (" + told(full) + "); repeat it in " + named.RetryAfter.String()}
}

// told names what was full, how much of it is in use and what was asked of it.
func told(full *kernel.Overloaded) string {
	if full.Limit == 0 {
		return full.Scope // a client's own, which says no more
	}
	return fmt.Sprintf("%s: %d of %d in use, %d asked for", full.Scope, full.Used, full.Limit, full.Size)
}
