package stdio

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// Options are what one link is made of.
type Options struct {
	Command     []string      // the program and its arguments, verbatim; found in the PATH of Env
	Dir         string        // working directory; "" = the pod's
	Env         []string      // the complete environment, "NAME=value"
	ResultBytes int64         // of one message of the child
	RoomWait    time.Duration // how long a message waits for room before it is skipped; 0 = 10 s

	EOFGrace, TermGrace time.Duration // of a stop: after the end of stdin, and after TERM
	StdinBytes          int64         // that may wait for stdin; 0 = 16 MiB
	StdinTimeout        time.Duration // how long the child may read nothing while something waits for it; 0 = 30 s

	Secrets  []string          // replaced wherever stderr is shown
	Guardian *process.Guardian // nil = none
	Log      *slog.Logger      // gets the lines of stderr, at warn, and what was skipped
}

const (
	// silence is how long a child that has ended is given to say something more: others of its group may hold its stdout open. It
	// begins anew with each thing that is read, up to lastWords.
	silence   = 50 * time.Millisecond
	looks     = 5 // into how many pauses a silence is divided
	lastWords = time.Second
	// outWait is how long a child that closed its stdout is given to end by itself.
	outWait   = time.Second
	tailBytes = 1 << 10
)

// Link is one child, from its start to the end of its group.
type Link struct {
	o     Options
	log   *slog.Logger
	quiet *rate.Limiter // of records about what a child does wrong

	to   link.Sink // set when the child runs
	read atomic.Int64
	eof  chan struct{} // closed when stdout has ended and all that it said was handed on

	mu   sync.Mutex // makes one line of the pieces of a message
	proc *process.Process
}

// New makes a link. Nothing runs before its Run.
func New(o Options) link.Link {
	if o.RoomWait <= 0 {
		o.RoomWait = 10 * time.Second
	}
	if o.StdinBytes <= 0 {
		o.StdinBytes = process.DefaultStdinBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Link{o: o, log: o.Log, quiet: rate.NewLimiter(1, 10), eof: make(chan struct{})}
}

// Speaks implements [link.Link]. A child is told the version by the handshake alone.
func (l *Link) Speaks(string) {}

// Run implements [link.Link].
func (l *Link) Run(ctx context.Context, to link.Sink) error {
	l.to = to
	proc, err := process.Start(process.Spec{
		Argv: l.o.Command, Dir: l.o.Dir, Env: l.o.Env, EOFGrace: l.o.EOFGrace, TermGrace: l.o.TermGrace,
		StdinBytes: l.o.StdinBytes, StdinTimeout: l.o.StdinTimeout, Log: warned(l.log), Secrets: l.o.Secrets, Guardian: l.o.Guardian, Kind: "provider",
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.proc = proc
	l.mu.Unlock()
	to.Up(proc.PID())
	go l.pump(ctx)
	reason := l.wait(ctx)
	if ctx.Err() == nil {
		if m, ok := to.(link.Mourner); ok {
			m.Down(l.exit(reason))
		}
	}
	report, _ := proc.Stop(context.WithoutCancel(ctx)) // bounded by the ladder
	<-l.eof
	if report.Alive {
		l.log.Error("a server's process lives on after KILL", "pid", proc.PID())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.exit(reason)
}

// wait waits for the child's end, or for a reason to end it.
func (l *Link) wait(ctx context.Context) (reason string) {
	proc := l.proc
	select {
	case <-proc.Exited():
		l.listen(ctx)
	case <-proc.Gone():
		return proc.Reason()
	case <-ctx.Done():
	case <-l.eof:
		timer := time.NewTimer(outWait)
		defer timer.Stop()
		select {
		case <-proc.Exited():
			l.hearOut(ctx)
		case <-ctx.Done():
		case <-timer.C:
			return "it closed its stdout"
		}
	}
	return ""
}

// listen lets what the child has written be read to its end.
func (l *Link) listen(ctx context.Context) {
	last := time.NewTimer(lastWords)
	defer last.Stop()
	untilSilent(l.read.Load, func() bool {
		pause := time.NewTimer(silence / looks)
		defer pause.Stop()
		select {
		case <-pause.C:
			return true
		case <-l.eof:
		case <-last.C:
		case <-ctx.Done():
		}
		return false
	})
	select {
	case <-l.eof:
		l.hearOut(ctx)
	default:
	}
}

// untilSilent returns when as many pauses in a row as make a silence brought nothing, or when pause says that there is no more to
// wait for. One pause would not do: where the pod itself stood still, it is over before what waits in the pipe could be read.
func untilSilent(read func() int64, pause func() bool) {
	for before, quiet := read(), 0; quiet < looks && pause(); quiet++ {
		if now := read(); now != before {
			before, quiet = now, -1
		}
	}
}

// hearOut lets stderr be read to its end, too, when that comes at once: its last lines say why the child has ended.
func (l *Link) hearOut(ctx context.Context) {
	pause := time.NewTimer(silence)
	defer pause.Stop()
	select {
	case <-l.proc.StderrEnded():
	case <-pause.C:
	case <-ctx.Done():
	}
}

// exit is why the child's link broke.
func (l *Link) exit(reason string) error {
	if reason == "" {
		reason = l.proc.Reason()
	}
	e := &link.ExitError{How: l.proc.Exit().String(), Stderr: l.proc.StderrTail(tailBytes)}
	select {
	case <-l.proc.Exited():
	default:
		e.How = "was ended"
	}
	if reason != "" {
		e.How = "was ended: " + reason
	}
	return e
}

// Send implements [link.Link]. Its errors are *kernel.Overloaded, when the child reads more slowly than it is written to,
// and [link.ErrUnsent].
func (l *Link) Send(m link.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proc == nil {
		m.Held.Release()
		return errNotRunning
	}
	tail := oneLine(m.Tail)
	pieces := [...][]byte{oneLine(m.Head), oneLine(m.Body), append(tail[:len(tail):len(tail)], '\n')}
	size := int64(0)
	for _, p := range pieces {
		size += int64(len(p))
	}
	// Nobody else writes to the child, so what fits now fits piece by piece.
	if _, used := l.proc.Waiting(); used > 0 && used+size > l.o.StdinBytes {
		m.Held.Release()
		return &kernel.Overloaded{Scope: "stdin of this server", Limit: l.o.StdinBytes, Used: used, Size: size, RetryAfter: time.Second}
	}
	for i, p := range pieces {
		var done func()
		if i == len(pieces)-1 {
			done = m.Held.Release
		}
		if len(p) == 0 {
			continue
		}
		if err := l.proc.Send(p, done); err != nil {
			m.Held.Release()
			return fmt.Errorf("%w: %w", link.ErrUnsent, err)
		}
	}
	return nil
}

var errNotRunning = fmt.Errorf("%w: the server's process does not run", link.ErrUnsent)
