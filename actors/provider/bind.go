package provider

import (
	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// Bind implements [capability.Bound]: a server is used as soon as its actor is spawned, before that has started.
func (s *Server) Bind(ref kernel.Ref) { s.speaks(ref) }

var _ capability.Bound = (*Server)(nil)
