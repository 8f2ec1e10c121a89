package chaos

import (
	"io"
	"log/slog"
	"time"
)

// Options say what is attacked, how hard, and where it is told.
type Options struct {
	// A pod that runs: the URL of /acp, of the debug listener ("" = none), and their keys.
	Target, Debug, Key, DebugKey string
	// Or, with Spawn, the pod's binary and the program of which `agent` is the simulated agent.
	Spawn  bool
	Binary string
	Agent  string

	Extensions, Sessions int
	Duration             time.Duration
	Seed                 uint64
	Faults               string
	Rate                 float64 // calls a second
	// MemoryFactor multiplies the pod's worst case: a pod with the race detector needs several times the memory.
	MemoryFactor float64

	Dir      string       // made by the caller: everything that the run writes
	Flight   string       // prefix of files for flight recordings; "" = none are kept
	Log      *slog.Logger // progress, a line a second; and what was seen of each breach
	Terminal io.Writer    // gets the progress instead, as one line that is written over; nil = there is none
	Version  string
}

// progressPause is how often the run tells where it is.
const progressPause = time.Second
