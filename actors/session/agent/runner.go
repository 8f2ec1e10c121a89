package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

const (
	// reserveBytes is what short frames may take when the account is full: a cancel must reach the agent whose
	// updates have filled it.
	reserveBytes = 64 << 10
	shortFrame   = 4 << 10
	// stdoutWait is how long a process that closed its stdout is given to end by itself.
	stdoutWait = time.Second
)

// runner is the process of one generation, shared by the actor's cell and its two goroutines.
type runner struct {
	cfg     Config
	self    kernel.Ref
	owner   kernel.Ref
	account *kernel.Account
	credits *Credits
	pending *pending
	log     *slog.Logger

	mu       sync.Mutex // held while the process is started; never in a turn
	released bool       // nothing is started any more
	proc     atomic.Pointer[process.Process]
	failure  atomic.Pointer[StartError] // of the handshake: why the process is stopped although it runs

	running chan struct{} // closed when proc is set or never will be
	failed  chan struct{} // closed when failure is set
	eof     chan struct{} // closed when stdout has ended and all it said was delivered
	ready   atomic.Bool
	reserve atomic.Int64
	noise   atomic.Int64 // lines that told the owner nothing: a sign of life all the same
}

func newRunner(cfg Config, self, owner kernel.Ref, account *kernel.Account) *runner {
	return &runner{
		cfg: cfg, self: self, owner: owner, account: account, credits: NewCredits(), pending: newPending(), log: cfg.Log,
		running: make(chan struct{}), failed: make(chan struct{}), eof: make(chan struct{}),
	}
}

// supervise starts the process, waits for its end or for a reason to end it, and returns when its whole group is
// gone, with the cause of the actor's end.
func (r *runner) supervise(ctx context.Context) error {
	proc, err := r.spawn(ctx)
	if err != nil {
		r.pending.end(err)
		return err
	}
	reason := ""
	select {
	case <-proc.Exited():
	case <-proc.Gone(): // it did not read its stdin
	case <-r.failed:
	case <-ctx.Done():
		r.credits.Open()
	case <-r.eof:
		if !r.endsBySelf(ctx, proc) {
			reason = "it closed its stdout"
		}
	}
	report, _ := proc.Stop(context.WithoutCancel(ctx)) // bounded by the ladder
	r.await(ctx)
	cause := r.cause(proc, report, reason)
	r.pending.end(cause)
	if report.Alive {
		r.log.Error("an agent lives on after KILL", "pid", proc.PID())
	}
	return cause
}

// spawn starts the process, unless the generation has ended meanwhile.
func (r *runner) spawn(ctx context.Context) (*process.Process, error) {
	defer close(r.running)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.released {
		return nil, kernel.ErrStopped
	}
	proc, err := process.Start(r.cfg.process(r.account.Limit()))
	if err != nil {
		return nil, &StartError{Command: r.command(), Err: err}
	}
	if r.cfg.Started != nil {
		r.cfg.Started(proc.Group())
	}
	r.proc.Store(proc)
	_ = r.self.Tell(spawned{proc.PID()})
	_ = proc.Send(r.cfg.initialize(), nil) // the queue is empty; a process that ended already says so itself
	return proc, nil
}

func (r *runner) endsBySelf(ctx context.Context, proc *process.Process) bool {
	timer := time.NewTimer(stdoutWait)
	defer timer.Stop()
	select {
	case <-proc.Exited():
		return true
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// await waits until the reader has delivered the last words. The process is gone, so there is little left, but a
// slow client may hold the credits; a stop opens them.
func (r *runner) await(ctx context.Context) {
	select {
	case <-r.eof:
	case <-ctx.Done():
		r.credits.Open()
		<-r.eof
	}
}

// cause is what the actor's end, and each open request, is answered with.
func (r *runner) cause(proc *process.Process, report process.Report, reason string) error {
	if reason == "" {
		reason = report.Reason
	}
	exited := &Exited{Code: report.Exit.Code, Signal: report.Exit.Signal, Reason: reason, Stderr: proc.StderrTail(tailBytes)}
	if failure := r.failure.Load(); failure != nil {
		return failure
	}
	if !r.ready.Load() {
		return r.startError(exited)
	}
	return exited
}

// fail ends the process because its handshake failed.
func (r *runner) fail(err error) {
	if r.failure.CompareAndSwap(nil, r.startError(err)) {
		close(r.failed)
	}
}

// startError says why the agent never became ready; nil = it took too long.
func (r *runner) startError(err error) *StartError {
	e := &StartError{Command: r.command(), Err: err}
	if err == nil {
		e.Timeout = r.cfg.StartTimeout
	}
	if proc := r.proc.Load(); proc != nil {
		e.Stderr = proc.StderrTail(tailBytes)
	}
	return e
}

func (r *runner) command() string {
	if len(r.cfg.Command) == 0 {
		return `""`
	}
	return process.Escape(r.cfg.Command[0], 256)
}

// release is the obligation "process group": when the generation has ended, whatever way, nothing of it lives.
// In an orderly end the ladder has run by then; after an abandoned one there is no patience left.
func (r *runner) release(ctx context.Context, _ error) {
	r.credits.Open()
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	proc := r.proc.Load()
	if proc == nil {
		return
	}
	proc.Kill()
	if report, err := proc.Stop(ctx); err != nil || report.Alive {
		r.log.Error("an agent's process group is left to the guardian", "pid", proc.PID())
	}
}

// send queues a frame, which belongs to it from then on; held pays for it, else the account. The lease is released
// when it was written, dropped or refused.
func (r *runner) send(frame []byte, held *kernel.Lease) error {
	release, err := r.charge(int64(len(frame)), held)
	if err != nil {
		return err
	}
	proc := r.proc.Load()
	if proc == nil {
		release()
		return ErrNotReady
	}
	err = proc.Send(append(frame, '\n'), release)
	if err == nil {
		return nil
	}
	release()
	if full, ok := errors.AsType[*process.StdinFull](err); ok {
		return &kernel.Overloaded{Scope: r.account.Scope(), Limit: full.Limit, Used: full.Used, Size: full.Size, RetryAfter: time.Second}
	}
	return err
}

func (r *runner) charge(n int64, held *kernel.Lease) (release func(), err error) {
	if held != nil {
		return held.Release, nil
	}
	lease, err := r.account.Acquire(n)
	if err == nil {
		return lease.Release, nil
	}
	if n > shortFrame {
		return nil, err
	}
	if r.reserve.Add(n) > reserveBytes {
		r.reserve.Add(-n)
		return nil, err
	}
	return func() { r.reserve.Add(-n) }, nil
}

func typeOf(m kernel.Msg) string { return fmt.Sprintf("%T", m) }
