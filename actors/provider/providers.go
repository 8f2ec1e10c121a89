package provider

import (
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// Providers is all servers of mcp.json.
type Providers struct {
	cfg     *Config
	servers []*Server // those that the supervisor runs
	sources []capability.Configured
	seats   *seats
}

// New makes the servers. Nothing runs before the [Providers.Spec] is spawned.
func New(cfg Config) *Providers {
	cfg = cfg.withDefaults()
	p := &Providers{cfg: &cfg, seats: &seats{most: cfg.Set.MaxConnected}}
	roots := rootsResult(cfg.Roots)
	for _, entry := range cfg.Set.Servers {
		if entry.PerSession {
			p.sources = append(p.sources, isolated{newServer(p.cfg, entry, roots, nil)})
			continue
		}
		s := newServer(p.cfg, entry, roots, p.seats)
		p.servers = append(p.servers, s)
		p.sources = append(p.sources, s)
	}
	return p
}

// Sources are the servers as every desk has them, in the order of mcp.json. The values are stable: they are there before
// anything runs.
func (p *Providers) Sources() []capability.Configured { return p.sources }

// Spec describes the supervisor, a child of the pod. Its children are stopped side by side.
func (p *Providers) Spec() kernel.Spec {
	return kernel.Spec{Name: "providers", Kind: "providers", Restart: kernel.Permanent, Scope: Scope, Limit: p.cfg.Bytes,
		Intensity: kernel.Intensity{Max: 100, Window: 10 * time.Second}, // each child has a backoff of its own
		New:       func() kernel.Behavior { return &supervisor{p: p, table: table{taken: map[*Server]bool{}}} }}
}

// supervisor starts one actor for each server and says who may be connected.
type supervisor struct {
	p     *Providers
	table table
}

// Start spawns the servers, which connect when they are used. Each can be asked from here on, also before its actor has started: who sees that
// the supervisor runs may rely on all of them.
func (v *supervisor) Start(c *kernel.Ctx) error {
	for _, s := range v.p.servers {
		ref, err := c.Spawn(s.spec(s.entry.Name))
		if err != nil {
			return fmt.Errorf("start server %s: %w", s.entry.Name, err)
		}
		s.Bind(ref)
	}
	return nil
}
