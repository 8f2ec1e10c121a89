package clientcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/acpod/acpod/actors/chaos/tally"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// ErrNobody says that no client came.
var ErrNobody = errors.New("no client came")

// run is one check at work. All of it belongs to the goroutine of Run.
type run struct {
	cfg   Config
	ctx   context.Context
	door  *door
	sheet *sheet
	begun time.Time

	attempts []time.Time // the latest, a bounded number
	came     bool        // somebody asked for a socket, well or not
	sock     *socket     // the present one; nil while there is none
	watch    *watcher    // of it, or of the last
	how      string      // how the last socket ended, "" while it is open
	left     bool        // the client left it in good order
	broken   bool        // the frames of the client ended it
	stayed   bool        // the client did not come again, which it need not
	pongs    map[string]bool
	spoke    time.Time // the last message either way

	hello    *hello // of the present socket
	first    *hello // of the first
	openings []opening
	expected bool            // openings are taken by the part of the run that is at work
	sessions map[string]bool // that the pod gave and that are open
	session  string          // the one that is used
	tunnels  []*tunnel
	last     *question // of the latest MCP request that was asked alone
	report   *Report
}

// hello is an initialize that came.
type hello struct {
	id jsonrpc.ID
	in acp.Initialize
}

// opening is a request that opens a session, or takes one up.
type opening struct {
	id     jsonrpc.ID
	method string
	params []byte
}

// maxOpenings bounds those that wait.
const maxOpenings = 16

// Run plays the pod for one client behind the listener, which it closes. The error is ErrNobody; all else that goes wrong is a row that
// failed.
func Run(ctx context.Context, listener net.Listener, cfg Config) (*Report, error) {
	cfg.defaults()
	ctx, cancel := context.WithCancel(ctx)
	r := &run{
		cfg: cfg, ctx: ctx, sheet: newSheet(), begun: time.Now(), watch: newWatcher(), sessions: map[string]bool{},
		pongs: map[string]bool{}, report: &Report{Address: Address(listener.Addr())},
	}
	if cfg.Progress != nil {
		r.sheet.tell = func(m mark) { cfg.Progress(m.row, m.status, m.why) }
	}
	r.door = openDoor(ctx, listener, cfg.Key)
	defer func() {
		cancel()
		if r.sock != nil {
			r.sock.reset()
		}
		r.door.leave()
	}()
	if !r.check() {
		return nil, ErrNobody
	}
	r.finish()
	return r.report, nil
}

// Address is what a client connects to.
func Address(at net.Addr) string { return "ws://" + at.String() + "/acp" }

// check goes through the whole conversation, as far as the client goes. It is false when nobody came.
func (r *run) check() bool {
	r.waiting("a client to connect")
	if !r.until(r.cfg.Timeout, func() bool { return r.sock != nil }) {
		return r.came
	}
	if !r.greet() || !r.open() {
		return true
	}
	r.askServers()
	r.askAgent()
	r.askTransport()
	r.endConnections()
	r.comeBack()
	return true
}

// finish writes the report, and leaves the client in good order.
func (r *run) finish() {
	why := ""
	switch {
	case r.ctx.Err() != nil:
		why = "the run was stopped"
	case r.sock == nil && r.how != "" && !r.stayed:
		why = "the socket had ended: " + r.how
	}
	r.report.Ended = why
	if r.sock != nil {
		_ = r.sock.close(r.cfg.Patience, 1001, "the check is over")
		r.rest(r.cfg.quiet)
	}
	r.sheet.put(r.watch.verdicts()...)
	r.sheet.report(&r.report.Sheet, why)
	r.report.Millis = time.Since(r.begun).Milliseconds()
}

func (r *run) waiting(what string) {
	if r.cfg.Waiting != nil {
		r.cfg.Waiting(what)
	}
}

// keepalive is when a pod says something because nothing was said.
const keepalive = 20 * time.Second

// until takes events until something holds, or the time is over.
func (r *run) until(d time.Duration, holds func() bool) bool {
	end := time.NewTimer(d)
	defer end.Stop()
	for !holds() {
		awake := time.NewTimer(keepalive)
		select {
		case e := <-r.door.events.ch:
			r.take(e)
		case <-awake.C:
			if r.sock != nil && r.watch.answered && time.Since(r.spoke) >= keepalive {
				r.notify(acp.MethodKeepalive, nil)
			}
		case <-end.C:
			return holds()
		case <-r.ctx.Done():
			return holds()
		}
		awake.Stop()
	}
	return true
}

// rest takes what comes for a while.
func (r *run) rest(d time.Duration) { r.until(d, func() bool { return r.sock == nil }) }

