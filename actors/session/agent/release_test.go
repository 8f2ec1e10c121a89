package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// TestTheReleaseOfAnAbandonedGenerationHasNoPatience calls what the kernel's book calls when the cell itself is stuck.
func TestTheReleaseOfAnAbandonedGenerationHasNoPatience(t *testing.T) {
	g := guardian(t)
	k := kernel.New(kernel.Options{})
	cfg := Config{Command: roleOf("obstinate"), StopGrace: time.Hour, Guardian: g, Log: slog.New(slog.DiscardHandler)}.withDefaults()
	ctx, cancel := context.WithTimeout(context.Background(), kerneltest.Deadline)
	defer cancel()

	r := newRunner(cfg, kernel.Ref{}, kernel.Ref{}, k.Account())
	proc, err := r.spawn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, proc.Stdout())
		_ = proc.Stdout().Close()
	}()
	r.release(ctx, kernel.ErrAbandoned)
	<-drained
	if runs(proc.PID()) || len(g.Groups()) != 0 || ctx.Err() != nil {
		t.Errorf("it runs: %v, the guardian knows %v", runs(proc.PID()), g.Groups())
	}

	late := newRunner(cfg, kernel.Ref{}, kernel.Ref{}, k.Account())
	late.release(ctx, kernel.ErrAbandoned)
	if _, err := late.spawn(ctx); err == nil {
		t.Error("a generation that was released starts a process")
	}
}

func TestTheReserveOfShortFramesIsBoundedAndComesBack(t *testing.T) {
	k := kernel.New(kernel.Options{Limit: 1})
	r := newRunner(Config{}, kernel.Ref{}, kernel.Ref{}, k.Account())
	var taken []func()
	for {
		release, err := r.charge(1000, nil)
		if err != nil {
			var full *kernel.Overloaded
			if !errors.As(err, &full) {
				t.Fatal(err)
			}
			break
		}
		taken = append(taken, release)
	}
	if len(taken) != reserveBytes/1000 {
		t.Errorf("%d frames of 1000 bytes fitted", len(taken))
	}
	for _, release := range taken {
		release()
	}
	if n := r.reserve.Load(); n != 0 {
		t.Errorf("%d bytes did not come back", n)
	}
	if _, err := r.charge(shortFrame+1, nil); err == nil {
		t.Error("a long frame used the reserve")
	}
}
