package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	guardianStart   = 10 * time.Second // until a guardian says that it listens
	guardianWrite   = time.Second      // it does nothing but read, so a full pipe means that it is stopped
	guardianBackoff = 100 * time.Millisecond
	guardianMaxWait = 5 * time.Second
)

// GuardianOptions say how the guardian is run.
type GuardianOptions struct {
	Command []string     // this executable and the hidden subcommand that calls RunGuardian; absolute
	Env     []string     // of the guardian; nil = none
	Records string       // a folder for this pod's record, which Sweep reads after its death; empty = no record
	Log     *slog.Logger // nil = slog.Default()
}

// Guardian is the pod's side of its guardian process: it tells it each group, and starts another, which is told all
// groups again, when it dies. Methods are safe from any goroutine and on nil, which guards nothing.
type Guardian struct {
	opts   GuardianOptions
	record *record

	mu     sync.Mutex
	known  book
	pipe   *os.File // to the guardian; nil while there is none
	pid    int
	starts int
	closed bool

	stop chan struct{}
	done chan struct{}
}

// StartGuardian starts the guardian and returns when it listens, so that the first child has it already.
func StartGuardian(opts GuardianOptions) (*Guardian, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	g := &Guardian{opts: opts, known: book{}, stop: make(chan struct{}), done: make(chan struct{})}
	if opts.Records != "" {
		var err error
		if g.record, err = newRecord(opts.Records); err != nil {
			return nil, fmt.Errorf("the record of process groups: %w; make %s writable", err, opts.Records)
		}
	}
	child, err := g.start()
	if err != nil {
		g.record.close(true)
		return nil, fmt.Errorf("the guardian of child processes did not start: %w", err)
	}
	go g.mind(child)
	return g, nil
}

// Add tells the guardian a group. It waits a second at most, for a guardian that hangs and is then replaced.
func (g *Guardian) Add(group Group) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[group] = struct{}{}
	g.tell(addLine(group))
}

// Remove takes a group back that is gone.
func (g *Guardian) Remove(group Group) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.known[group]; !known {
		return
	}
	delete(g.known, group)
	g.tell(removeLine(group))
}

// Groups lists the groups that were started and are not known to be gone, in the order of their numbers.
func (g *Guardian) Groups() []Group {
	return slices.DeleteFunc(g.all(), func(one Group) bool { return one.Stray })
}

// all lists what the guardian knows, strays too.
func (g *Guardian) all() []Group {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	groups := g.known.groups()
	slices.SortFunc(groups, func(a, b Group) int { return a.PGID - b.PGID })
	return groups
}

// Status is for the tree: the guardian's pid (0 while there is none) and how often one was started.
func (g *Guardian) Status() (pid, starts int) {
	if g == nil {
		return 0, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pid, g.starts
}

// Close ends the guardian, which ends what is still in its book: at once when that is empty, in four seconds at
// most. It is the pod's last act, after all that it started was stopped. An error when something lives on.
func (g *Guardian) Close(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.stop)
	}
	g.hangUp()
	g.mu.Unlock()
	select {
	case <-g.done:
	case <-ctx.Done():
		return fmt.Errorf("the guardian did not end: %w", context.Cause(ctx))
	}
	left := living(g.all())
	g.record.close(len(left) == 0)
	if len(left) > 0 {
		return fmt.Errorf("%d process groups live on, the first is %d", len(left), left[0].PGID)
	}
	return nil
}

// tell writes one line to the guardian and the record; called with the lock. A guardian that takes none is dead or
// hangs: without its pipe it ends, and the next one is told everything.
func (g *Guardian) tell(line string) {
	g.record.append(line, g.known)
	if g.pipe == nil {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardianWrite))
	if _, err := io.WriteString(g.pipe, line); err != nil {
		g.opts.Log.Warn("the guardian takes nothing; another is started", "error", err)
		g.abandon()
	}
}

// abandon replaces a guardian that hangs: it must not wake later and end groups that live on rightly.
func (g *Guardian) abandon() {
	if g.pid > 0 {
		_ = syscall.Kill(g.pid, syscall.SIGKILL)
	}
	g.hangUp()
}

func (g *Guardian) hangUp() {
	if g.pipe != nil {
		_ = g.pipe.Close()
		g.pipe = nil
	}
}

// start runs a guardian and tells it all groups.
func (g *Guardian) start() (*os.Process, error) {
	if len(g.opts.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	closeInherited()
	in, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	out, said, err := os.Pipe()
	if err != nil {
		_ = pipe.Close()
		return nil, err
	}
	defer func() { _ = out.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_, _ = pipe.Close(), said.Close()
		return nil, err
	}
	defer func() { _ = null.Close() }()
	environ := g.opts.Env
	if environ == nil {
		environ = []string{}
	}
	child, err := ours.start(g.opts.Command[0], g.opts.Command, &os.ProcAttr{
		Env: environ, Files: []*os.File{in, said, null},
		Sys: &syscall.SysProcAttr{Setsid: true}, // no PDEATHSIG: to outlive us is its purpose
	}, false)
	_ = said.Close()
	if err != nil {
		_ = pipe.Close()
		return nil, err
	}
	_ = out.SetReadDeadline(time.Now().Add(guardianStart))
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != guardianReady {
		_ = pipe.Close()
		_ = child.Kill()
		_, _ = ours.wait(child)
		return nil, fmt.Errorf("%s did not say that it listens", Escape(g.opts.Command[0], 256))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starts++
	g.pid, g.pipe = child.Pid, pipe
	for group := range g.known {
		g.tell(addLine(group))
	}
	if g.closed {
		g.hangUp()
	}
	return child, nil
}

// mind waits for the guardian and starts another when it died. It is the Guardian's own goroutine, which Close ends
// and waits for.
func (g *Guardian) mind(child *os.Process) {
	defer close(g.done)
	wait := guardianBackoff
	for {
		if child != nil {
			began := time.Now()
			state, err := ours.wait(child)
			g.mu.Lock()
			g.hangUp()
			g.pid = 0
			closed := g.closed
			g.mu.Unlock()
			if closed {
				return
			}
			g.opts.Log.Warn("the guardian of child processes ended; another is started", "exit", exitOf(state, err).String())
			if time.Since(began) > guardianMaxWait {
				wait = guardianBackoff
			}
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-g.stop:
			pause.Stop()
			endGroups(g.all(), guardianGrace) // in its place
			return
		}
		wait = min(2*wait, guardianMaxWait)
		var err error
		if child, err = g.start(); err != nil {
			g.opts.Log.Error("the guardian of child processes does not start; a kill -9 of the pod may leave processes", "error", err)
		} else {
			g.opts.Log.Info("another guardian of child processes runs and was told all groups", "pid", child.Pid)
		}
	}
}
