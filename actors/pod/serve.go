package pod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/runtime/kernel"
)

// Options of one life of the pod.
type Options struct {
	Config     *config.Loaded
	Log        *slog.Logger     // stderr; its handler also gets the audit records, past its level
	ReadyFile  string           // "" = none
	Version    string           // of the program
	Executable string           // this program: the guardian and the demo agent are started from it
	Environ    []string         // os.Environ()
	Signals    <-chan os.Signal // the first begins the drain, the second ends the process at once

	MCPConfig   []string // --mcp-config; none = the files where people keep them
	FacadeAlone bool     // only the facade and what it needs: no /acp, no agent
}

// ErrSecondSignal is the end by a second signal: nothing was waited for.
var ErrSecondSignal = errors.New("ended at once by a second signal; the guardian ends what is left")

// startPatience bounds the start of the actors, which wait for nothing but the scheduler.
const startPatience = 30 * time.Second

// signalled says that a signal came before the pod was ready.
type signalled struct{ sig os.Signal }

func (s *signalled) Error() string { return "stopped by " + s.sig.String() + " before it was ready" }

// Serve runs the pod until a signal comes or the root gives up. A nil error is exit status 0.
func Serve(o Options) error {
	life, err := prepare(o)
	if err != nil {
		return err
	}
	defer life.ledger.close()
	defer life.closeRecords()
	defer life.flight.Stop()
	defer life.sockets.close()
	defer life.ready.remove()
	return life.run()
}

// run is everything between two states of the machine in which nothing of this pod runs.
func (l *life) run() error {
	err := l.start()
	var early *signalled
	switch {
	case errors.As(err, &early):
		return l.drain(early.sig)
	case err != nil:
		return l.unlessSignalled(func() error { return errors.Join(err, l.stop(context.Background())) })
	}
	select {
	case sig := <-l.opts.Signals:
		return l.drain(sig)
	case <-l.kernel.Done():
		err := fmt.Errorf("the pod gave up: %w", l.kernel.Cause())
		return l.unlessSignalled(func() error { return errors.Join(err, l.stop(context.Background())) })
	}
}

// start runs the root and returns when every child runs. Then the addresses are told.
func (l *life) start() error {
	admit := l.sockets.hold()
	if err := l.begin(); err != nil {
		return err
	}
	l.phase.ready.Store(true)
	admit()
	if !l.opts.FacadeAlone {
		tell(l.log, l.cfg)
	}
	at := l.sockets.addresses()
	if at.Public != "" {
		l.log.Info("listening", "listener", "public", "addr", at.Public)
	}
	if at.Facade != "" {
		l.log.Info("listening", "listener", "facade", "addr", at.Facade, "transport", "stateless")
	}
	if at.Debug != "" {
		l.log.Info("listening", "listener", "debug", "addr", at.Debug)
	}
	if l.cfg.MCP != nil {
		l.log.Info("servers of mcp.json", "servers", len(l.set.Servers), "disabled", len(l.set.Disabled))
	}
	l.log.Info("memory", "bytes_limit", int64(l.cfg.Limits.PodBytes), "worst_case_bytes", l.promise.total(),
		"runtime_limit", l.runtimeLimit, "runtime_limit_from", l.limitFrom)
	return l.ready.write(at)
}

// begin starts the actors and waits until all of them run.
func (l *life) begin() error {
	if _, err := l.kernel.Root(rootSpec(l.children)); err != nil {
		return err
	}
	if err := l.awaitRunning(); err != nil {
		return err
	}
	select {
	case sig := <-l.opts.Signals:
		return &signalled{sig}
	default:
		return nil
	}
}

// awaitRunning looks at the tree until the root and all of its children run.
func (l *life) awaitRunning() error {
	deadline := time.NewTimer(startPatience)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		root := l.kernel.Tree()
		running := root.State == "running" && len(root.Children) == len(l.children)
		waiting := ""
		for _, child := range root.Children {
			if child.State != "running" {
				running, waiting = false, child.Name
			}
		}
		if running {
			return nil
		}
		select {
		case <-look.C:
		case sig := <-l.opts.Signals:
			return &signalled{sig}
		case <-l.kernel.Done():
			return fmt.Errorf("the pod did not start: %w", l.kernel.Cause())
		case <-deadline.C:
			return fmt.Errorf("the pod did not start in %v: %s does not run; its log says why", startPatience, waiting)
		}
	}
}

// exited is told of each end of a generation. It must not block.
func (l *life) exited(e kernel.Exit) {
	if e.Abandoned {
		l.abandoned.Add(1)
	}
	if l.inspector != nil {
		l.inspector.Exited(e)
	}
}

// began is told of each start of a generation. It must not block.
func (l *life) began(s kernel.Started) {
	if l.inspector != nil {
		l.inspector.Started(s)
	}
}
