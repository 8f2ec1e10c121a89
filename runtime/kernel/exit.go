package kernel

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

var (
	// ErrDone is returned by a behavior that has finished: a clean end.
	ErrDone = errors.New("done")
	// ErrStopped says that the generation addressed has ended or is ending, and takes nothing any more.
	ErrStopped = errors.New("actor stopped")
	// ErrShutdown is the cause of an end that the whole kernel's shutdown brought.
	ErrShutdown = errors.New("shutdown")
	// ErrAbandoned is in the cause of a generation that did not stop within its grace.
	ErrAbandoned = errors.New("did not stop in time")
	// ErrGoexit is the cause when a behavior called runtime.Goexit.
	ErrGoexit = errors.New("runtime.Goexit in an actor")
	// ErrTaken is wrapped by Spawn when a living sibling has the name.
	ErrTaken = errors.New("name is taken by a living sibling")
)

// Crash is the cause of a generation that panicked.
type Crash struct {
	Value any
	Stack []byte
}

func (c *Crash) Error() string { return "panic: " + Escape(fmt.Sprint(c.Value), 200) }

// Unwrap gives the panic's value when it was an error.
func (c *Crash) Unwrap() error { err, _ := c.Value.(error); return err }

// IntensityError is the cause of a supervisor whose children were restarted too often.
type IntensityError struct {
	Child    string
	Restarts int
	Cause    error // of the last child's exit
}

func (e *IntensityError) Error() string {
	return fmt.Sprintf("child %s: restarted more than %d times in the window: %v", e.Child, e.Restarts, e.Cause)
}

func (e *IntensityError) Unwrap() error { return e.Cause }

// Overloaded says which account had no room. It is a refusal, not a fault: nothing was queued and nothing is charged.
type Overloaded struct {
	Scope             string
	Limit, Used, Size int64
	RetryAfter        time.Duration
}

func (e *Overloaded) Error() string {
	unit := ""
	if strings.HasSuffix(e.Scope, "_bytes") { // others count things
		unit = " bytes"
	}
	return fmt.Sprintf("overloaded: %s has %d of %d%s in use, %d more wanted; retry in %v", e.Scope, e.Used, e.Limit, unit, e.Size, e.RetryAfter)
}

// abandoned joins the reason of a stop with the fact that it was not obeyed.
type abandoned struct{ cause error }

func (e *abandoned) Error() string   { return ErrAbandoned.Error() + ": " + e.cause.Error() }
func (e *abandoned) Unwrap() []error { return []error{ErrAbandoned, e.cause} }

// parentEnded is the cause of the children of a generation that ended.
type parentEnded struct {
	parent string
	cause  error
}

func (e *parentEnded) Error() string { return "parent " + e.parent + " ended: " + e.cause.Error() }
func (e *parentEnded) Unwrap() error { return e.cause }

// inherited is the cause that the children of a stopping parent get.
func inherited(parent string, cause error) error {
	if a, ok := errors.AsType[*abandoned](cause); ok { // that the parent did not obey says nothing about the child
		cause = a.cause
	}
	if errors.Is(cause, ErrShutdown) {
		return cause
	}
	if p, ok := errors.AsType[*parentEnded](cause); ok {
		return p
	}
	return &parentEnded{parent, cause}
}

// end is why a generation ended, with what the policy must know.
type end struct {
	cause   error
	crashed bool // an error of Start or Receive, a panic, Goexit, intensity: what Transient restarts on
	retired bool // the parent wants it gone for good
}

// Started is one generation that runs, as told to Options.OnStart.
type Started struct {
	Path, Name, Kind string
	Gen              uint64
	Follows          uint64 // the generation that it replaces, 0 for the first
}

// Exit is one generation's end, as told to Options.OnExit.
type Exit struct {
	Path, Name, Kind string
	Gen              uint64
	Parent           uint64 // the parent's generation, 0 for the root
	Cause            error
	Crashed          bool
	Abandoned        bool
	Lived            time.Duration
	Next             uint64        // the generation that follows, 0 when none does
	Delay            time.Duration // until it starts
}

// Log gives the record of this exit: level, message and attributes. It holds no payload.
func (e Exit) Log() (slog.Level, string, []slog.Attr) {
	level, msg := slog.LevelDebug, "actor ended"
	switch {
	case e.Abandoned:
		level, msg = slog.LevelError, "actor abandoned"
	case e.Crashed:
		level, msg = slog.LevelError, "actor crashed"
	}
	attrs := []slog.Attr{slog.String("actor", e.Path), slog.String("kind", e.Kind), slog.Uint64("gen", e.Gen),
		slog.String("cause", Escape(e.Cause.Error(), 300)), slog.Duration("lived", e.Lived)}
	if e.Next != 0 {
		attrs = append(attrs, slog.Uint64("next", e.Next), slog.Duration("delay", e.Delay))
	}
	if c, ok := errors.AsType[*Crash](e.Cause); ok && e.Crashed {
		attrs = append(attrs, slog.String("stack", string(c.Stack)))
	}
	return level, msg, attrs
}
