package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// stopPatience bounds the stop after the drain, beside what agents are given to end. Each actor has its own grace; this is for what
// none of them foresaw.
const stopPatience = 2 * time.Minute

// drain lets turns end, then stops everything. A second signal ends it at once.
func (l *life) drain(sig os.Signal) error {
	timeout := l.cfg.Pod.DrainTimeout
	l.log.Info("draining: no new clients and prompts; a second signal ends at once", "signal", sig.String(), "drain_timeout", timeout)
	before := l.abandoned.Load()
	l.phase.ready.Store(false)

	return l.unlessSignalled(func() error { return l.end(timeout, before) })
}

// unlessSignalled runs the end of a life and gives it up at the next signal: who sends one more does not want to wait.
func (l *life) unlessSignalled(end func() error) error {
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		return err
	case <-l.opts.Signals:
		return ErrSecondSignal
	}
}

// end is the drain itself.
func (l *life) end(timeout time.Duration, abandoned int64) error {
	turns, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if l.sessions == nil {
		l.drainCalls(turns)
	} else {
		_ = l.sessions.Drain(ended()) // refuses what is new before any client hears of the drain
		l.gateway.Drain(timeout)
		if err := l.sessions.Drain(turns); err != nil {
			l.log.Warn("turns are cut: they did not end in pod.drain_timeout")
		}
	}
	err := l.stop(context.Background())
	if n := l.abandoned.Load() - abandoned; n > 0 {
		err = errors.Join(err, fmt.Errorf("%d actors had to be abandoned", n))
	}
	if err == nil {
		l.log.Info("stopped")
	}
	return err
}

// drainCalls waits until no call is in flight: a facade that runs alone has no turns that would end first.
func (l *life) drainCalls(ctx context.Context) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for l.calls.Load() > 0 {
		select {
		case <-ctx.Done():
			l.log.Warn("calls are cut: they did not end in pod.drain_timeout", "calls", l.calls.Load())
			return
		case <-look.C:
		}
	}
}

// stop ends all actors in order, then what their processes left behind, and then the guardian. An error says what still lives.
func (l *life) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopPatience+2*l.cfg.Agent.StopGrace)
	defer cancel()
	var failed error
	if report := l.kernel.Shutdown(ctx); !report.Empty() {
		for _, left := range report.Left {
			l.log.Error("did not stop", "actor", left.Path, "what", left.What, "for", left.Age, "stack", left.Stack)
		}
		failed = errors.New(report.String())
	}
	return errors.Join(failed, l.parent.Close(ctx), l.guardian.Close(ctx))
}

// ended is a context that is over already.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
