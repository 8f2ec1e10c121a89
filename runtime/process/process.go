package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// eofWait is how long a child that closed its stdin is given to end by itself before it is stopped for that.
const eofWait = time.Second

// Process is a running child. All methods are safe from any goroutine; Read of Stdout belongs to one.
type Process struct {
	spec  Spec
	group Group
	began time.Time

	stdin  *stdin
	stdout *output
	errs   *output
	stderr *stderrLog

	exited chan struct{} // the leader was waited for
	exit   Exit          // valid then
	gone   chan struct{} // a stop is through: nothing of the group is left, or nothing helps
	report Report        // valid then

	stopping  sync.Once
	reason    string // written before the stop it is the reason of
	hurrying  sync.Once
	hurry     chan struct{}
	minding   sync.WaitGroup // stdin and stderr
	reasoning sync.Mutex

	strays strays
	cgroup *cgroup // nil = none
	usage  atomic.Pointer[Usage]
	spent  atomic.Int64 // processor time of the leader and those it waited for, at its end, in ns
}

// PID is the leader's, and the number of the group.
func (p *Process) PID() int { return p.group.PGID }

// Group identifies the process group.
func (p *Process) Group() Group { return p.group }

// Send queues b, which the process owns from then on, for stdin; it never blocks. done (may be nil) runs once, on
// another goroutine, when b was written or dropped; it does not run when Send fails. Errors: *StdinFull,
// ErrStdinClosed.
func (p *Process) Send(b []byte, done func()) error { return p.stdin.send(b, done) }

// Waiting tells how many pieces and bytes wait for stdin.
func (p *Process) Waiting() (n int, bytes int64) { return p.stdin.waiting() }

// Stdout is what the child writes. It ends (io.EOF) when all who hold its other side have closed it, and at the
// latest, with what was written before, when the group is gone. The caller reads it to its end and closes it.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Exited is closed when the leader has ended. Others of its group may live; Stop ends them.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit is how the leader ended; the zero value while it runs.
func (p *Process) Exit() Exit {
	select {
	case <-p.exited:
		return p.exit
	default:
		return Exit{}
	}
}

// Stderr is the end of what the child wrote to stderr, raw, and how many bytes it wrote in all.
func (p *Process) Stderr() (tail []byte, total int64) { return p.stderr.bytes() }

// StderrEnded is closed when everything that was written to stderr has been read: nobody of the group holds it open any more.
func (p *Process) StderrEnded() <-chan struct{} { return p.stderr.ended }

// StderrTail is the last lines of stderr for people: escaped, secrets masked, joined to one line of at most max bytes.
func (p *Process) StderrTail(max int) string { return p.stderr.tail(max) }

// Stop ends the group and waits for it: the end of stdin (what is queued is still written), EOFGrace, TERM to the
// group, TermGrace, KILL to the group; who has left the group gets the signals too, as far as it is known. When the leader has ended already, it begins with TERM to those whom it left
// behind. Every call joins the one stop; when ctx ends, the call returns its cause and the stop goes on. After a nil
// error stderr is drained and no goroutine of the process is left.
func (p *Process) Stop(ctx context.Context) (Report, error) {
	p.begin("")
	select {
	case <-p.gone:
		return p.report, nil
	default:
	}
	select {
	case <-p.gone:
		return p.report, nil
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
}

// Kill is a Stop that goes to its last step at once; it does not wait.
func (p *Process) Kill() {
	p.hurrying.Do(func() { close(p.hurry) })
	p.begin("")
}

// Gone is closed when a Stop, whoever began it, is through.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Reason is why the package itself began to stop the child, or empty.
func (p *Process) Reason() string {
	p.reasoning.Lock()
	defer p.reasoning.Unlock()
	return p.reason
}

// begin starts the one stop.
func (p *Process) begin(reason string) {
	p.stopping.Do(func() {
		p.reasoning.Lock()
		p.reason = reason
		p.reasoning.Unlock()
		go p.climb(time.Now(), reason)
	})
}

// climb is the ladder. Its goroutine ends within Spec.Longest, and Stop is how its owner waits for it.
func (p *Process) climb(since time.Time, reason string) {
	report := Report{Reason: reason}
	p.look() // while the leader lives, its descendants are seen to be its
	p.stdin.finish()
	switch {
	case reason != "": // the end of stdin cannot reach it, or came from its side
	case p.left(0):
	default:
		report.Step = StepEOF
		p.left(p.spec.EOFGrace)
	}
	p.stdin.cut()
	for _, rung := range []struct {
		step Step
		sig  syscall.Signal
		wait time.Duration
	}{{StepTerm, syscall.SIGTERM, p.spec.TermGrace}, {StepKill, syscall.SIGKILL, killWait}} {
		if !p.remains() {
			break
		}
		if rung.step == StepTerm && p.hurried() {
			continue
		}
		report.Step = rung.step
		p.until(rung.wait, rung.step != StepKill, p.chase(rung.sig))
	}
	report.Alive = p.remains()
	if !report.Alive {
		ours.reapGroup(p.group.PGID) // what died since the last look
		p.spec.Guardian.Remove(p.group)
		p.forget()
	}
	if p.cgroup.overran() && report.Reason == "" {
		report.Reason = fmt.Sprintf("it went beyond its memory limit of %d bytes", p.spec.Cgroups.limits.Memory)
	}
	p.cgroup.close()
	ours.leave(p)
	p.stdout.finish()
	p.errs.finish()
	p.minding.Wait()
	report.Exit, report.Took = p.Exit(), time.Since(since)
	p.report = report
	close(p.gone)
}

// left waits at most d for the leader to end; the others of the group get their signal, not the end of stdin.
func (p *Process) left(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-p.hurry:
	case <-timer.C:
	}
	return false
}

// until waits at most d for all to be gone, and calls again before each look. Nothing tells the end of a group, so it is
// asked for, at growing distances.
func (p *Process) until(d time.Duration, hurry bool, again func()) {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	hurried := p.hurry
	if !hurry {
		hurried = nil
	}
	again()
	for pause := time.Millisecond; p.remains(); pause = min(2*pause, 50*time.Millisecond) {
		if pause > time.Millisecond {
			again()
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-hurried:
			next.Stop()
			return
		case <-deadline.C:
			next.Stop()
			return
		}
	}
}

// remains tells whether anything of the group lives, or of those that have left it.
func (p *Process) remains() bool {
	select {
	case <-p.exited:
		ours.reapGroup(p.group.PGID)
		if alive(p.group.PGID) || p.strays.live() {
			return true
		}
		return len(p.look()) > 0 // who was started since the last look
	default:
		return true
	}
}

func (p *Process) hurried() bool {
	select {
	case <-p.hurry:
		return true
	default:
		return false
	}
}

// mindStdin writes stdin, and stops a child that does not take it.
func (p *Process) mindStdin() {
	err := p.stdin.write()
	switch {
	case err == nil || errors.Is(err, ErrStdinClosed) || errors.Is(err, os.ErrDeadlineExceeded):
	case errors.Is(err, errStdinSlow):
		p.begin("it did not read its stdin for " + p.spec.StdinTimeout.String())
	default: // closed by the child: usually it is ending just now
		if !p.left(eofWait) {
			p.begin("it closed its stdin")
		}
	}
}
