package pod

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/acpod/acpod/runtime/inspect"
	"github.com/acpod/acpod/runtime/kernel"
)

// rootName is the first part of every path.
const rootName = "pod"

// rootSpec is the one root. It has no state: it spawns its children in order and lets the kernel restart them. They stop one
// by one, the last first.
func rootSpec(children []child) kernel.Spec {
	return kernel.Spec{Name: rootName, Kind: rootName, Ordered: true, New: func() kernel.Behavior { return &root{children: children} }}
}

// child is one part of the pod. Who has to find its actor keeps at: the slot of the first generation, which leads to the current one.
type child struct {
	spec kernel.Spec
	at   *place
}

// place tells where an actor is, from any goroutine.
type place struct{ ref atomic.Pointer[kernel.Ref] }

// find gives the living generation, or the zero Ref before the first has been spawned.
func (p *place) find() kernel.Ref {
	if ref := p.ref.Load(); ref != nil {
		return ref.Current()
	}
	return kernel.Ref{}
}

type root struct{ children []child }

// Start implements kernel.Starter.
func (r *root) Start(c *kernel.Ctx) error {
	for _, child := range r.children {
		ref, err := c.Spawn(child.spec)
		if err != nil {
			return fmt.Errorf("start %s: %w", child.spec.Name, err)
		}
		if child.at != nil {
			child.at.ref.Store(&ref)
		}
	}
	return nil
}

// Receive implements kernel.Behavior. A permanent child that does not come back leaves a pod that only looks alive.
func (r *root) Receive(_ *kernel.Ctx, m kernel.Msg) error {
	if m, ok := m.(kernel.Exited); ok && m.Next.IsZero() {
		return fmt.Errorf("%s ended for good: %w", m.Ref.Name(), m.Cause)
	}
	return nil
}

// Stop implements kernel.Stopper: when the root gives up, the tree as it was is the last thing that the log gets.
func (r *root) Stop(c *kernel.Ctx, cause error) {
	if errors.Is(cause, kernel.ErrShutdown) {
		return
	}
	c.Log().Error("the pod gives up", "cause", kernel.Escape(cause.Error(), 500), "tree", inspect.Snapshot(c.Kernel().Walk, c.Now()))
}
