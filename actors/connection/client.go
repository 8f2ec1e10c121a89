package connection

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/acpod/acpod/actors/session"
	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// client is the connection as sessions and tunnels see it. It outlives the actor: then everything it does is
// tunnel.ErrGone.
type client struct {
	rank     uint64
	self     kernel.Ref
	key      string
	loopback bool
	account  *kernel.Account
	cfg      *Config
	stats    *counters

	hello    atomic.Pointer[hello]
	out      *outbox
	book     *ledger
	refused  refusals
	spare    atomic.Int64 // bytes of the connection's own reserve that are in use by errors
	dirty    atomic.Bool  // a refresh of the tree is on its way
	gone     chan struct{}
	goneOnce sync.Once
}

// hello is what a client said of itself in its first initialize. It does not change.
type hello struct {
	secret       [32]byte
	servers      []byte
	capabilities []byte
}

var _ session.Client = (*client)(nil)

// spareBytes is how much of a connection's reserve answers to refused frames may use when the account is full.
const spareBytes = 8 << 10

func newClient(self kernel.Ref, s *seat, cfg *Config, stats *counters) *client {
	cl := &client{
		rank: s.number, self: self, key: s.identity, loopback: s.loopback, account: s.account, cfg: cfg, stats: stats,
		out: newOutbox(cfg), book: newLedger(), gone: make(chan struct{}),
	}
	cl.out.exceeded = cl.exceeded
	return cl
}

// exceeded has the actor look at the client again when the window is over.
func (cl *client) exceeded(w window) {
	if err := cl.self.Signal(w); err != nil && !errors.Is(err, kernel.ErrStopped) {
		cl.self.Stop(&Exit{Reason: SlowReader, Err: w.full})
	}
}

// depart marks the end: nothing is sent any more.
func (cl *client) depart() { cl.goneOnce.Do(func() { close(cl.gone) }) }

// departed tells the end from the moment on that Gone does; the ledger is closed a little later, by the actor.
func (cl *client) departed() bool {
	select {
	case <-cl.gone:
		return true
	default:
		return false
	}
}

func (cl *client) Ref() kernel.Ref       { return cl.self }
func (cl *client) Rank() uint64          { return cl.rank }
func (cl *client) Key() string           { return cl.key }
func (cl *client) Loopback() bool        { return cl.loopback }
func (cl *client) Gone() <-chan struct{} { return cl.gone }

func (cl *client) Secret() [32]byte {
	if h := cl.hello.Load(); h != nil {
		return h.secret
	}
	return [32]byte{}
}

// Capabilities implements session.Client.
func (cl *client) Capabilities() []byte {
	if h := cl.hello.Load(); h != nil {
		return h.capabilities
	}
	return nil
}

// RequestID implements session.Client.
func (cl *client) RequestID(req uint64) (jsonrpc.ID, bool) { return cl.book.requestID(req) }

// isGone makes the end of the actor or its account a tunnel.ErrGone.
func isGone(err error) error {
	if errors.Is(err, kernel.ErrStopped) {
		return tunnel.ErrGone
	}
	return err
}

// Offer implements session.Client.
func (cl *client) Offer(name string, frame []byte, lease *kernel.Lease, done func(bool)) error {
	if cl.departed() {
		return tunnel.ErrGone
	}
	f := &outFrame{stream: name, parts: [3][]byte{frame}, body: lease, done: done, patient: true}
	payer := lease.Account()
	var err error
	if f.lease, err = cl.account.Acquire(f.own()); err != nil {
		return isGone(err)
	}
	if err = lease.Move(cl.account); err != nil {
		f.lease.Release()
		return isGone(err)
	}
	if err = cl.out.push(f); err == nil {
		return nil
	}
	f.lease.Release()
	if payer != nil && lease.Move(payer) != nil {
		cl.self.CountRefusal("lease_stays") // the old payer is full or gone: we pay until the caller frees it
	}
	return err
}

// Respond implements session.Client.
func (cl *client) Respond(name string, req uint64, result []byte, lease *kernel.Lease, err *jsonrpc.Error) {
	if err == nil {
		cl.book.opened(req, name)
	}
	r := cl.book.settle(req)
	if r == nil {
		lease.Release()
		if !cl.departed() {
			cl.self.CountRefusal("answered_twice")
		}
		return
	}
	cl.conclude(name, r, result, lease, err)
}

