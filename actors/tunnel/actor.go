package tunnel

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// actor is one generation of a tunnel. It does one thing at a time beside its
// calls: a step of the handshake, or a page of the list.
type actor struct {
	t       *Tunnel
	codec   acp.Codec
	opening *opening
	owed    *kernel.Obligation
	target  string // connection id, or server id in generation C
	step    step
	listing *listing // a tools/list that runs
	again   bool     // the list changed while it was being fetched
	relist  func()   // takes back the timer of the next attempt at a list that could not be had
	calls   calls

	unlistings int // attempts in a row at a changed list that came to nothing
}

func newActor(t *Tunnel) *actor { return &actor{t: t, calls: newCalls()} }

// Messages of the actor to itself.
type (
	socketGone struct{}
	stepOver   struct{ ticket kernel.Ticket }
	callOver   struct{ ticket kernel.Ticket }
	relistDue  struct{} // a changed list is asked for again
)

// Start begins to connect.
func (a *actor) Start(c *kernel.Ctx) error {
	self := c.Self()
	a.t.ref.Store(&self)
	a.t.speaks(self.Gen())
	d := a.t.params.Declared
	c.Attr("server", d.Name)
	c.Attr("attach", a.t.params.Attach)
	if err := pay(c); err != nil {
		c.Refuse(string(noRoom))
		return a.fail(c, "there is no room for it: "+shown(err))
	}
	gone := a.t.params.Carrier.Gone()
	c.Go("socket", func(ctx context.Context) kernel.Msg {
		select {
		case <-gone:
			return socketGone{}
		case <-ctx.Done():
			return nil
		}
	})
	if a.codec = acp.CodecFor(d); a.codec == nil {
		return a.fail(c, "it is not declared as served over this socket")
	}
	a.early(c)
	return a.connect(c)
}

func (a *actor) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case capability.Call:
		a.call(c, m)
	case kernel.Answer:
		return a.answered(c, m)
	case kernel.Cancelled:
		a.cancelled(c, m.Question)
	case Inbound:
		a.inbound(c, m)
	case callOver:
		a.timeout(c, m.ticket)
	case stepOver:
		if s := a.step; s.ticket == m.ticket {
			a.step = step{}
			c.Cancel(s.ticket)
			return s.then(c, nil, fmt.Errorf("no answer within %v", a.t.limits.Connect))
		}
	case relistDue:
		return a.list(c)
	case socketGone:
		a.calls.failAll(c, errGone)
		a.publish(c, capability.Detached, Status{State: Failed, Reason: "its client's socket is gone"}, nil)
		return kernel.ErrDone
	default:
		c.Refuse("message")
		c.Log().Warn("dropped a message that a tunnel does not know", "type", fmt.Sprintf("%T", m))
	}
	return nil
}

// Stop says why the tunnel is no more. After a crash it is about to come back.
func (a *actor) Stop(c *kernel.Ctx, cause error) {
	a.calls.failAll(c, fmt.Errorf("%w: the tunnel ended", capability.ErrDetached))
	switch now := a.t.Status().State; {
	case errors.Is(cause, ErrEvicted), errors.Is(cause, ErrStoodDown), errors.Is(cause, ErrTakenOver):
		a.publish(c, capability.Detached, Status{State: Superseded, Reason: reasonOf(cause)}, nil)
	case errors.Is(cause, ErrWithdrawn):
		a.publish(c, capability.Detached, Status{State: Withdrawn, Reason: reasonOf(cause)}, nil)
	case now != Connecting && now != Ready:
		// it said why before it ended
	case errors.Is(cause, kernel.ErrStopped), errors.Is(cause, kernel.ErrShutdown), c.Parent().Cause() != nil:
		a.publish(c, capability.Detached, Status{State: Withdrawn, Reason: "the session ended"}, nil)
	default:
		a.publish(c, capability.Connecting, Status{State: Connecting, Reason: "it starts again after a fault of the pod"}, nil)
	}
}

// reasonOf is the innermost text of a cause with which a session stops a tunnel.
func reasonOf(cause error) string {
	for _, known := range []error{ErrEvicted, ErrStoodDown, ErrTakenOver, ErrWithdrawn} {
		if errors.Is(cause, known) {
			return known.Error()
		}
	}
	return cause.Error()
}

var errGone = fmt.Errorf("%w: %w", capability.ErrDetached, ErrGone)

