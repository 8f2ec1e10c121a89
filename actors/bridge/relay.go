package bridge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// relaySpec is one connection. It is never started again.
func relaySpec(name string, cfg Config, conn net.Conn, bridge kernel.Ref) kernel.Spec {
	return kernel.Spec{Name: name, Kind: "relay", Restart: kernel.Temporary, New: func() kernel.Behavior {
		return &relay{cfg: cfg, conn: conn, bridge: bridge}
	}}
}

type relay struct {
	cfg    Config
	conn   net.Conn
	bridge kernel.Ref
}

// identified says whose a connection is, for the tree.
type identified struct{ session string }

// Start implements kernel.Starter.
func (r *relay) Start(c *kernel.Ctx) error {
	conn := r.conn
	c.Own("socket", func(context.Context, error) { _ = conn.Close() })
	l := &line{cfg: r.cfg, conn: conn, self: c.Self(), bridge: r.bridge, account: c.Account(), log: c.Log(), turn: make(chan struct{}, 1)}
	c.Go("lines", func(ctx context.Context) kernel.Msg { return ended{l.serve(ctx)} })
	return nil
}

// Receive implements kernel.Behavior.
func (r *relay) Receive(c *kernel.Ctx, m kernel.Msg) error {
	switch m := m.(type) {
	case identified:
		c.Attr("session", m.session)
	case ended:
		return fmt.Errorf("%w: %w", kernel.ErrDone, m.err)
	}
	return nil
}

// Why a connection ends.
var (
	errAgentEnded = errors.New("its agent, or the agent's token, has ended")
	errRelayEnded = errors.New("the relay sends no more")
	errRefused    = errors.New("it was refused")
)

// line is one connection at work. Its goroutine reads; each message is served on one of its own, and all have ended when serve returns.
type line struct {
	cfg     Config
	conn    net.Conn
	self    kernel.Ref
	bridge  kernel.Ref
	account *kernel.Account
	log     logger
	agent   Agent

	held *kernel.Lease // of the line that is being read
	open atomic.Int64  // requests being served
	odd  uint64        // frames that named another session
	work sync.WaitGroup

	turn chan struct{} // holds one token while somebody writes
	out  *bufio.Writer
	dead context.CancelCauseFunc // ends all that is served
}

type logger interface {
	Warn(msg string, args ...any)
	Debug(msg string, args ...any)
}

// serve is the whole life of the connection.
func (l *line) serve(generation context.Context) error {
	ctx, dead := context.WithCancelCause(generation)
	defer dead(nil)
	l.dead = dead
	// Whoever reads or writes meanwhile returns.
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	paid, err := l.account.Acquire(relayBytes)
	if err != nil {
		l.refuse("bridge_bytes", "the pod has no room for one more relay: try again later")
		return err
	}
	defer paid.Release()
	l.out = bufio.NewWriterSize(paced{l.conn, l.cfg.WriteTimeout}, 4<<10)
	if err := l.identify(ctx); err != nil {
		return err
	}
	l.work.Go(func() {
		select {
		case <-l.agent.Ended:
			dead(errAgentEnded)
		case <-ctx.Done():
		}
	})
	err = l.read(ctx)
	l.windUp(ctx, err)
	l.work.Wait()
	_ = l.conn.Close()
	return err
}

// identify finds whose the connection is, and refuses all others.
func (l *line) identify(ctx context.Context) error {
	unixConn, ok := underneath(l.conn).(*net.UnixConn)
	if !ok {
		return errRefused
	}
	agent, why := l.cfg.identify(unixConn)
	if why == "" && !l.admitted(ctx, agent) {
		why = manyRelays
	}
	if why != "" {
		text := "this process was started by no agent of this pod: `acpod bridge` is for an agent to start"
		if why == manyRelays {
			text = "the agent has too many relays connected: end one"
		}
		l.refuse(string(why), text)
		return fmt.Errorf("%w: %s", errRefused, why)
	}
	l.agent = agent
	_ = l.self.Tell(identified{agent.Caller.Tag})
	return nil
}

// admitted asks the bridge, which knows the other relays of the agent.
func (l *line) admitted(ctx context.Context, agent Agent) bool {
	p, err := l.bridge.Ask(admit{relay: l.self, agent: agent.Caller.Token})
	if err != nil {
		return false
	}
	defer p.Drop()
	said, lease, err := p.Wait(ctx)
	lease.Release()
	return err == nil && said == true
}

// refuse answers with one error and counts it, in the bridge's node: this one is gone in a moment.
func (l *line) refuse(scope, text string) {
	l.bridge.CountRefusal(scope)
	l.log.Debug("a relay was refused", "reason", scope)
	_ = l.conn.SetWriteDeadline(time.Now().Add(l.cfg.WriteTimeout))
	_, _ = l.conn.Write(append(jsonrpc.AppendError(nil, jsonrpc.NullID(), &jsonrpc.Error{Code: jsonrpc.InvalidRequest, Message: text}), '\n'))
	_ = l.conn.Close()
}

// underneath is the connection below those that count it.
func underneath(conn net.Conn) net.Conn {
	for {
		outer, ok := conn.(interface{ Unwrap() net.Conn })
		if !ok {
			return conn
		}
		conn = outer.Unwrap()
	}
}

