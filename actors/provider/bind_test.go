package provider

import (
	"fmt"
	"testing"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/actors/provider/mcpjson"
	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

// justStarted looks at the servers on the supervisor's own turn: none of their actors has run.
type justStarted struct {
	*supervisor
	look func(c *kernel.Ctx)
}

func (s justStarted) Start(c *kernel.Ctx) error {
	if err := s.supervisor.Start(c); err != nil {
		return err
	}
	s.look(c)
	return nil
}

// Whoever waits until the supervisor runs asks its servers next: a refusal would say that there are no tools.
func TestEveryServerCanBeAskedAsSoonAsTheirSupervisorRuns(t *testing.T) {
	cfg := Config{}
	for i := range 3 {
		cfg.Set.Servers = append(cfg.Set.Servers, mcpjson.Server{Name: fmt.Sprintf("shop%d", i), Kind: mcpjson.HTTP, URL: "http://127.0.0.1:1/mcp"})
	}
	p := New(cfg)
	sim := kerneltest.NewSim(1)
	k := kernel.New(kernel.Options{Scheduler: sim, Clock: sim})
	spec := p.Spec()
	behavior, asked := spec.New, 0
	spec.New = func() kernel.Behavior {
		return justStarted{behavior().(*supervisor), func(c *kernel.Ctx) {
			for _, src := range p.Sources() {
				ticket, err := src.Discover(c, capability.Searched)
				if err != nil {
					t.Errorf("%s: %v", src.Server(), err)
					continue
				}
				c.Cancel(ticket)
				asked++
			}
		}}
	}
	root, err := k.Root(spec)
	if err != nil {
		t.Fatal(err)
	}
	for sim.Step() {
	}
	root.Stop(kernel.ErrShutdown)
	if !sim.Run(10_000) || asked != len(cfg.Set.Servers) {
		t.Errorf("%d servers were asked", asked)
	}
}