// Free gives back the pages of a list that never became whole.
func (a *actor) Free(error) {
	if a.listing != nil {
		a.listing.release()
	}
}

// publish makes a state known: to whoever reads the snapshot, then to the desk
// and to the session. A nil list keeps the one that is there. A generation that was
// abandoned and whose tunnel was given up, or goes on without it, says nothing more.
func (a *actor) publish(c *kernel.Ctx, state capability.State, status Status, list *capability.List) {
	next, ok := a.t.show(c.Self().Gen(), state, status, list)
	if !ok {
		c.Refuse("abandoned")
		return
	}
	c.Attr("state", string(status.State))
	c.Attr("reason", status.Reason)
	c.Attr("tools", len(next.List.All()))
	err := a.t.params.Desk.Current().Signal(capability.Changed{Source: a.t})
	if errors.Is(err, kernel.ErrStopped) {
		next.List.Release() // the desk that would have kept it has ended
	}
	a.told(c, err)
	a.told(c, c.Parent().Signal(Changed{Tunnel: a.t, Status: status}))
}

// told counts a signal that found no room. One to somebody who has ended is moot.
func (a *actor) told(c *kernel.Ctx, err error) {
	if err != nil && !errors.Is(err, kernel.ErrStopped) {
		c.Refuse("signal")
		c.Log().Warn("a change of a tunnel was not told", "error", err)
	}
}

// fail ends the tunnel cleanly. What was opened is closed by the release.
func (a *actor) fail(c *kernel.Ctx, why string) error {
	c.Log().Info("a tunnel failed", "session", a.t.params.Tag, "server", jsonrpc.Show(a.t.Server()), "reason", why)
	a.publish(c, capability.Failed, Status{State: Failed, Reason: why}, nil)
	return kernel.ErrDone
}

// next is a new number for a request id and a progress token. No two generations of
// a tunnel use one twice.
func (a *actor) next() uint64 { return a.t.sequence.Add(1) }

// requestID is the inner request id of generation C: unique on the socket, because
// attach numbers are.
func (a *actor) requestID(n uint64) string {
	return "acpod-" + strconv.FormatUint(a.t.params.Attach, 10) + "-" + strconv.FormatUint(n, 10)
}

// ask sends one inner request.
func (a *actor) ask(c *kernel.Ctx, n uint64, method string, params []byte) (kernel.Ticket, error) {
	out, params, err := a.inquiry(n, params)
	if err != nil {
		return kernel.Ticket{}, err
	}
	out.Method, out.Params = a.codec.Message(a.target, out.RequestID, method, params)
	return a.t.params.Carrier.Request(c, out)
}

// behindArguments closes the params of a tools/call and the message that they are in.
var behindArguments = []byte("}}")

// askCall sends one tools/call. The arguments are no copy: they are written from where
// the caller's request lies, and the lease goes with them.
func (a *actor) askCall(c *kernel.Ctx, n uint64, tool string, arguments []byte, lease *kernel.Lease) (kernel.Ticket, error) {
	out, params, err := a.inquiry(n, mcp.CallParams(tool, nil, jsonrpc.IntID(int64(n))))
	if err != nil {
		return kernel.Ticket{}, err
	}
	method, head := a.codec.Head(a.target, out.RequestID, mcp.MethodToolsCall)
	out.Method, out.Params = method, append(head, mcp.ArgumentsHead(params)...)
	out.Body, out.Tail, out.Bytes = arguments, behindArguments, lease
	return a.t.params.Carrier.Request(c, out)
}

// inquiry is what all inner requests of this generation share, and params as it has them.
func (a *actor) inquiry(n uint64, params []byte) (Out, []byte, error) {
	out := Out{Stream: a.t.stream, Cancel: a.codec.CancelFrames}
	if !a.codec.Stateless() {
		return out, params, nil
	}
	out.RequestID = a.requestID(n)
	params, err := mcp.ModernParams(params, a.t.params.Version)
	return out, params, err
}

// inner takes the inner result out of an answer. The lease stays the answer's.
func (a *actor) inner(m kernel.Answer) ([]byte, error) {
	if m.Err != nil {
		return nil, m.Err
	}
	reply, ok := m.Msg.(Reply)
	if !ok {
		return nil, fmt.Errorf("the carrier answered with %T", m.Msg)
	}
	result, fault := a.codec.Unwrap(reply.Result)
	if fault != nil {
		return nil, fault
	}
	return result, nil
}
