package pod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/audit"
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/connection"
	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/playground"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
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

// life is one life of the pod: what was composed, and what ends it.
type life struct {
	opts      Options
	log       *slog.Logger
	sockets   *sockets
	ready     readyFile
	guardian  *process.Guardian
	ledger    *fileLedger // nil = there is no state folder
	keys      capability.Ledger
	kernel    *kernel.Kernel
	inspector *inspect.Inspector
	flight    *inspect.Flight
	recorder  *audit.Recorder
	tunnels   *tunnel.Stats
	admission *admission.Desk // who is in: sockets, handshakes, sessions, agents
	gateway   *connection.Gateway
	sessions  *session.Sessions
	phase     phase
	abandoned atomic.Int64
	promise   promise
	// The runtime's memory limit, and whose it is.
	runtimeLimit int64
	limitFrom    string
	children     []child
}

// prepare opens the sockets and composes everything; no actor runs yet. On an error nothing listens and nothing runs.
func prepare(o Options) (*life, error) {
	l := &life{opts: o, log: o.Log, ready: readyFile{path: o.ReadyFile}}
	var err error
	if l.sockets, err = openSockets(&o.Config.Config); err != nil {
		return nil, err
	}
	err = boundDoorsHaveKeys(o.Config, l.sockets)
	if err == nil {
		l.ready.clear()
		err = l.compose()
	}
	if err != nil {
		l.flight.Stop()
		l.ledger.close()
		l.sockets.close()
		return nil, err
	}
	return l, nil
}

func (l *life) compose() error {
	cfg, version := l.opts.Config, l.opts.Version
	l.promise = worstCase(&cfg.Config, thisMachine(l.opts.Executable))
	l.runtimeLimit, l.limitFrom = keepMemory(l.log, l.promise, l.opts.Environ)
	state := l.openState()
	if err := l.guard(state); err != nil {
		return err
	}
	l.kernel = kernel.New(kernel.Options{Limit: int64(cfg.Limits.PodBytes), Logger: l.log, OnExit: l.exited, OnStart: func(s kernel.Started) { l.inspector.Started(s) }})

	l.tunnels = &tunnel.Stats{}
	var auditSpec kernel.Spec
	l.recorder, auditSpec = audit.New(audit.Config{Path: cfg.Audit.Path, Log: l.log.Handler()})
	calls := &atomic.Int64{}
	schemas := capability.NewSchemas()
	shared := capability.DeskConfig{Audit: l.recorder, Open: calls, Ledger: l.keys, Schemas: schemas}
	desk := deskConfig(cfg, shared)

	facadeURL := ""
	if l.sockets.facade != nil {
		facadeURL = "http://" + l.sockets.facade.Addr().String() + "/mcp"
	}
	sessionCfg, err := sessionConfig(cfg, agent.Config{
		Command:      agentCommand(cfg.Agent.Command, l.opts.Executable),
		Env:          agentEnv(cfg.Agent, l.opts.Environ),
		LineBytes:    int(cfg.Limits.AgentLineBytes),
		StartTimeout: cfg.Agent.StartTimeout,
		StopGrace:    cfg.Agent.StopGrace,
		Version:      version,
		Guardian:     l.guardian,
	}, desk, facadeURL, version)
	if err != nil {
		return err
	}
	l.admission = admission.New()
	sessionCfg.TunnelStats, sessionCfg.Admission = l.tunnels, l.admission
	l.sessions = session.New(sessionCfg)
	if l.flight, err = inspect.StartFlight(int64(cfg.Debug.FlightBytes)); err != nil {
		return fmt.Errorf("debug.flight_bytes: %w; set it to 0", err)
	}
	supervisor := &place{}
	connectionCfg := connectionConfig(cfg, version)
	connectionCfg.Admission = l.admission
	l.gateway = connection.New(connectionCfg, supervisor.find, l.sessions.Learned())
	l.inspector = inspect.New(inspect.Options{
		Walk: l.kernel.Walk, Counters: l.counters, Refusals: l.kernel.Refusals, Flight: l.flight, AuthKey: cfg.Secrets.Debug, Version: version,
		Figures: counts{worst: l.promise.total(), calls: calls, tokens: l.sessions.Tokens().Live, agents: l.sessions.Agents, schemas: schemas.Stats}.figures,
	})

	l.children = append(l.children, child{spec: auditSpec})
	if l.sockets.debug != nil {
		l.children = append(l.children, child{spec: l.debugSpec()})
	}
	l.children = append(l.children, child{spec: l.gateway.Spec()}, child{spec: l.sessions.Spec(), at: supervisor})
	if l.sockets.facade != nil {
		facadeCfg := facadeConfig(cfg, desk, l.sessions.Tokens(), version)
		facadeCfg.Socket = l.sockets.facade
		l.children = append(l.children, child{spec: facade.Spec(facadeCfg)})
	}
	l.children = append(l.children, child{spec: l.publicSpec()})
	return nil
}

