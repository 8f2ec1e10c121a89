package provider

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/process"
)

// Config says which servers there are and how they are bounded. Zero values have the defaults that stand beside them.
type Config struct {
	Set      mcpjson.Set
	Env      func(name string) (string, bool) // what ${env:NAME} means; nil = this process's environment
	Guardian *process.Guardian                // is told every child's process group; nil = none
	ChildEnv []string                         // what every child has, "NAME=value": HOME, PATH, TERM, USER
	Roots    []string                         // folders that servers are told of, resolved and absolute
	Version  string                           // of this program, for clientInfo; "dev"

	Bytes       int64         // of all servers together, 128 MiB: their lists, and what they send until it is handed on
	ResultBytes int64         // limits.result_bytes, 8 MiB: one message of a server
	SchemaBytes int           // limits.tool_schema_bytes, 64 KiB: one schema; a whole tool may have twice that
	StopGrace   time.Duration // agent.stop_grace, 5 s: what a child has after TERM
	CallMax     time.Duration // mcp.call_max, 30 min

	Log *slog.Logger // the stderr of children; nil = the actor's own

	// Dial makes the link of a server whose variables were replaced; nil = [stdio] and [httplink]. For tests.
	Dial func(r mcpjson.Resolved, modern bool) (link.Link, error)
	// Rand is the source of jitter, in [0, 1); nil = math/rand.
	Rand func() float64
}

func (c Config) withDefaults() Config {
	c.Version = cmp.Or(c.Version, "dev")
	c.Bytes = cmp.Or(c.Bytes, 128<<20)
	c.ResultBytes = cmp.Or(c.ResultBytes, 8<<20)
	c.SchemaBytes = cmp.Or(c.SchemaBytes, 64<<10)
	c.StopGrace = cmp.Or(c.StopGrace, 5*time.Second)
	c.CallMax = cmp.Or(c.CallMax, 30*time.Minute)
	if c.Env == nil {
		c.Env = os.LookupEnv
	}
	if c.Dial == nil {
		c.Dial = c.dial
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// Bounds of one server that no operator has asked to change.
const (
	maxTools      = 10_000                 // of one list
	maxPages      = 100                    // of one list
	maxCalls      = 256                    // calls of a server at a time: waiting, in flight, and told to stop a moment ago
	maxAsked      = 8                      // questions of a server to the user behind a call
	defaultCalls  = 32                     // calls of one tool in flight, where mcp.json says nothing
	maxQueue      = 64                     // calls of one tool that wait for those
	callBytes     = 1 << 10                // charged for each call: its place in the tables, its timers, its frame's envelope
	keptListBytes = 256 << 10              // a list of at most this is still shown when its server is not connected
	refreshEvery  = 250 * time.Millisecond // between two refreshes of a list
	suspectFor    = time.Minute            // how long a call that was told to stop may still be what a server speaks of
	brokenAfter   = 3                      // transport faults in a row
	brokenFor     = time.Minute
	backoffMin    = time.Second
	backoffMax    = 10 * time.Minute
	minIdle       = time.Second // between two looks at whether a server is idle
)