// conclude sends the answer to a request that was taken out of the ledger. A small answer is paid by the reserve of its
// request, a large one by its own lease; one that finds no room becomes the refusal of what was full.
func (cl *client) conclude(name string, r *openRequest, result []byte, lease *kernel.Lease, e *jsonrpc.Error) {
	f := &outFrame{stream: name, answer: true}
	if r.class == prompt {
		f.prompted = r.id
	}
	if e == nil {
		f.parts = [3][]byte{appendResultHead(nil, r.id), orNull(result), closingBrace}
	} else {
		f.parts[0] = jsonrpc.AppendError(nil, r.id, e)
		lease.Release()
		lease = nil
	}
	if f.own() > answerReserve {
		var err error
		if lease == nil {
			lease, err = cl.account.Acquire(f.size())
		} else {
			err = lease.Move(cl.account)
		}
		if err != nil {
			lease.Release()
			lease, e = nil, overloadOf(err)
			f.parts = [3][]byte{jsonrpc.AppendError(nil, r.id, e)}
		}
	}
	if f.own() <= answerReserve && lease != nil {
		f.parts[1] = append([]byte(nil), f.parts[1]...) // it must not keep alive what it does not pay for
		lease.Release()
		lease = nil
	}
	f.lease, f.body = r.lease, lease
	f.lease.Shrink(f.own())
	if cl.out.push(f) != nil {
		f.end(false) // the socket is gone, which is an answer too
	}
	if e != nil {
		cl.refuse(e)
	}
}

var closingBrace = []byte{'}'}

func appendResultHead(dst []byte, id jsonrpc.ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = id.Append(dst)
	return append(dst, `,"result":`...)
}

func orNull(result []byte) []byte {
	if result == nil {
		return []byte("null")
	}
	return result
}

// overloadOf is the contract's refusal for what an account or a queue said.
func overloadOf(err error) *jsonrpc.Error {
	var o *kernel.Overloaded
	if !errors.As(err, &o) {
		return jsonrpc.InternalError(jsonrpc.ReasonInternal, "the pod cannot take this now")
	}
	return jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: o.Scope, Limit: o.Limit, Used: o.Used, Size: o.Size, RetryAfter: o.RetryAfter})
}

// deny answers a frame that got no place in the ledger, on the control lane.
func (cl *client) deny(id jsonrpc.ID, e *jsonrpc.Error) {
	cl.send(jsonrpc.AppendError(nil, id, e))
	cl.refuse(e)
}

// send puts a small frame of the pod's own into the control lane. When the account is full the connection's reserve pays; when
// that is used up as well, or the lane is full, the peer does not read what it brings about, and the connection ends.
func (cl *client) send(frame []byte) {
	f := &outFrame{parts: [3][]byte{frame}}
	n := f.own()
	lease, err := cl.account.Acquire(n)
	switch {
	case err == nil:
		f.lease = lease
	case errors.Is(err, kernel.ErrStopped):
		return
	case cl.spare.Add(n) <= spareBytes:
		f.done = func(bool) { cl.spare.Add(-n) }
	default:
		cl.spare.Add(-n)
		cl.self.Stop(&Exit{Reason: SlowReader, Err: err})
		return
	}
	if err := cl.out.push(f); err != nil {
		f.end(false)
		if !errors.Is(err, tunnel.ErrGone) {
			cl.self.Stop(&Exit{Reason: SlowReader, Err: err})
		}
	}
}

// Call implements session.Client.
func (cl *client) Call(c *kernel.Ctx, name, method string, params []byte) (kernel.Ticket, error) {
	return cl.Request(c, tunnel.Out{Stream: name, Method: method, Params: params, Cancel: cancelRequest})
}

func cancelRequest(outer jsonrpc.ID) []acp.Notification {
	return []acp.Notification{acp.CancelRequest(outer)}
}

// Request implements tunnel.Carrier. The frame gets its place in the stream here, on the caller's goroutine, so that it
// stays in order with what the caller sends otherwise; its question goes to the actor, which is told before the frame can be
// written, and so before an answer can come.
func (cl *client) Request(c *kernel.Ctx, out tunnel.Out) (kernel.Ticket, error) {
	a := &ask{
		stream: out.Stream, connect: isConnect(out.Method), requestID: out.RequestID, asker: c.Self(), account: c.Account(),
		cancel: out.Cancel, arrived: out.Arrived,
	}
	if err := cl.enter(a); err != nil {
		return kernel.Ticket{}, err
	}
	f, err := cl.frame(a, &out)
	if err != nil {
		cl.book.takeAsk(a.id)
		return kernel.Ticket{}, err
	}
	ticket, err := c.Request(cl.self, carried{a.id})
	if err != nil {
		cl.book.takeAsk(a.id)
		f.end(false)
		return kernel.Ticket{}, isGone(err)
	}
	if err = c.Tell(cl.self, settled{a.id}); err == nil {
		err = cl.out.push(f)
	}
	if err != nil {
		cl.book.takeAsk(a.id)
		c.Cancel(ticket)
		f.end(false)
		return kernel.Ticket{}, isGone(err)
	}
	return ticket, nil
}

// enter pays for an ask's place and enters it.
func (cl *client) enter(a *ask) error {
	if cl.departed() {
		return tunnel.ErrGone
	}
	lease, err := cl.account.Acquire(askBytes)
	if err != nil {
		return isGone(err)
	}
	a.lease = lease
	if err := cl.book.enterAsk(a, cl.cfg.EstablishesPerConnection); err != nil {
		lease.Release()
		return err
	}
	return nil
}

