package agent

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/acpod/acpod/runtime/process"
)

// Defaults of Config, taken when a field is zero.
const (
	DefaultLineBytes    = 16 << 20         // limits.agent_line_bytes
	DefaultStartTimeout = 60 * time.Second // agent.start_timeout: adapters that are fetched at first use need most of it
	DefaultStopGrace    = 5 * time.Second  // agent.stop_grace
	DefaultLineWait     = 60 * time.Second // twice as long as a client's socket may accept nothing
	DefaultStdinTimeout = 30 * time.Second // as long as a client's socket may accept nothing (acp.write_timeout)
)

// Config says how one agent process is started and bounded. It is a value; the actor keeps a copy.
type Config struct {
	Command []string // the program and its arguments, verbatim; found in the PATH of Env
	Dir     string   // working directory, absolute
	Env     []string // the complete environment, "NAME=value"; nothing is inherited

	LineBytes    int           // the longest line of the agent that is kept
	LineWait     time.Duration // how long a line waits for room in the account before it is skipped
	StartTimeout time.Duration // from the start of the process to the answer of initialize
	StopGrace    time.Duration // each of the two waits of a stop: for the end of stdin, and for TERM
	StdinTimeout time.Duration // how long the process may read nothing while something waits for it

	Secrets  []string          // replaced wherever stderr is shown, besides what the names in Env say is secret
	Client   []byte            // clientCapabilities of whom the agent works for, an object; nil = none
	Version  string            // of this pod, told to the agent as clientInfo.version; empty = "dev"
	Guardian *process.Guardian // nil = none
	Cgroups  *process.Cgroups  // limits of what it and all that it starts may use; nil = none
	// Started is told the process before anything is said to it, on a goroutine of the actor's; nil = nobody wants to know.
	Started func(process.Group)
	Log     *slog.Logger // stderr lines, and what was skipped; nil = the actor's own logger
}

// LongestStop is how long the end of one agent takes at most, when it heeds nothing but KILL.
func (c Config) LongestStop() time.Duration { return c.withDefaults().process(0).Longest() }

// process is the child's side of it; stdin bounds what may wait for it, in bytes, 0 = the default.
func (c Config) process(stdin int64) process.Spec {
	return process.Spec{
		Argv: c.Command, Dir: c.Dir, Env: c.Env,
		EOFGrace: c.StopGrace, TermGrace: c.StopGrace, StdinBytes: stdin, StdinTimeout: c.StdinTimeout,
		Log: c.Log, Secrets: append(secretsOf(c.Env), c.Secrets...), Guardian: c.Guardian, Mark: markOf(c.Env), Kind: "agent", Cgroups: c.Cgroups,
	}
}

// markOf is what only this agent was given, and what it starts has of it: its session's token.
func markOf(environ []string) string {
	mark := ""
	for _, entry := range environ {
		if strings.HasPrefix(entry, "OPENAB_SESSION_TOKEN=") && !strings.HasSuffix(entry, "=") {
			mark = entry
		}
	}
	return mark
}

// secretsOf guesses which values of an environment no log may show: agents do print their environment when they fail.
func secretsOf(environ []string) []string {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		name = strings.ToUpper(name)
		secret := slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL"}, func(word string) bool { return strings.Contains(name, word) })
		if secret && len(value) >= 8 { // a shorter one would be found in any text
			secrets = append(secrets, value)
		}
	}
	return secrets
}

func (c Config) withDefaults() Config {
	if c.LineBytes <= 0 {
		c.LineBytes = DefaultLineBytes
	}
	if c.LineWait <= 0 {
		c.LineWait = DefaultLineWait
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.StopGrace <= 0 {
		c.StopGrace = DefaultStopGrace
	}
	if c.StdinTimeout <= 0 {
		c.StdinTimeout = DefaultStdinTimeout
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	return c
}
