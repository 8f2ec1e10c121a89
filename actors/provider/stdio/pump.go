package stdio

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/acpod/acpod/actors/provider/link"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// lineOverhead is charged for each line besides its bytes: for what carries it to the one who asked.
	lineOverhead = 512
	// envelopeBytes is what a message may have beyond the result in it.
	envelopeBytes = 4 << 10
	edgesFrom     = 64 << 10 // a shorter line is skipped for want of room only, and then comes with its ends
)

// pump reads stdout to its end and hands on what it says, in order. It is the only one who does.
func (l *Link) pump(ctx context.Context) {
	defer close(l.eof)
	out := l.proc.Stdout()
	defer func() { _ = out.Close() }()
	r := &reading{Link: l, ctx: ctx, max: int(l.o.ResultBytes + envelopeBytes)}
	r.edges = jsonrpc.NewEdges(&counted{out, l}, min(r.max, edgesFrom))
	lines := jsonrpc.NewLineReader(r.edges, r.max)
	lines.Charge = func(more int) error { return r.charge(int64(more)) }
	for {
		line, err := lines.Next()
		lease := r.held
		r.held = nil
		long, skipped := errors.AsType[*jsonrpc.LineTooLong](err)
		switch {
		case err == nil:
			r.edges.Take(r.lines)
			r.line(line, lease)
		case skipped:
			lease.Release()
			r.tooLong(r.edges.Take(r.lines), long)
		default: // the end, however it came
			lease.Release()
			return
		}
		r.lines++
	}
}

// counted tells that something was read.
type counted struct {
	io.Reader
	l *Link
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.l.read.Add(int64(n))
	return n, err
}

// reading is the reader's own state.
type reading struct {
	*Link
	ctx   context.Context
	max   int
	edges *jsonrpc.Edges
	lines int64         // ordinal of the line, as edges counts
	held  *kernel.Lease // of the line that is being assembled
}

// charge makes the account pay for a line before it grows. While a long one is copied both sizes are in memory, so both are paid
// when there is room for both; when there is not, a line does not wait for what it holds itself.
func (r *reading) charge(more int64) error {
	want := r.held.Size() + more
	if r.held == nil {
		want += lineOverhead
	}
	account := r.to.Account()
	for a := account; a != nil; a = a.Parent() {
		if want > a.Limit() {
			return &kernel.Overloaded{Scope: a.Scope(), Limit: a.Limit(), Used: a.Used(), Size: want}
		}
	}
	lease, err := account.Acquire(want)
	if err != nil {
		r.held.Release()
		r.held = nil
		if lease, err = r.wait(want); err != nil {
			return err
		}
	}
	r.held.Release()
	r.held = lease
	return nil
}

// wait waits for room, as long as a line may.
func (r *reading) wait(n int64) (*kernel.Lease, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.RoomWait)
	defer cancel()
	return r.to.Account().AcquireWait(ctx, n)
}

// line hands one message on with its lease.
func (r *reading) line(line []byte, lease *kernel.Lease) {
	if !utf8.Valid(line) {
		more, err := r.wait(int64(3*len(line)) + lineOverhead)
		if err != nil {
			lease.Release()
			r.to.Refused("no_room")
			r.fail(line, err)
			return
		}
		line, _ = jsonrpc.ValidUTF8(line)
		lease.Release()
		lease = more
		lease.Shrink(int64(cap(line)) + lineOverhead)
		r.to.Refused("not_utf8")
	}
	frame, fault := jsonrpc.Scan(line)
	switch {
	case fault == nil && frame.Kind != jsonrpc.Invalid:
		r.to.Message(line, frame, jsonrpc.ID{}, lease)
	default:
		lease.Release()
		r.junk(len(line))
	}
}

// fail fails the request that a line answers.
func (r *reading) fail(line []byte, err error) {
	if frame, fault := jsonrpc.Scan(line); fault == nil && frame.Kind == jsonrpc.Response {
		r.to.Failed(frame.ID, err)
	}
}

// junk counts a line that is no message, and tells its size only: it may be anything.
func (r *reading) junk(size int) {
	r.to.Refused("junk_line")
	if r.quiet.Allow() {
		r.log.Warn("a line of a server is no message and was skipped", "bytes", size)
	}
}

// tooLong fails just the request that a skipped line answered. A request in such a line is answered, so that the child does not
// wait.
func (r *reading) tooLong(at jsonrpc.Edge, long *jsonrpc.LineTooLong) {
	r.to.Refused("long_line")
	if r.quiet.Allow() {
		r.log.Warn("a line of a server was skipped", "why", long.Error())
	}
	var why error = &link.TooLargeError{Size: long.Skipped, Limit: r.o.ResultBytes}
	if full, ok := errors.AsType[*kernel.Overloaded](long.Cause); ok {
		why = full
	}
	if long.Head != nil { // a short one, for which there was no room
		at = jsonrpc.Edge{Head: long.Head, Tail: long.Tail}
	}
	switch kind, id, _ := at.Envelope(); kind {
	case jsonrpc.Response:
		r.to.Failed(id, why)
	case jsonrpc.Request:
		refusal := &jsonrpc.Error{Code: jsonrpc.Internal, Message: "the message is too long for this client"}
		if r.Send(link.Message{Head: jsonrpc.AppendError(nil, id, refusal)}) != nil {
			r.to.Refused("reply")
		}
	case jsonrpc.Notification, jsonrpc.Invalid:
	}
}
