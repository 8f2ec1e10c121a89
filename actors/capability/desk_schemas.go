package capability

import (
	"context"
	"slices"

	"github.com/acpod/acpod/runtime/kernel"
)

// schemaBytes is what the compiled schemas of one desk may cost. The one that was
// used longest ago goes first; a schema is compiled again when it is needed again.
const schemaBytes = 2 << 20

// schemas are the compiled schemas that a desk keeps for the tools that are listed
// now. The desk's account pays for them.
type schemas struct {
	held  []heldSchema // used last at the end
	bytes int64
}

type heldSchema struct {
	tool   *Tool
	schema *Schema
	lease  *kernel.Lease
}

// of is the compiled schema of a tool, or nil.
func (s *schemas) of(tool *Tool) *Schema {
	at := slices.IndexFunc(s.held, func(h heldSchema) bool { return h.tool == tool })
	if at < 0 {
		return nil
	}
	h := s.held[at]
	s.held = append(slices.Delete(s.held, at, at+1), h)
	return h.schema
}

// keep remembers a schema that was compiled, while there is room for it.
func (s *schemas) keep(account *kernel.Account, tool *Tool, schema *Schema) {
	if schema == nil || schema.cost.bytes > schemaBytes || s.of(tool) != nil {
		return
	}
	for s.bytes+schema.cost.bytes > schemaBytes {
		s.drop(0)
	}
	lease, err := account.Acquire(schema.cost.bytes)
	if err != nil {
		return
	}
	s.held = append(s.held, heldSchema{tool, schema, lease})
	s.bytes += schema.cost.bytes
}

func (s *schemas) drop(at int) {
	h := s.held[at]
	s.held = slices.Delete(s.held, at, at+1)
	s.bytes -= h.schema.cost.bytes
	h.lease.Release()
}

// dropUnless forgets the schemas of tools that are not listed any more.
func (s *schemas) dropUnless(listed func(*Tool) bool) {
	for at := len(s.held) - 1; at >= 0; at-- {
		if !listed(s.held[at].tool) {
			s.drop(at)
		}
	}
}

// compile compiles a schema in its turn: a stranger's schema decides how long that
// takes.
func compile(ctx context.Context, raw []byte) (*Schema, error) {
	select {
	case compileSlots <- struct{}{}:
		defer func() { <-compileSlots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := takeSlot(ctx); err != nil {
		return nil, err
	}
	defer giveSlot()
	return CompileSchema(raw), nil
}

func takeSlot(ctx context.Context) error {
	select {
	case checkSlots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func giveSlot() { <-checkSlots }
