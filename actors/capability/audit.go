package capability

import "time"

// Event is which kind of record an [Entry] is.
type Event string

const (
	EventCall    Event = "call"    // the call is about to be sent
	EventExit    Event = "exit"    // a sent call has ended
	EventRefused Event = "refused" // a call that was not sent
)

// Outcomes of an exit that are no refusal. Every other outcome is a [Code].
const (
	OutcomeOK    = "ok"    // a result, also one with isError
	OutcomeError = "error" // the server answered with a JSON-RPC error
)

// Entry is one record of the audit. Provider and Tool may be what a peer
// chose: whoever writes them out escapes them.
type Entry struct {
	Time     time.Time
	Event    Event
	Call     uint64 // unique in the pod, the same in call and exit
	Provider string // "-" when no provider is meant
	Server   string // declared name, empty when none is meant
	Tool     string // as published; for an unknown capability the name asked for, cut to 128 bytes
	Session  string // acp.SessionTag, "-" for an anonymous caller
	ArgsSHA  [32]byte
	Filtered bool          // a refused one that tool_filter leaves out; its caller is told the same as of one that is not there
	Outcome  string        // exit and refused only
	IsError  bool          // exit and refused only
	Duration time.Duration // exit and refused only
	Bytes    int           // exit only: size of the result
}

// Audit takes the record of every call. Safe from any goroutine, never blocks.
type Audit interface{ Record(Entry) }
