package agent

import (
	"fmt"
	"slices"
	"strings"
)

// The faults of an agent.
const (
	Crash     = "agentcrash"   // it ends: with a code, by abort, by KILL
	Garbage   = "agentgarbage" // it writes what is no message, or one that nobody asked for
	Hang      = "agenthang"    // it ignores TERM, stops reading and leaves grandchildren that ignore TERM too
	Stderr    = "stderr"       // it floods its standard error, with secrets and control characters
	Hostile   = "hostiletext"  // names, titles and errors that attack whoever shows them
	Flood     = "flood"        // updates as fast as it can
	Oversize  = "oversize"     // a line over the pod's limit
	Never     = "never"        // an answer that does not come
	Late      = "late"         // an answer that comes after Plan.Delay
	Duplicate = "duplicate"    // the same request answered twice
)

// The stages at which a fault strikes.
const (
	AtStart      = "start"      // before the process has read anything
	AtInitialize = "initialize" // initialize is read and not answered
	AtNew        = "new"        // session/new is read and not answered
	AtOpened     = "opened"     // session/new has just been answered
	AtPrompt     = "prompt"     // a prompt is read, nothing of it is done
	AtChunk      = "chunk"      // in the middle of a row of chunks
	AtLine       = "line"       // in the middle of a line
	AtCall       = "call"       // a call of the facade is in flight
	AtAsk        = "ask"        // a permission request is open
	AtAnswer     = "answer"     // the prompt's answer itself
	AtAnswered   = "answered"   // the prompt has just been answered
	AtCancel     = "cancel"     // session/cancel is read, the prompt is not answered
	AtEOF        = "eof"        // standard input has ended
)

// Fault is one kind of misbehaviour.
type Fault struct {
	Name     string
	Stages   []string
	Variants []string // the first is the plainest; empty = there is only one way
}

// Faults lists everything that this agent can do wrong.
var Faults = []Fault{
	{Crash, []string{AtStart, AtInitialize, AtNew, AtOpened, AtPrompt, AtChunk, AtLine, AtCall, AtAsk, AtAnswered, AtCancel}, []string{"exit", "zero", "abort", "kill"}},
	{Garbage, []string{AtStart, AtInitialize, AtNew, AtOpened, AtPrompt, AtChunk, AtAnswered, AtCancel}, []string{"all", "early"}},
	{Hang, []string{AtStart, AtInitialize, AtNew, AtPrompt, AtChunk, AtCall, AtAsk, AtCancel, AtEOF}, []string{"deaf", "closed"}},
	{Stderr, []string{AtStart, AtInitialize, AtNew, AtPrompt, AtChunk, AtAnswered}, []string{"flood", "endless", "control", "secrets"}},
	{Hostile, []string{AtInitialize, AtNew, AtPrompt, AtAsk, AtAnswer}, nil},
	{Flood, []string{AtOpened, AtPrompt, AtCancel, AtAnswered}, []string{"small", "big"}},
	{Oversize, []string{AtNew, AtPrompt, AtAsk, AtAnswer}, []string{"over", "exact"}},
	{Never, []string{AtInitialize, AtNew, AtAnswer, AtCancel}, nil},
	{Late, []string{AtInitialize, AtNew, AtAnswer, AtCancel}, nil},
	{Duplicate, []string{AtInitialize, AtNew, AtAnswer}, nil},
}

// Named finds a fault.
func Named(name string) (Fault, bool) {
	at := slices.IndexFunc(Faults, func(f Fault) bool { return f.Name == name })
	if at < 0 {
		return Fault{}, false
	}
	return Faults[at], true
}

// Strike is one fault at one stage, written FAULT:STAGE or FAULT:STAGE:VARIANT. Without a variant the seed decides.
type Strike struct{ Fault, Stage, Variant string }

// String is the form that ParseStrike reads.
func (s Strike) String() string {
	if s.Variant == "" {
		return s.Fault + ":" + s.Stage
	}
	return s.Fault + ":" + s.Stage + ":" + s.Variant
}

// ParseStrike reads a strike and refuses one that cannot happen.
func ParseStrike(text string) (Strike, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return Strike{}, fmt.Errorf("%q is no strike: write FAULT:STAGE or FAULT:STAGE:VARIANT", text)
	}
	fault, known := Named(parts[0])
	switch {
	case !known:
		return Strike{}, fmt.Errorf("there is no fault %q", parts[0])
	case !slices.Contains(fault.Stages, parts[1]):
		return Strike{}, fmt.Errorf("%s does not strike at %q: take one of %s", fault.Name, parts[1], strings.Join(fault.Stages, ", "))
	}
	s := Strike{Fault: fault.Name, Stage: parts[1]}
	if len(parts) == 3 {
		if !slices.Contains(fault.Variants, parts[2]) {
			return Strike{}, fmt.Errorf("%s has no variation %q: take one of %s", fault.Name, parts[2], strings.Join(fault.Variants, ", "))
		}
		s.Variant = parts[2]
	}
	return s, nil
}

// Every lists each fault at each stage in each variation.
func Every() []Strike {
	var all []Strike
	for _, fault := range Faults {
		for _, stage := range fault.Stages {
			if len(fault.Variants) == 0 {
				all = append(all, Strike{fault.Name, stage, ""})
			}
			for _, variant := range fault.Variants {
				all = append(all, Strike{fault.Name, stage, variant})
			}
		}
	}
	return all
}

// InTurn tells whether the strike happens in a turn, so that a script can arm it; the others are for a plan.
func (s Strike) InTurn() bool {
	switch s.Stage {
	case AtStart, AtInitialize, AtNew, AtOpened, AtEOF:
		return false
	}
	return true
}
