package pod

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/capability/redact"
	"github.com/acpod/acpod/actors/connection"
	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/agent"
	"github.com/acpod/acpod/actors/tunnel"
)

// Each function turns sections of the configuration into one package's own Config. Nothing is decided here.

func connectionConfig(l *config.Loaded, version string) connection.Config {
	c := connection.Config{
		AllowedOrigins:           l.ACP.AllowedOrigins,
		Version:                  version,
		Trace:                    l.ACP.Trace,
		Keepalive:                l.ACP.Keepalive,
		PongTimeout:              l.ACP.PongTimeout,
		WriteTimeout:             l.ACP.WriteTimeout,
		InitializeTimeout:        l.ACP.InitializeTimeout,
		FrameBytes:               int64(l.Limits.FrameBytes),
		RequestBytes:             int64(l.Limits.RequestBytes),
		ConnectionBytes:          int64(l.Limits.ConnectionBytes),
		OutboundFrames:           l.Limits.OutboundFrames,
		OutboundBytes:            int64(l.Limits.OutboundBytes),
		Connections:              l.Limits.Connections,
		ConnectionsPerAddress:    l.Limits.ConnectionsPerAddress,
		Handshakes:               l.Limits.Handshakes,
		SessionsPerConnection:    l.Limits.SessionsPerConnection,
		PromptsPerConnection:     l.Limits.PromptsPerConnection,
		EstablishesPerConnection: l.Limits.EstablishesPerConnection,
		ServersPerSession:        l.Limits.ServersPerSession,
	}
	for _, key := range l.Secrets.ACP {
		c.Keys = append(c.Keys, connection.NewKey(key.Name, key.Key))
	}
	return c
}

// deskConfig is the template of every desk; its tag and view are set by who spawns it.
func deskConfig(l *config.Loaded, shared capability.DeskConfig) (capability.DeskConfig, error) {
	if l.MCP == nil {
		shared.Grants = capability.NewGrants(nil)
		return shared, nil
	}
	grants := make([]capability.Grant, len(l.MCP.ACPServers))
	for i, s := range l.MCP.ACPServers {
		grants[i] = capability.Grant{Name: s.Name, Tools: s.Tools}
	}
	shared.Grants = capability.NewGrants(grants)
	shared.Limits.Timeout = l.MCP.TunnelTimeout
	shared.Limits.CallMax = l.MCP.CallMax
	shared.Limits.OrphanWindow = max(l.MCP.OrphanWindow, time.Nanosecond) // to a desk, 0 is its default
	shared.Limits.ResultBytes = int64(l.Limits.ResultBytes)
	rules, err := redactRules(l)
	if err != nil {
		return shared, err
	}
	if rules != nil {
		shared.Redact = rules.Result
	}
	return shared, nil
}

// redactRules are the operator's; nil for none.
func redactRules(l *config.Loaded) (*redact.Rules, error) {
	if l.MCP == nil {
		return nil, nil
	}
	rules, err := redact.Compile(l.MCP.Redact)
	if bad, ok := errors.AsType[*redact.PatternError](err); ok {
		return nil, &config.Error{At: l.Origin("mcp.redact"), Key: fmt.Sprintf("mcp.redact[%d]", bad.Index), Problem: bad.Cause.Error()}
	}
	return rules, err
}

// Validate judges what the configuration's own checks cannot: they know no actor.
func Validate(l *config.Loaded) error {
	_, err := redactRules(l)
	return err
}

func sessionConfig(l *config.Loaded, process agent.Config, desk capability.DeskConfig, facadeURL, version string) (session.Config, error) {
	workdir, err := filepath.Abs(l.Agent.Workdir)
	if err != nil {
		return session.Config{}, err
	}
	c := session.Config{
		Driver:            session.Driver(l.Agent.Driver),
		Agent:             process,
		Workdir:           workdir,
		FacadeURL:         facadeURL,
		ForwardMeta:       l.Agent.ForwardMeta,
		Permissions:       session.Decision(l.Agent.Permissions),
		PermissionTimeout: l.Agent.PermissionTimeout,
		Modes:             l.Agent.Modes,
		Queue:             l.Agent.Queue,
		MaxSessions:       l.Agent.MaxSessions,
		Sessions:          l.Limits.Sessions,
		SessionsPerKey:    l.Limits.SessionsPerKey,
		SessionBytes:      int64(l.Limits.SessionBytes),
		Servers:           l.Limits.ServersPerSession,
		SessionTTL:        l.Agent.SessionTTL,
		Retention:         l.State.Retention,
		NewTimeout:        l.Agent.NewTimeout,
		TurnIdleTimeout:   l.Agent.TurnIdleTimeout,
		CancelTimeout:     l.Agent.CancelTimeout,
		Desk:              desk,
		Tunnel:            tunnel.Limits{Tools: l.Limits.ToolsPerServer, SchemaBytes: int(l.Limits.ToolSchemaBytes)},
		Version:           version,
	}
	if l.MCP != nil {
		c.CallMax = l.MCP.CallMax
	}
	for _, rule := range l.Agent.Permission {
		c.PermissionRules = append(c.PermissionRules, session.PermissionRule{Server: rule.Server, Tool: rule.Tool, Decision: session.Decision(rule.Decision)})
	}
	return c, nil
}

func facadeConfig(l *config.Loaded, desk capability.DeskConfig, callers facade.Callers, version string) facade.Config {
	c := facade.Config{
		Callers:           callers,
		Desk:              desk,
		Version:           version,
		ClosedToAnonymous: !l.MCP.Anonymous,
		Direct:            l.MCP.DirectTools,
		RequestBytes:      int64(l.Limits.RequestBytes),
		WriteTimeout:      l.ACP.WriteTimeout,
		Connections:       facadeConnections(l.Limits),
	}
	if l.Secrets.MCP != "" {
		c.Key = facade.KeySum(l.Secrets.MCP)
	}
	return c
}
