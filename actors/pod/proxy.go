package pod

import (
	"github.com/acpod/acpod/actors/facade"
	"github.com/acpod/acpod/actors/pod/config"
	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/session/delivery"
	"github.com/acpod/acpod/runtime/kernel"
)

// proxies makes the addresses that sessions have of their own with agent.delivery = "proxy"; nil with any other.
func (l *life) proxies() session.Proxy {
	if l.cfg.MCP == nil || delivery.Mode(l.cfg.Agent.Delivery) != delivery.Proxy {
		return nil
	}
	cfg, version, places := l.cfg, l.opts.Version, facade.NewProxyPlaces(proxyPlaces(&l.cfg.Config))
	return func(of session.ProxyOf) kernel.Spec {
		return facade.ProxySpec(facade.ProxyConfig{
			Callers: l.sessions.Tokens(), Of: of.View, Desk: of.Desk, Ready: of.Ready, Places: places,
			Version: version, RequestBytes: int64(cfg.Limits.RequestBytes), WriteTimeout: cfg.ACP.WriteTimeout,
		})
	}
}

// proxyPlaces is how many proxies there may be: one a running agent, and some of sessions whose agent has ended and is not back yet.
func proxyPlaces(c *config.Config) int { return 8 + 2*c.Agent.MaxSessions }
