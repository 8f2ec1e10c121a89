package fault

import "github.com/acpod/acpod/actors/chaos/invariant"

// Place is where a fault is decided, and what its rate is a rate of.
type Place string

// The places.
const (
	Life    Place = "life"    // of an extension's socket: chance in each second of each extension
	Open    Place = "open"    // chance at each session that an extension opens or resumes
	Answer  Place = "answer"  // chance at each tool call that an extension is asked to execute
	Call    Place = "call"    // chance at each call of a facade client
	Turn    Place = "turn"    // chance at each prompt of a client with an agent
	Machine Place = "machine" // chance in each second of the run
)

// Fault is one way to attack.
type Fault struct {
	Name    string
	Does    string
	Attacks invariant.Name // the promise that would be broken first without the guard
	Places  []Place
	Rate    float64 // chance at each opportunity, unless the command line names another
	Spawn   bool    // needs a pod that the harness started
}

// Table is every fault, by name.
func Table() []Fault {
	return []Fault{
		{"drop", "resets, half-closes or cuts a socket in the middle of a frame", invariant.Accounts, []Place{Life, Turn}, 0.015, false},
		{"halfopen", "goes away without a word: nothing is read, written or closed any more", invariant.BackToBaseline, []Place{Life}, 0.01, false},
		{"slowread", "stops reading its socket, for a while or for good, or reads a call's result byte by byte", invariant.Told, []Place{Life, Call}, 0.01, false},
		{"slowwrite", "writes a frame one byte at a time, or half of one and no more", invariant.Told, []Place{Life}, 0.01, false},
		{"flood", "sends updates, notifications, pings or unknown methods as fast as the socket takes them", invariant.Told, []Place{Life, Turn}, 0.01, false},
		{"oversize", "sends a frame, request, list of tools, schema or name that is over its bound", invariant.Told, []Place{Life, Open, Answer, Turn}, 0.01, false},
		{"malformed", "sends bad JSON, bad UTF-8, strange ids, batches, binary frames", invariant.Told, []Place{Life}, 0.015, false},
		{"hostiletext", "puts markup, newlines, escape sequences, direction marks and NUL into names, titles, errors and results", invariant.LogLines, []Place{Life, Open, Answer, Turn}, 0.02, false},
		{"duplicate", "answers twice, declares twice, gives a connection id twice, uses a request id twice, resumes a session twice at once, gives the session id of another agent", invariant.OutcomeTrue, []Place{Life, Open, Answer, Turn}, 0.02, false},
		{"late", "answers after the deadline or just before it", invariant.OutcomeTrue, []Place{Open, Answer, Turn}, 0.01, false},
		{"never", "never answers", invariant.AnsweredOnce, []Place{Open, Answer, Turn}, 0.005, false},
		{"replace", "declares the same name or id again, takes its sessions over from a second socket, reconnects in storms, claims sessions of others", invariant.OwnClient, []Place{Life}, 0.015, false},
		{"abort", "closes the HTTP request in the middle of a call, and repeats it under the same key", invariant.ExecutedOnce, []Place{Call}, 0.02, false},
		{"cancelrace", "cancels a call or a turn in the moment in which it ends", invariant.OutcomeTrue, []Place{Call, Turn}, 0.02, false},
		{"agentcrash", "the agent ends at each stage of its life", invariant.LastChunk, []Place{Turn}, 0.05, true},
		{"agentgarbage", "the agent writes what is no message", invariant.LogLines, []Place{Turn}, 0.05, true},
		{"agenthang", "the agent ignores TERM, forks, and stops reading", invariant.BackToBaseline, []Place{Turn}, 0.02, true},
		{"stderr", "the agent floods its standard error, with control characters", invariant.LogLines, []Place{Turn}, 0.05, true},
		{"clock", "the pod stands still for a while, and its clock jumps", invariant.Alive, []Place{Machine}, 0.05, true},
		{"enospc", "the disk of state and audit is full", invariant.Alive, []Place{Machine}, 0.05, true},
		{"readonly", "state and audit cannot be written", invariant.Alive, []Place{Machine}, 0.05, true},
	}
}