// read serves what comes until nothing comes any more.
func (l *line) read(ctx context.Context) error {
	edges := jsonrpc.NewEdges(l.conn, edgesFrom)
	lines := jsonrpc.NewLineReader(edges, l.cfg.LineBytes)
	lines.NoResync = true
	lines.Charge = l.charge
	defer func() { l.held.Release() }()
	for ordinal := int64(0); ; ordinal++ {
		text, err := lines.Next()
		edge := edges.Take(ordinal)
		lease := l.held
		l.held = nil
		var long *jsonrpc.LineTooLong
		switch {
		case errors.As(err, &long) && long.Cause != nil && long.Skipped <= int64(long.Max):
			lease.Release()
			if edge.Head == nil {
				edge = jsonrpc.Edge{Head: long.Head, Tail: long.Tail}
			}
			l.unpaid(edge, long.Cause)
			continue
		case errors.As(err, &long):
			lease.Release()
			l.count("frame_bytes")
			l.log.Warn("a relay sent a line over limits.frame_bytes and is disconnected", "session", l.agent.Caller.Tag, "bytes", long.Skipped)
			return err
		case ctx.Err() != nil:
			lease.Release()
			return context.Cause(ctx)
		case err != nil:
			lease.Release()
			return errRelayEnded
		}
		message, why := messageOf(text, l.agent.Session)
		if why != "" {
			lease.Release()
			l.skip(why)
			continue
		}
		l.take(ctx, message, lease)
	}
}

// charge pays for a line as it grows.
func (l *line) charge(more int) error {
	size := l.held.Size() + int64(more)
	lease, err := l.agent.Caller.Account.Acquire(size)
	if err != nil && size <= smallLine {
		lease, err = l.account.Acquire(size)
	}
	if err != nil {
		return err
	}
	l.held.Release()
	l.held = lease
	return nil
}

// unpaid answers a request for which there was no room, as far as its ends tell what it was.
func (l *line) unpaid(edge jsonrpc.Edge, why error) {
	l.count("overloaded")
	if kind, id, _ := edge.Envelope(); kind == jsonrpc.Request {
		l.answer(id, overloaded(why))
	}
}

func overloaded(err error) *jsonrpc.Error {
	full, ok := errors.AsType[*kernel.Overloaded](err)
	if !ok {
		return jsonrpc.Draining(0)
	}
	return jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: full.Scope, Limit: full.Limit, Used: full.Used, Size: full.Size, RetryAfter: full.RetryAfter})
}

// skip leaves a line out. What it says is shown nowhere.
func (l *line) skip(why reason) {
	l.count(string(why))
	if why != otherChannel {
		return
	}
	if l.odd++; l.odd&(l.odd-1) == 0 { // the first, the second, the fourth, …
		l.log.Warn("a frame of a relay names another session than its own and is dropped", "session", l.agent.Caller.Tag, "frames", l.odd)
	}
}

// take serves one message beside those that are open, and returns when the next one may follow.
func (l *line) take(ctx context.Context, message []byte, lease *kernel.Lease) {
	frame, _ := jsonrpc.Scan(message)
	request := frame.Kind == jsonrpc.Request
	if request && l.open.Load() >= openRequests {
		lease.Release()
		l.count("bridge_requests")
		l.answer(frame.ID, jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: "bridge_requests", Limit: openRequests, Used: openRequests, Size: 1, RetryAfter: time.Second}))
		return
	}
	if request {
		l.open.Add(1)
	}
	begun := make(chan struct{})
	l.work.Go(func() {
		if request {
			defer l.open.Add(-1)
		}
		l.cfg.Facade.Serve(ctx, l.agent.Caller, l.self.Name()+":", message, lease, l.write, sync.OnceFunc(func() { close(begun) }))
	})
	<-begun
}

// windUp gives what is open a moment to be answered to a relay that sends no more but still reads.
func (l *line) windUp(ctx context.Context, why error) {
	defer l.dead(why)
	if !errors.Is(why, errRelayEnded) || l.open.Load() == 0 || hungUp(underneath(l.conn)) {
		return
	}
	over := time.NewTimer(lastWords)
	defer over.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for l.open.Load() > 0 {
		select {
		case <-look.C:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// hungUp tells whether the other side has closed both directions: nobody reads any more.
func hungUp(conn net.Conn) bool {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return true
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return true
	}
	hung := true
	_ = raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, err := unix.Poll(polled, 0)
		hung = err != nil || polled[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return hung
}

func (l *line) answer(id jsonrpc.ID, bad *jsonrpc.Error) {
	_ = l.write(func(w io.Writer) error {
		_, err := w.Write(jsonrpc.AppendError(nil, id, bad))
		return err
	})
}

// write writes one message and the end of its line. A relay that takes nothing is disconnected.
func (l *line) write(message func(io.Writer) error) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	err := message(l.out)
	if err == nil {
		_, err = io.Copy(l.out, strings.NewReader("\n"))
	}
	if err == nil {
		err = l.out.Flush()
	}
	if err != nil {
		l.dead(fmt.Errorf("the relay does not read: %w", err))
	}
	return err
}

// paced moves the write deadline on with each piece, so that a slow reader that goes on reading is never cut off.
type paced struct {
	conn    net.Conn
	timeout time.Duration
}

// Write implements io.Writer.
func (p paced) Write(b []byte) (int, error) {
	written := 0
	for {
		_ = p.conn.SetWriteDeadline(time.Now().Add(p.timeout))
		n, err := p.conn.Write(b[written:min(len(b), written+writeChunk)])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

func (l *line) count(scope string) { l.bridge.CountRefusal(scope) }