// maxAttempts bounds the moments that are kept.
const maxAttempts = 1024

func (r *run) take(e event) {
	switch e.what {
	case attempted:
		r.came = true
		r.sheet.put(e.entry.marks...)
		if len(r.attempts) < maxAttempts {
			r.attempts = append(r.attempts, e.at)
			if storm := judgeAttempts(r.attempts); storm.status == tally.Fail {
				r.sheet.put(storm)
			}
		}
	case opened:
		r.sock, r.watch, r.how, r.hello, r.openings, r.last, r.spoke = e.socket, newWatcher(), "", nil, nil, nil, time.Now()
		r.door.readers.Go(e.socket.read)
	case ended:
		if e.socket == r.sock {
			r.over(e)
		}
		_ = e.socket.conn.Close()
	case pinged:
		if e.socket == r.sock && !e.socket.quiet.Load() {
			_ = e.socket.raw(r.cfg.Patience, 0xA, true, e.data)
		}
	case ponged:
		if len(r.pongs) < maxOpen {
			r.pongs[string(e.data)] = true
		}
	case said:
		if e.socket == r.sock {
			r.spoke = time.Now()
			f, ok, marks := r.watch.take(e.binary, e.data)
			r.sheet.put(marks...)
			switch {
			case e.socket.quiet.Load():
			case ok:
				r.serve(f)
			case f.Kind == jsonrpc.Request && len(e.data) > requestBytes:
				r.respond(f.ID, nil, jsonrpc.Overloaded(jsonrpc.OverloadData{Scope: jsonrpc.ScopeRequestBytes, Limit: requestBytes, Used: int64(len(e.data)), Size: int64(len(e.data))}))
			}
		}
	}
}

// over notes how a socket ended.
func (r *run) over(e event) {
	s := e.socket
	switch {
	case s.unsound != "" && s.large:
		r.how = s.unsound
		r.sheet.put(failed(rowSizes, s.unsound, "a pod closes with 1009"))
	case s.unsound != "":
		r.how = s.unsound
		r.sheet.put(failed(rowFraming, s.unsound, "a pod ends such a connection"))
	case s.framing.closed:
		r.how = fmt.Sprintf("the client closed with %d", s.framing.code)
	default:
		r.how = "the client's side ended without a close frame"
	}
	r.broken = s.unsound != ""
	r.left = s.unsound == "" && s.framing.closed && (s.framing.code == 1000 || s.framing.code == 1001 || s.framing.code == 1005)
	r.sheet.put(r.watch.verdicts()...)
	r.sock = nil
	r.door.free()
}

// send writes a message to the client.
func (r *run) send(text []byte) {
	if r.sock == nil {
		return
	}
	r.spoke = time.Now()
	if err := r.sock.write(text, r.cfg.patience(rowReads)); err != nil {
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			r.sheet.put(failed(rowReads, fmt.Sprintf("%d bytes were not taken within %v", len(text), r.cfg.patience(rowReads)), "a pod closes a client that does not read"))
			r.sock.reset()
		}
	}
}

func (r *run) notify(method string, params []byte) {
	r.send(jsonrpc.AppendNotification(nil, method, params))
}

func (r *run) respond(id jsonrpc.ID, result []byte, e *jsonrpc.Error) {
	r.watch.done(id)
	if e != nil {
		r.send(jsonrpc.AppendError(nil, id, e))
		return
	}
	r.send(jsonrpc.AppendResult(nil, id, result))
}

// ask sends a request.
func (r *run) ask(method string, params []byte) *question {
	q := r.watch.ask(method)
	r.send(jsonrpc.AppendRequest(nil, q.id, method, params))
	return q
}

// answered waits for the answers to all of them, for a row.
func (r *run) answered(row string, questions ...*question) bool {
	all := func() bool {
		for _, q := range questions {
			if q.reply == nil {
				return false
			}
		}
		return true
	}
	r.until(r.cfg.patience(row), func() bool { return r.sock == nil || all() })
	return all()
}

// unanswered is the mark for an answer that did not come: the client's fault, unless it has left, or broke the frames.
func (r *run) unanswered(row string, what string) mark {
	switch {
	case r.ctx.Err() != nil:
		return skipped(row, "the run was stopped")
	case r.sock == nil && (r.left || r.broken || r.sheet.is(rowReads, tally.Fail)):
		return skipped(row, "the socket had ended: %s", r.how)
	case r.sock == nil:
		return failed(row, r.how, "%s was not answered before the socket ended", what)
	}
	return failed(row, "", "%s was not answered within %v", what, r.cfg.patience(row))
}