// openState makes the state folder and opens what is kept in it. A pod without one runs, says what it cannot do, and refuses that.
func (l *life) openState() string {
	dir := stateDir(l.opts.Config.State, l.opts.Environ)
	if dir == "" {
		l.keys = noLedger{errNoState}
		l.log.Warn("no state folder: neither HOME nor XDG_STATE_HOME is set; calls with an idempotency key are refused, process groups are forgotten with the pod; set state.dir")
		return ""
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		l.ledger, err = openLedger(dir, l.opts.Config.State.Retention, time.Now)
	}
	if err != nil {
		l.keys = noLedger{err}
		l.log.Warn("the state folder cannot be used: calls with an idempotency key are refused, process groups are forgotten with the pod; set state.dir to a writable folder", "error", err)
		return ""
	}
	l.keys = l.ledger
	return dir
}

// guard ends what an earlier pod left and starts the guardian, before any child process. state may be "".
func (l *life) guard(state string) error {
	records := ""
	if state != "" {
		records = filepath.Join(state, "processes")
		if err := os.MkdirAll(records, 0o700); err != nil {
			return fmt.Errorf("state.dir: %w; make it writable", err)
		}
		swept, err := process.Sweep(records)
		if err != nil {
			l.log.Warn("processes of an earlier pod could not all be ended", "error", err)
		}
		if len(swept) > 0 {
			l.log.Warn("ended processes that an earlier pod had left", "groups", len(swept))
		}
	}
	guardian, err := process.StartGuardian(process.GuardianOptions{
		Command: []string{l.opts.Executable, "guardian"}, Env: guardianEnv(l.opts.Environ), Records: records, Log: l.log,
	})
	l.guardian = guardian
	return err
}

func (l *life) debugSpec() kernel.Spec {
	socket := l.sockets.debug
	return serverSpec(serverConfig{
		name: "debug", socket: socket, connections: debugConnections,
		handler: func(self kernel.Ref) http.Handler {
			return socket.Rules().Guard(l.inspector.Handler(), refusalsOf(self))
		},
		stopping: l.inspector.Close,
		attrs:    map[string]any{"keyed": l.opts.Config.Secrets.Debug != ""},
	})
}

func (l *life) publicSpec() kernel.Spec {
	cfg, socket := l.opts.Config, l.sockets.public
	var page http.Handler
	if cfg.ACP.Playground && socket.Rules().Loopback {
		page = playground.Handler(playground.Options{Keyed: len(cfg.Secrets.ACP) > 0})
	}
	return serverSpec(serverConfig{
		name: "public", socket: socket, writeTimeout: cfg.ACP.WriteTimeout,
		connections: publicConnections(cfg.Limits),
		handler: func(self kernel.Ref) http.Handler {
			return publicHandler(self, socket.Rules(), l.gateway, page, &l.phase)
		},
		attrs: map[string]any{"keyed": len(cfg.Secrets.ACP) > 0, "playground": page != nil},
	})
}

// start runs the root and returns when every child runs. Then the addresses are told.
func (l *life) start() error {
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
	}
	l.phase.ready.Store(true)
	tell(l.log, l.opts.Config)
	at := l.sockets.addresses()
	l.log.Info("listening", "listener", "public", "addr", at.Public)
	if at.Facade != "" {
		l.log.Info("listening", "listener", "facade", "addr", at.Facade, "transport", "stateless")
	}
	if at.Debug != "" {
		l.log.Info("listening", "listener", "debug", "addr", at.Debug)
	}
	l.log.Info("memory", "bytes_limit", int64(l.opts.Config.Limits.PodBytes), "worst_case_bytes", l.promise.total(),
		"runtime_limit", l.runtimeLimit, "runtime_limit_from", l.limitFrom)
	return l.ready.write(at)
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
	l.inspector.Exited(e)
}
