package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/capability"
)

// operator is the servers of mcp.json behind the whole pipeline, in the process of one command: the same kernel, providers, pins, audit and desk as
// in a pod, and no listener. No pod has to run, and one that runs is not touched.
type operator struct {
	*life
	desk *place
	view *atomic.Pointer[capability.View]
}

// operate starts all of it, runs do and ends all of it. What do starts has ended when it returns. What is wrong with mcp.json
// is noted, unless notes is nil: where do tells it, or where it is beside
// the point.
func operate(ctx context.Context, o Options, notes io.Writer, do func(context.Context, *operator) error) error {
	l := &life{opts: o, cfg: facadeAlone(o.Config), log: o.Log}
	defer func() { l.ledger.close() }()
	l.set = readServers(l.cfg, o)
	if notes != nil {
		for _, p := range serverProblems(&l.set, o.Environ) {
			_, _ = fmt.Fprintf(notes, "warning: %s\n", p.Error())
		}
	}
	desk, err := l.composeDesk()
	if err != nil {
		return err
	}
	op := &operator{life: l, desk: &place{}, view: new(atomic.Pointer[capability.View])}
	desk.Tag, desk.Owner, desk.View = "-", "-", op.view
	desk.Ledger = nil // nobody could repeat a call of this process under its key
	l.children = append(l.children, child{spec: l.providers.Spec()}, child{spec: capability.DeskSpec("desk", desk), at: op.desk})
	if err = l.begin(); err == nil {
		err = do(ctx, op)
	}
	return errors.Join(err, l.stop(context.WithoutCancel(ctx)))
}

// caller is whoever runs the command: nobody's session.
func (op *operator) caller() capability.Caller {
	return capability.Caller{Desk: op.desk.find(), View: op.view, Tag: "-", Account: op.kernel.Account(), Audit: op.recorder}
}

// settle has every server connect and list, and waits for those that take their time until patience ends.
func (op *operator) settle(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		_, lease, err := capability.Search(ctx, op.caller(), capability.Query{Names: true, Limit: 1})
		lease.Release()
		if err != nil {
			return err
		}
		view := op.view.Load()
		if view == nil || len(view.Pending()) == 0 || !time.Now().Before(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// deskView is what the desk has published last; it is there once a search has ended.
func (op *operator) deskView() *capability.View {
	if v := op.view.Load(); v != nil {
		return v
	}
	return new(capability.View)
}
