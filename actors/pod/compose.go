package pod

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/acpod/acpod/actors/audit"
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/capability/pins"
	"github.com/acpod/acpod/actors/connection"
	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/playground"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/provider"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/actors/session/store"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/process"
)

// life is one life of the pod: what was composed, and what ends it.
type life struct {
	opts      Options
	cfg       *config.Loaded
	log       *slog.Logger
	sockets   *sockets
	ready     readyFile
	guardian  *process.Guardian
	cgroups   *process.Cgroups
	parent    *process.Parent // nil where the system does not let us
	state     string          // the state folder, "" = there is none
	ledger    *fileLedger     // nil = there is no state folder
	keys      capability.Ledger
	records   *store.Files // of sessions; nil = they are in memory, or there are none
	kernel    *kernel.Kernel
	inspector *inspect.Inspector // nil: a command that nobody looks into
	flight    *inspect.Flight
	recorder  *audit.Recorder
	set       mcpjson.Set // what mcp.json says
	pins      *pins.Pins
	providers *provider.Providers
	schemas   *capability.Schemas
	calls     atomic.Int64 // in flight, of all desks
	// These are nil where the facade runs alone.
	tunnels   *tunnel.Stats
	admission *admission.Desk // who is in: sockets, handshakes, sessions, agents
	gateway   *connection.Gateway
	sessions  *session.Sessions
	inside    facade.Inside // for what comes to the facade another way than by HTTP

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
	l := &life{opts: o, cfg: o.Config, log: o.Log, ready: readyFile{path: o.ReadyFile}}
	var err error
	if o.FacadeAlone {
		l.cfg = facadeAlone(o.Config)
	}
	if l.sockets, err = openSockets(&l.cfg.Config, o.FacadeAlone); err != nil {
		return nil, err
	}
	err = boundDoorsHaveKeys(l.cfg, l.sockets)
	if err == nil {
		l.ready.clear()
		err = l.compose()
	}
	if err != nil {
		l.flight.Stop()
		l.ledger.close()
		l.closeRecords()
		l.sockets.close()
		return nil, err
	}
	return l, nil
}

// compose makes every part, and says in which order they start.
func (l *life) compose() error {
	l.set = readServers(l.cfg, l.opts)
	tellProblems(&l.set, l.opts)
	here := thisMachine(l.opts.Executable)
	here.servers, here.alone = len(l.set.Servers), l.opts.FacadeAlone
	l.promise = worstCase(&l.cfg.Config, here)
	l.runtimeLimit, l.limitFrom = keepMemory(l.log, l.promise, l.opts.Environ)
	desk, err := l.composeDesk()
	if err != nil {
		return err
	}
	facadeURL := ""
	if l.sockets.facade != nil {
		facadeURL = "http://" + l.sockets.facade.Addr().String() + "/mcp"
	}
	supervisor := &place{}
	if err := l.openBridge(); err != nil {
		return err
	}
	if !l.opts.FacadeAlone {
		if err := l.composeSessions(desk, facadeURL, supervisor); err != nil {
			return err
		}
	}
	if err := l.composeInsight(); err != nil {
		return err
	}
	if l.sockets.debug != nil {
		l.children = append(l.children, child{spec: l.debugSpec()})
	}
	l.children = append(l.children, child{spec: l.providers.Spec()})
	if l.gateway != nil {
		l.children = append(l.children, child{spec: l.gateway.Spec()}, child{spec: l.sessions.Spec(), at: supervisor})
	}
	if l.sockets.bridge != nil { // stopped behind the facade, whose answers it carries
		l.children = append(l.children, child{spec: l.bridgeSpec()})
	}
	if l.sockets.facade != nil {
		l.children = append(l.children, child{spec: l.facadeSpec(desk)})
	}
	if l.sockets.public != nil {
		l.children = append(l.children, child{spec: l.publicSpec()})
	}
	return nil
}

// composeDesk makes what stands behind every desk, and the template of one. Its first children are audit and pins; the providers are made, and
// where they stand in the order is the caller's to say.
func (l *life) composeDesk() (capability.DeskConfig, error) {
	l.openState()
	if err := l.guard(); err != nil {
		return capability.DeskConfig{}, err
	}
	l.kernel = kernel.New(kernel.Options{Limit: int64(l.cfg.Limits.PodBytes), Logger: l.log, OnExit: l.exited, OnStart: l.began})
	var auditSpec kernel.Spec
	l.recorder, auditSpec = audit.New(audit.Config{Path: l.cfg.Audit.Path, Log: l.log.Handler()})
	var err error
	if l.pins, err = pins.New(pins.Config{Dir: l.state, Off: l.cfg.MCP == nil || l.cfg.MCP.Pin == "off", Log: l.log}); err != nil {
		return capability.DeskConfig{}, err
	}
	l.providers = provider.New(providerConfig(l.cfg, l.set, l.opts, l.guardian))
	l.schemas = capability.NewSchemas()
	l.children = append(l.children, child{spec: auditSpec}, child{spec: l.pins.Spec()})
	shared := capability.DeskConfig{
		Audit: l.recorder, Open: &l.calls, Ledger: l.keys, Schemas: l.schemas, Roster: capability.NewRoster(l.providers.Sources()), Pins: l.pins,
	}
	if l.cfg.MCP == nil || l.cfg.MCP.Pin == "off" {
		shared.Pins = nil // else a desk would pin what nobody knows again by itself
	}
	return deskConfig(l.cfg, shared)
}

