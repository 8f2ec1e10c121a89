package agent

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
	"golang.org/x/time/rate"
)

const (
	// wholeError is how long an error of the agent may be to pass as it came: an error has no lease.
	wholeError = 64 << 10
	cutMessage = 1 << 10
	edgeBytes  = 1 << 10  // what of both ends of a line tells what it was
	edgesFrom  = 64 << 10 // shorter lines than this are never skipped by the default limit
	// LineOverhead is charged for each line besides its bytes: for what carries it to the client's socket.
	LineOverhead = 512
)

// pump reads stdout to its end and tells the owner, in the order of the lines. It is the only one who does, so a
// response cannot overtake an update.
func (r *runner) pump(ctx context.Context) {
	defer close(r.eof)
	<-r.running
	proc := r.proc.Load()
	if proc == nil {
		return
	}
	out := proc.Stdout()
	defer func() { _ = out.Close() }()
	p := &reading{runner: r, pid: proc.PID(), quiet: rate.NewLimiter(1, 10)}
	p.edges = jsonrpc.NewEdges(out, min(r.cfg.LineBytes, edgesFrom))
	lines := jsonrpc.NewLineReader(p.edges, r.cfg.LineBytes)
	lines.Charge = func(more int) error { return p.charge(ctx, int64(more)) }
	for {
		line, err := lines.Next()
		lease := p.held
		p.held = nil
		var long *jsonrpc.LineTooLong
		switch {
		case err == nil:
			p.line(ctx, line, lease)
		case errors.As(err, &long):
			lease.Release()
			p.tooLong(ctx, p.edges.Take(p.lines), long)
		default: // the end, however it came
			lease.Release()
			return
		}
		if err == nil {
			p.edges.Take(p.lines)
		}
		p.lines++
	}
}

// reading is the reader's own state.
type reading struct {
	*runner
	pid   int
	edges *jsonrpc.Edges
	lines int64         // ordinal of the line, as edges counts
	held  *kernel.Lease // of the line that is being assembled
	quiet *rate.Limiter // of log lines about what an agent does wrong
}

// charge makes the account pay for the line before it grows. The lease of a long line is exchanged for one of its
// new size: while it is copied both sizes are in memory, so both are paid when there is room for both, and when
// there is not, the line does not wait for what it holds itself. Nor does it wait for ever: what fills the account
// may be what only the agent's next lines can end.
func (p *reading) charge(ctx context.Context, more int64) error {
	want := p.held.Size() + more
	if p.held == nil {
		want += LineOverhead
	}
	for a := p.account; a != nil; a = a.Parent() {
		if want > a.Limit() {
			return &kernel.Overloaded{Scope: a.Scope(), Limit: a.Limit(), Used: a.Used(), Size: want}
		}
	}
	lease, err := p.account.Acquire(want)
	if err != nil {
		p.held.Release()
		p.held = nil
		if lease, err = p.wait(ctx, want); err != nil {
			return err
		}
	}
	p.held.Release()
	p.held = lease
	return nil
}

// wait waits for room, as long as a line may.
func (p *reading) wait(ctx context.Context, n int64) (*kernel.Lease, error) {
	limited, cancel := context.WithTimeout(ctx, p.cfg.LineWait)
	defer cancel()
	return p.account.AcquireWait(limited, n)
}

