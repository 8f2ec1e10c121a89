package provider

import (
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// actor is one generation of a server.
type actor struct{ s *Server }

func newActor(s *Server) *actor { return &actor{s: s} }

// Start connects nothing yet.
func (a *actor) Start(c *kernel.Ctx) error {
	a.s.speaks(c.Self())
	return nil
}

// Receive never waits.
func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case discover:
		c.Question().Answer(capability.Discovered{}, nil)
	case capability.Call:
		m.Bytes.Release()
		c.Question().Fail(&capability.NotSent{Cause: capability.ErrDetached})
	}
	return nil
}