// frame builds and pays for the frame of an ask. A body is not copied into it: its lease comes with it, and pays here until
// the frame has ended.
func (cl *client) frame(a *ask, out *tunnel.Out) (*outFrame, error) {
	f := &outFrame{stream: a.stream, ask: a.id}
	id, room := jsonrpc.IntID(int64(a.id)), make([]byte, 0, len(out.Method)+len(out.Params)+64)
	if out.Body == nil {
		f.parts[0] = jsonrpc.AppendRequest(room, id, out.Method, out.Params)
	} else {
		f.parts = [3][]byte{append(jsonrpc.AppendRequestHead(room, id, out.Method), out.Params...), out.Body,
			append(append(make([]byte, 0, len(out.Tail)+1), out.Tail...), '}')}
	}
	if out.Body != nil {
		f.body = out.Bytes
	}
	var err error
	if f.lease, err = cl.account.Acquire(f.own()); err != nil {
		return nil, isGone(err)
	}
	if err = f.body.Move(cl.account); err != nil {
		f.lease.Release()
		return nil, isGone(err)
	}
	return f, nil
}

// Notify implements tunnel.Carrier.
func (cl *client) Notify(name, method string, params []byte) error {
	if cl.departed() {
		return tunnel.ErrGone
	}
	frame := jsonrpc.AppendNotification(make([]byte, 0, len(method)+len(params)+48), method, params)
	f := &outFrame{stream: name, parts: [3][]byte{frame}}
	var err error
	if f.lease, err = cl.account.Acquire(f.own()); err != nil {
		return isGone(err)
	}
	if err := cl.out.push(f); err != nil {
		f.end(false)
		return err
	}
	return nil
}

// Disconnect implements tunnel.Carrier.
func (cl *client) Disconnect(ctx context.Context, f tunnel.Farewell) error {
	if !f.Request {
		return cl.Notify(control, f.Method, f.Params)
	}
	a := &ask{reply: make(chan error, 1)}
	if err := cl.part(a, f); err != nil {
		return err
	}
	select {
	case err := <-a.reply:
		return err
	case <-cl.gone:
		return tunnel.ErrGone
	case <-ctx.Done():
		cl.book.takeAsk(a.id)
		return context.Cause(ctx)
	}
}

// part sends a disconnect on the control lane, before the data of every stream.
func (cl *client) part(a *ask, f tunnel.Farewell) error {
	if err := cl.enter(a); err != nil {
		return err
	}
	frame, err := cl.frame(a, &tunnel.Out{Method: f.Method, Params: f.Params})
	if err == nil {
		if err = cl.out.push(frame); err != nil {
			frame.end(false)
		}
	}
	if err != nil {
		cl.book.takeAsk(a.id)
	}
	return err
}

// dismiss closes an MCP connection that came to be after nobody wanted it any more; nobody waits for the answer.
func (cl *client) dismiss(f *tunnel.Farewell) {
	if f == nil || cl.book.isBound(f.ConnectionID) {
		return
	}
	var err error
	if f.Request {
		err = cl.part(&ask{}, *f)
	} else {
		err = cl.Notify(control, f.Method, f.Params)
	}
	if err != nil && !errors.Is(err, tunnel.ErrGone) {
		cl.self.CountRefusal("disconnect_not_sent")
	}
}

// Bind implements tunnel.Carrier.
func (cl *client) Bind(id string, to kernel.Ref) error {
	if cl.departed() {
		return tunnel.ErrGone
	}
	return cl.book.bind(id, to)
}

// Unbind implements tunnel.Carrier.
func (cl *client) Unbind(id string, to kernel.Ref) bool { return cl.book.unbind(id, to) }

// Granted implements session.Client.
func (cl *client) Granted(id string, to kernel.Ref) {
	cl.book.grant(id, to)
	cl.refresh()
}

// Lost implements session.Client.
func (cl *client) Lost(id string, why error) {
	cl.book.lose(id)
	take := cl.out.recall // a session that has ended has said what it said
	if errors.Is(why, tunnel.ErrTakenOver) {
		take = cl.out.evict // what was not said is its new owner's
	}
	for _, ask := range take(id) {
		if a := cl.book.takeAsk(ask); a != nil {
			if cl.self.Signal(lostAnswer{a, tunnel.ErrGone}) != nil {
				cl.self.CountRefusal("lost_answer")
			}
		}
	}
	cl.refresh()
}

// refresh has the tree show what changed; one that is under way is enough.
func (cl *client) refresh() {
	if cl.dirty.CompareAndSwap(false, true) && cl.self.Signal(refresh{}) != nil {
		cl.dirty.Store(false)
	}
}