// composeSessions makes what clients of /acp need.
func (l *life) composeSessions(desk capability.DeskConfig, facadeURL string, supervisor *place) error {
	cfg, version := l.cfg, l.opts.Version
	sessionCfg, err := sessionConfig(cfg, agent.Config{
		Command:      agentCommand(cfg.Agent.Command, l.opts.Executable),
		Env:          agentEnv(cfg.Agent, l.opts.Environ),
		LineBytes:    int(cfg.Limits.AgentLineBytes),
		StartTimeout: cfg.Agent.StartTimeout,
		StopGrace:    cfg.Agent.StopGrace,
		Version:      version,
		Guardian:     l.guardian,
		Cgroups:      l.cgroups,
	}, desk, facadeURL, version)
	if err != nil {
		return err
	}
	l.tunnels, l.admission = &tunnel.Stats{}, admission.New()
	sessionCfg.TunnelStats, sessionCfg.Admission = l.tunnels, l.admission
	if cfg.Agent.Driver == string(session.DriverProcess) {
		deliveryCfg, err := deliveryConfig(cfg, l.opts, l.state, facadeURL)
		if err != nil {
			return err
		}
		if l.sockets.bridge == nil { // it could not be opened
			deliveryCfg.Bridge = delivery.BridgeCommand{}
		}
		sessionCfg.Proxy = l.proxies()
		sessionCfg.Delivery = delivery.New(deliveryCfg)
		tellDelivery(l.log, cfg, sessionCfg.Delivery)
	}
	sessionCfg.Store = l.openRecords()
	l.sessions = session.New(sessionCfg)
	connectionCfg := connectionConfig(cfg, version)
	connectionCfg.Admission = l.admission
	connectionCfg.Descends = process.NewPeers(l.guardian).Descends
	l.gateway = connection.New(connectionCfg, supervisor.find, l.sessions.Learned())
	return nil
}

// composeInsight makes what people look into the pod with. It needs everything that it counts.
func (l *life) composeInsight() error {
	var err error
	if l.flight, err = inspect.StartFlight(int64(l.cfg.Debug.FlightBytes)); err != nil {
		return fmt.Errorf("debug.flight_bytes: %w; set it to 0", err)
	}
	none := func() int { return 0 }
	c := counts{worst: l.promise.total(), calls: &l.calls, tokens: none, agents: none, orphans: l.parent.Strangers, schemas: l.schemas.Stats, providers: l.providers.Sources()}
	if l.sessions != nil {
		c.tokens, c.agents = l.sessions.Tokens().Live, l.sessions.Agents
	}
	l.inspector = inspect.New(inspect.Options{
		Walk: l.kernel.Walk, Counters: l.counters, Refusals: l.kernel.Refusals, Flight: l.flight, AuthKey: l.cfg.Secrets.Debug, Version: l.opts.Version,
		Figures: c.figures,
	})
	return nil
}

func (l *life) facadeSpec(desk capability.DeskConfig) kernel.Spec {
	var callers facade.Callers // nil: nobody has a token
	if l.sessions != nil {
		callers = l.sessions.Tokens()
	}
	c := facadeConfig(l.cfg, desk, callers, l.opts.Version)
	c.Socket, c.Inside = l.sockets.facade, &l.inside
	if l.opts.FacadeAlone {
		c.Connections = aloneConnections
	}
	return facade.Spec(c)
}

func (l *life) debugSpec() kernel.Spec {
	socket := l.sockets.debug
	return serverSpec(serverConfig{
		name: "debug", socket: socket, connections: debugConnections,
		handler: func(self kernel.Ref) http.Handler {
			return socket.Rules().Guard(l.inspector.Handler(), refusalsOf(self))
		},
		stopping: l.inspector.Close,
		attrs:    map[string]any{"keyed": l.cfg.Secrets.Debug != ""},
	})
}

func (l *life) publicSpec() kernel.Spec {
	cfg, socket := l.cfg, l.sockets.public
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
