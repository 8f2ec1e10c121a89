package provider

import (
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// Bind implements [capability.Bound]: an instance is used on the turn that spawns its actor, before that has started.
func (s *Server) Bind(ref kernel.Ref) { s.speaks(ref) }

var _ capability.Bound = (*Server)(nil)