// line interprets one line and hands it on with its lease.
func (p *reading) line(ctx context.Context, line []byte, lease *kernel.Lease) {
	line, lease, ok := p.mend(ctx, line, lease)
	if !ok {
		return
	}
	frame, fault := jsonrpc.Scan(line)
	if fault != nil && frame.Kind != jsonrpc.Response {
		p.junk(len(line)) // before its request is answered: who hears of that finds it counted
		answered := p.malformed(line)
		lease.Release()
		if !answered && fault.Kind == jsonrpc.Request && !fault.ID.IsNull() && !fault.ID.IsZero() {
			p.reply(jsonrpc.AppendFault(nil, fault))
		}
		return
	}
	switch {
	case frame.Kind == jsonrpc.Response:
		p.response(frame, lease)
	case frame.Kind == jsonrpc.Request:
		if refused := p.pending.call(frame.ID); refused != nil {
			lease.Release()
			p.reply(jsonrpc.AppendError(nil, frame.ID, refused))
			return
		}
		if !p.tell(ctx, lease, func(l *kernel.Lease) kernel.Msg {
			return Called{From: p.self, ID: frame.ID, Method: frame.Method, Params: frame.Params, Held: l}
		}) && p.pending.answer(frame.ID) {
			p.reply(jsonrpc.AppendError(nil, frame.ID, &jsonrpc.Error{Code: jsonrpc.Internal, Message: "the session takes nothing now"}))
		}
	case frame.Method == acp.MethodSessionUpdate:
		credit, _ := p.credits.Take(ctx, len(line)) // none from a stop on: it does not wait then
		if !p.tell(ctx, lease, func(l *kernel.Lease) kernel.Msg {
			return Update{From: p.self, Params: frame.Params, Held: l, Credit: credit}
		}) {
			credit.Done()
		}
	default:
		var credit *Credit
		if frame.Method != acp.MethodCancelRequest { // what is not for the client waits for none
			credit, _ = p.credits.Take(ctx, len(line))
		}
		if !p.tell(ctx, lease, func(l *kernel.Lease) kernel.Msg {
			return Noted{From: p.self, Method: frame.Method, Params: frame.Params, Held: l, Credit: credit}
		}) {
			credit.Done()
		}
	}
}

// mend replaces what is not UTF-8, which makes a line up to three times as long.
func (p *reading) mend(ctx context.Context, line []byte, lease *kernel.Lease) ([]byte, *kernel.Lease, bool) {
	mended, bad := line, 0
	if !utf8.Valid(line) {
		more, err := p.wait(ctx, int64(3*len(line))+LineOverhead)
		if err != nil {
			end := min(len(line), edgeBytes)
			ends := jsonrpc.Edge{Head: bytes.Clone(line[:end]), Tail: bytes.Clone(line[len(line)-end:])}
			skipped := &jsonrpc.LineTooLong{Skipped: int64(len(line)), Max: p.cfg.LineBytes, Cause: err}
			lease.Release()
			p.tooLong(ctx, ends, skipped) // who waits for it is told, as for any line without room
			return nil, nil, false
		}
		mended, bad = jsonrpc.ValidUTF8(line)
		lease.Release()
		more.Shrink(int64(cap(mended)) + LineOverhead)
		lease = more
	}
	if bad > 0 {
		p.self.CountRefusal(ScopeUTF8)
	}
	return mended, lease, true
}

// response answers the question that it is for.
func (p *reading) response(frame jsonrpc.Frame, lease *kernel.Lease) {
	id, ok := frame.ID.Int()
	if ok && id == initializeID && !p.ready.Load() {
		p.initialized(frame)
		lease.Release()
		return
	}
	q, known := p.pending.settle(id)
	if !ok || !known {
		p.noise.Add(1)
		lease.Release()
		p.self.CountRefusal(ScopeUnknown)
		return
	}
	switch {
	case q == nil:
		lease.Release()
	case frame.Error != nil:
		q.Fail(errorOf(frame.Error))
		lease.Release()
	default:
		q.Answer(Reply{Result: frame.Result}, lease)
	}
}

// initialized ends the handshake.
func (p *reading) initialized(frame jsonrpc.Frame) {
	if frame.Error != nil {
		p.fail(errorOf(frame.Error))
		return
	}
	info, err := parseInfo(frame.Result)
	if err != nil {
		p.fail(err)
		return
	}
	p.ready.Store(true)
	_ = p.self.Tell(ready{info.Name, info.Build})
	if err := p.owner.Tell(Ready{From: p.self, Info: info, PID: p.pid, Credits: p.credits, Noise: p.noise.Load}); err != nil {
		p.self.CountRefusal(ScopeLost)
	}
}

