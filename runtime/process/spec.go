package process

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"
)

// Defaults of Spec, taken when a field is zero.
const (
	DefaultGrace        = 5 * time.Second
	DefaultStdinBytes   = 16 << 20
	DefaultStdinTimeout = 30 * time.Second
	DefaultStderrBytes  = 64 << 10
	killWait            = 5 * time.Second // after KILL; what lives on then hangs in the operating system
)

// Spec says what is started and how it is bounded.
type Spec struct {
	Argv []string // the program and its arguments, never split; a name without a slash is looked up in the PATH of Env
	Dir  string   // working directory; empty = this process's
	Env  []string // the complete environment, "NAME=value"; nothing is inherited

	EOFGrace     time.Duration // how long a stop waits after the end of stdin
	TermGrace    time.Duration // how long it waits after TERM
	StdinBytes   int64         // what may wait for stdin; one longer piece passes when it is alone
	StdinTimeout time.Duration // how long the child may read nothing while something waits for it

	StderrBytes int          // the ring that keeps the end of stderr
	Log         *slog.Logger // gets the lines of stderr; nil = they are only kept in the ring
	Secrets     []string     // replaced wherever stderr is shown

	Guardian *Guardian // is told the group; nil = none

	// Mark is an entry of Env that no other process was given, such as one with a token: who carries it in its environment
	// belongs to this child wherever it went. Only its hash is kept. Empty = none.
	Mark string
	// Cgroups gives the child a cgroup with limits; nil = none.
	Cgroups *Cgroups
	// Kind is the word under which the use of processor and memory is summed up; empty = "other".
	Kind string
}

func (s Spec) withDefaults() Spec {
	if s.EOFGrace <= 0 {
		s.EOFGrace = DefaultGrace
	}
	if s.TermGrace <= 0 {
		s.TermGrace = DefaultGrace
	}
	if s.StdinBytes <= 0 {
		s.StdinBytes = DefaultStdinBytes
	}
	if s.StdinTimeout <= 0 {
		s.StdinTimeout = DefaultStdinTimeout
	}
	if s.StderrBytes <= 0 {
		s.StderrBytes = DefaultStderrBytes
	}
	return s
}

// Longest is how long Stop can take at most with these graces.
func (s Spec) Longest() time.Duration {
	s = s.withDefaults()
	return s.EOFGrace + s.TermGrace + killWait
}

// Exit is how the leader ended.
type Exit struct {
	Code   int            // the exit status; -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited
}

// String is for people.
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// Step is how far a stop had to go.
type Step uint8

// The steps of the ladder.
const (
	StepNone Step = iota // the whole group had already ended
	StepEOF              // it ended when its stdin did
	StepTerm             // TERM was needed
	StepKill             // KILL was needed
)

// String names the step.
func (s Step) String() string { return [...]string{"none", "eof", "term", "kill"}[s] }

// Report is what a stop did.
type Report struct {
	Exit   Exit          // of the leader; zero when Alive
	Step   Step          // what was needed
	Took   time.Duration // from the first Stop to the end of the group
	Reason string        // why the package itself began the stop (the child did not read its stdin), or that the kernel ended something over its memory limit; else empty
	Alive  bool          // something of the group lives on after KILL; the guardian still knows it
}

// StartError says why a program could not be started.
type StartError struct {
	Program string
	Err     error
}

// Error is one line.
func (e *StartError) Error() string {
	return fmt.Sprintf("start %s: %v", Escape(e.Program, 256), e.Err)
}

// Unwrap returns the error of the operating system.
func (e *StartError) Unwrap() error { return e.Err }

// StdinFull refuses a piece for stdin: the child reads more slowly than it is written to.
type StdinFull struct{ Size, Used, Limit int64 }

// Error is one line.
func (e *StdinFull) Error() string {
	return fmt.Sprintf("%d bytes wait for the child's stdin, %d more do not fit into %d; wait until it reads", e.Used, e.Size, e.Limit)
}

// env returns the value of a name in an environment; the last one counts, as it does for the child.
func env(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name {
			value = v
		}
	}
	return value
}
