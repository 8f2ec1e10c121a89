package peer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// Options are what a peer needs beside its socket.
type Options struct {
	Name string // of the socket, for reports
	Book *invariant.Book
	// Serve gets the pod's requests and notifications, in order, on the reading goroutine. The frame's bytes are its own.
	Serve func(p *Peer, f jsonrpc.Frame)
	// Odd gets errors with the id null: what the pod says of frames that have no id for it.
	Odd func(e *jsonrpc.Error)
	// Traffic counts bytes; nil counts nothing.
	Traffic *Traffic
}

// Traffic are the bytes of all sockets of a run, counted as each ends.
type Traffic struct{ In, Out atomic.Int64 }

// Reply is what answered a request.
type Reply struct {
	Result []byte
	Error  *jsonrpc.Error
}

// ErrGone says that the socket ended before the answer.
var ErrGone = errors.New("the socket has ended")

// Peer is one socket.
type Peer struct {
	o      Options
	socket *wire.Socket

	Requests    *ledger.Requests
	Asked       *ledger.Asked
	Connections *ledger.Connections

	mu      sync.Mutex
	next    int64
	pending map[string]chan Reply
	queue   []func(*wire.Socket) error
	queued  chan struct{} // 1: something is queued
	hold    chan struct{} // not nil: reading pauses until it is closed
	closed  bool

	cause  error
	frozen atomic.Bool
	paused atomic.Bool
	gone   chan struct{}
	done   sync.WaitGroup
}

// New takes a socket over.
func New(socket *wire.Socket, o Options) *Peer {
	p := &Peer{
		o: o, socket: socket,
		Requests: ledger.NewRequests(o.Book, o.Name), Asked: ledger.NewAsked(o.Book, o.Name), Connections: ledger.NewConnections(o.Book, o.Name),
		pending: map[string]chan Reply{}, queued: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	p.done.Add(2)
	go p.read()
	go p.write()
	return p
}

// Name is that of the socket.
func (p *Peer) Name() string { return p.o.Name }

// Socket is the socket, for what has no place here.
func (p *Peer) Socket() *wire.Socket { return p.socket }

// Gone is closed when the socket has ended.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// Living reports whether the socket has not ended.
func (p *Peer) Living() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// Cause is why it ended; after Gone.
func (p *Peer) Cause() error { return p.cause }

// CloseCode is the code of the pod's close frame, 0 when there was none; after Gone.
func (p *Peer) CloseCode() int {
	code, _ := p.Closed()
	return code
}

// Closed is the code of the pod's close frame and what it says beside, 0 when there was none; after Gone.
func (p *Peer) Closed() (code int, reason string) {
	if closed, ok := errors.AsType[*wire.Closed](p.cause); ok {
		return closed.Code, closed.Reason
	}
	return 0, ""
}

// Wait returns when both goroutines have ended; they do after Gone.
func (p *Peer) Wait() { p.done.Wait() }

// Pause keeps the reader from reading until the function given back is called, or the socket is reset.
func (p *Peer) Pause() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold != nil {
		return func() {}
	}
	hold := make(chan struct{})
	p.hold = hold
	p.paused.Store(true)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.hold == hold {
			p.hold = nil
			close(hold)
		}
	}
}

// Paused reports whether reading was ever paused: how late it is that something came proves nothing from then on.
func (p *Peer) Paused() bool { return p.paused.Load() }

// Reset ends the socket with a RST.
func (p *Peer) Reset() {
	p.socket.Reset()
	p.mu.Lock()
	if p.hold != nil {
		close(p.hold)
		p.hold = nil
	}
	p.mu.Unlock()
}

// Abandon leaves the socket open and does nothing with it any more: no answer, no pong. What comes is read and thrown away, so that Gone
// tells when the pod has given it up.
func (p *Peer) Abandon() {
	p.frozen.Store(true)
	p.socket.Mute(true)
}

// Do runs f with the socket when all that was told before is written. An error of f ends the socket.
func (p *Peer) Do(f func(*wire.Socket) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.frozen.Load() {
		return
	}
	p.queue = append(p.queue, f)
	select {
	case p.queued <- struct{}{}:
	default:
	}
}

// Text writes one message.
func (p *Peer) Text(b []byte) { p.Do(func(s *wire.Socket) error { return s.Text(b) }) }

// Notify sends a notification.
func (p *Peer) Notify(method string, params []byte) {
	p.Text(jsonrpc.AppendNotification(nil, method, params))
}

// Respond answers a request of the pod.
func (p *Peer) Respond(id jsonrpc.ID, result []byte, e *jsonrpc.Error) {
	p.Asked.Reply(string(id.Raw()))
	if e != nil {
		p.Text(jsonrpc.AppendError(nil, id, e))
		return
	}
	p.Text(jsonrpc.AppendResult(nil, id, result))
}

// NewID gives an id that was not used on this socket.
func (p *Peer) NewID() jsonrpc.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return jsonrpc.IntID(p.next)
}

// Ask sends a request; its answer comes into the channel, which stays empty when the socket ends. bound is how long the pod may take.
func (p *Peer) Ask(method string, params []byte, bound time.Duration) <-chan Reply {
	id := p.NewID()
	answer := p.Expect(id, method, bound)
	p.Text(jsonrpc.AppendRequest(nil, id, method, params))
	return answer
}

// Expect enters a request that the caller writes on its own.
func (p *Peer) Expect(id jsonrpc.ID, method string, bound time.Duration) <-chan Reply {
	answer := make(chan Reply, 1)
	key := string(id.Raw())
	p.Requests.Send(key, method, time.Now(), bound)
	p.mu.Lock()
	p.pending[key] = answer
	p.mu.Unlock()
	return answer
}

// Call is Ask and waits.
func (p *Peer) Call(ctx context.Context, method string, params []byte, bound time.Duration) (Reply, error) {
	answer := p.Ask(method, params, bound)
	select {
	case reply := <-answer:
		return reply, nil
	case <-p.gone:
		select {
		case reply := <-answer:
			return reply, nil
		default:
			return Reply{}, ErrGone
		}
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

// Check looks for what is overdue.
func (p *Peer) Check(now time.Time, grace time.Duration) {
	if p.Living() && !p.frozen.Load() {
		p.Requests.Check(now)
		p.Connections.Check(now, grace)
	}
}