// errorOf reads an error in memory of its own. A short one passes as it came; of a long one, code and the beginning
// of the message are left.
func errorOf(raw []byte) *jsonrpc.Error {
	if len(raw) <= wholeError {
		return jsonrpc.ParseError(bytes.Clone(raw))
	}
	e := jsonrpc.ParseError(raw)
	message := strings.Clone(e.Message[:min(len(e.Message), cutMessage)])
	return &jsonrpc.Error{Code: e.Code, Message: strings.ToValidUTF8(message, "") + " (cut: the agent's error was too long)"}
}

// tell gives a message to the owner and waits, as long as a line may, while its account is full. It reports whether the owner took it. The
// lease goes with the message; a refusal ends it, so each try has its own.
func (p *reading) tell(ctx context.Context, lease *kernel.Lease, with func(*kernel.Lease) kernel.Msg) bool {
	size := lease.Size()
	err := p.owner.Tell(with(lease))
	if err == nil {
		return true
	}
	limited, cancel := context.WithTimeout(ctx, p.cfg.LineWait)
	defer cancel()
	for {
		full, ok := errors.AsType[*kernel.Overloaded](err)
		if !ok || !pause(limited, full.RetryAfter) {
			break
		}
		if lease, err = p.account.AcquireWait(limited, size); err != nil {
			break
		}
		if err = p.owner.Tell(with(lease)); err == nil {
			return true
		}
	}
	p.self.CountRefusal(ScopeLost)
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tooLong fails just the request that a skipped line answered, answers the one that it was, and tells the owner of an update.
func (p *reading) tooLong(ctx context.Context, at jsonrpc.Edge, long *jsonrpc.LineTooLong) {
	p.noise.Add(1)
	p.self.CountRefusal(ScopeLong)
	if p.quiet.Allow() {
		p.log.Warn("a line of the agent was skipped", "why", long.Error())
	}
	var why error = &LineTooLong{Bytes: long.Skipped, Limit: int64(p.cfg.LineBytes)}
	refusal := jsonrpc.OverloadData{Scope: "agent_line_bytes", Limit: int64(p.cfg.LineBytes), Used: long.Skipped, Size: long.Skipped}
	if full, ok := errors.AsType[*kernel.Overloaded](long.Cause); ok {
		why = full
		refusal = jsonrpc.OverloadData{Scope: full.Scope, Limit: full.Limit, Used: full.Used, Size: full.Size, RetryAfter: full.RetryAfter}
	}
	if long.Head != nil { // a short one, for which there was no room
		at = jsonrpc.Edge{Head: long.Head, Tail: long.Tail}
	}
	kind, id, method := at.Envelope()
	switch kind {
	case jsonrpc.Response:
		n, ok := id.Int()
		if ok && n == initializeID && !p.ready.Load() {
			p.fail(why)
			return
		}
		q, known := p.pending.settle(n)
		if !ok || !known {
			p.self.CountRefusal(ScopeUnknown)
			return
		}
		if q != nil {
			q.Fail(why)
		}
	case jsonrpc.Request:
		p.reply(jsonrpc.AppendError(nil, id, jsonrpc.Overloaded(refusal)))
	case jsonrpc.Notification, jsonrpc.Invalid:
		if method == acp.MethodSessionUpdate {
			p.tell(ctx, nil, func(*kernel.Lease) kernel.Msg {
				return Skipped{From: p.self, Bytes: long.Skipped, Scope: refusal.Scope}
			})
		}
	}
}

// junk counts a line that is no message, and tells its size only: it may be anything.
func (p *reading) junk(size int) {
	p.noise.Add(1)
	p.self.CountRefusal(ScopeJunk)
	if p.quiet.Allow() {
		p.log.Warn("a line of the agent is no JSON-RPC and was skipped", "bytes", size)
	}
}

// reply answers the agent without asking anybody.
func (p *reading) reply(frame []byte) {
	if err := p.send(frame, nil); err != nil {
		p.self.CountRefusal(ScopeStdin)
	}
}
