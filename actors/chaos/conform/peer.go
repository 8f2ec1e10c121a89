package conform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// peer is one connection of a row: it sends, keeps all that comes in order, and serves tools back.
type peer struct {
	a      *attempt
	socket *wire.Socket
	in     chan incoming // from the reader
	done   chan func()   // results of work beside the row; run by the row when it waits
	over   chan struct{} // the reader has ended

	seen     []message
	ended    error          // how the socket ended, nil while it is open
	sent     map[string]int // open requests by id: how many answers are due
	answered map[string][]message
	hooks    map[string]func(message) // take an answer when it comes
	faults   []string                 // what no row allows
	next     int
	servers  []*server
	permit   string     // the option that is chosen when the agent asks; "" lets it know that nobody chose
	sessions []*session // to be closed
}

type incoming struct {
	opcode byte
	data   []byte
	err    error
}

// backlog is how many frames wait between the reader and the row. A row that does not read holds up the pod, as any client
// does that is slow.
const backlog = 256

// closePatience bounds what a row does for the sake of order when it is over.
const closePatience = 2 * time.Second

// dial opens a socket; how may change the way in. The error is for rows that expect one.
func (a *attempt) dial(how ...func(*wire.Dial)) (*peer, error) {
	d := wire.Dial{URL: a.cfg.Target, Timeout: a.cfg.Patience}
	if a.survey.keyed || a.cfg.Key != "" {
		d.Key = a.cfg.Key
	}
	for _, change := range how {
		change(&d)
	}
	socket, err := wire.Open(a.ctx, d)
	if err != nil {
		return nil, err
	}
	p := &peer{a: a, socket: socket, in: make(chan incoming, backlog), done: make(chan func(), backlog), over: make(chan struct{}),
		sent: map[string]int{}, answered: map[string][]message{}, hooks: map[string]func(message){}}
	a.peers = append(a.peers, p)
	go p.read(a.ctx)
	return p, nil
}

func (p *peer) read(ctx context.Context) {
	defer close(p.over)
	for {
		opcode, data, err := p.socket.Message()
		select {
		case p.in <- incoming{opcode, data, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// hangUp ends the connection, and the reader with it.
func (p *peer) hangUp() {
	p.socket.Reset()
	for {
		select {
		case <-p.in:
		case <-p.over:
			return
		}
	}
}

// enter opens a socket and fails the row when the pod does not let it in.
func (a *attempt) enter(how ...func(*wire.Dial)) *peer {
	p, err := a.dial(how...)
	if err != nil {
		a.fail(explain(err), "the pod does not let this client in: %s", jsonrpc.Show(err.Error()))
	}
	return p
}

// greeted opens a socket and initializes it; meta becomes the request's _meta.
func (a *attempt) greeted(meta ...object) *peer {
	p := a.enter()
	p.hello(meta...)
	return p
}

func (p *peer) hello(meta ...object) message {
	params := object{"protocolVersion": 1, "clientInfo": object{"name": "acpod-chaos wire-check", "version": "1"}, "clientCapabilities": object{}}
	if len(meta) > 0 {
		params["_meta"] = meta[0]
	}
	return p.call("initialize", params)
}

// raw sends one text frame as it is.
func (p *peer) raw(frame string) {
	if err := p.write(frame); err != nil {
		p.until(func() bool { return p.ended != nil }) // how the pod ended it says more than our write does
		p.a.fail(p.how(), "the pod takes no frame of %d bytes: %v", len(frame), err)
	}
}

// write sends one text frame, and gives up when the pod does not take it.
func (p *peer) write(frame string) error {
	conn := p.socket.NetConn()
	_ = conn.SetWriteDeadline(time.Now().Add(p.a.cfg.Patience))
	err := p.socket.Text([]byte(frame))
	_ = conn.SetWriteDeadline(time.Time{}) // the reader answers pings
	return err
}

// expect enters a request that a row writes by hand.
func (p *peer) expect(id string) { p.sent[id]++ }

// send sends a request and gives the literal of its id.
func (p *peer) send(method string, params any) string {
	p.next++
	id := fmt.Sprintf(`"w%d"`, p.next)
	p.expect(id)
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, literal(method), encode(params)))
	return id
}

// literal is text as JSON.
func literal(text string) []byte { return jsonrpc.AppendString(nil, text) }

// notify sends a notification.
func (p *peer) notify(method string, params any) {
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":%s,"params":%s}`, literal(method), encode(params)))
}

// answer waits for the first answer to a request that no other call has taken.
func (p *peer) answer(id string) message {
	p.await("an answer to "+id, func() bool { return len(p.answered[id]) > 0 })
	m := p.answered[id][0]
	p.answered[id] = p.answered[id][1:]
	return m
}

// call sends a request and wants a result.
func (p *peer) call(method string, params any) message {
	m := p.answer(p.send(method, params))
	if m.Error != nil {
		p.a.fail(m.show(), "%s was refused: %s", method, jsonrpc.Show(m.fault().Message))
	}
	return m
}

// refused wants a message to be the error with that code.
func (p *peer) refused(m message, code int, about string) *jsonrpc.Error {
	if m.Error == nil || m.fault().Code != code {
		p.a.fail(m.show(), "%s is not answered %d", about, code)
	}
	return m.fault()
}

// until waits for something and says whether it came before the socket ended, or the row's patience.
func (p *peer) until(holds func() bool) bool { return p.within(p.a.cfg.Patience, holds) }

func (p *peer) within(patience time.Duration, holds func() bool) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !holds() {
		var in chan incoming
		if p.ended == nil {
			in = p.in
		} else if len(p.done) == 0 && p.idle() {
			return false
		}
		select {
		case one := <-in:
			p.take(one)
		case f := <-p.done:
			f()
		case <-timer.C:
			return holds()
		case <-p.a.ctx.Done():
			return holds()
		}
	}
	return true
}

// idle reports that nothing runs beside the row for this peer.
func (p *peer) idle() bool {
	for _, s := range p.sessions {
		if s.beside > 0 {
			return false
		}
	}
	return true
}

// await is until, and fails the row; at once when something came that no row allows.
func (p *peer) await(what string, holds func() bool) {
	if p.until(func() bool { return holds() || len(p.faults) > 0 }) && holds() {
		return
	}
	switch {
	case len(p.faults) > 0:
		p.a.fail(p.faults[0], "%s did not come", what)
	case p.ended != nil:
		p.a.fail(p.how(), "the connection ended before %s", what)
	case p.a.ctx.Err() != nil:
		p.a.fail(p.latest(), "%s did not come before the run was over", what)
	}
	p.a.fail(p.latest(), "%s did not come within %v", what, p.a.cfg.Patience)
}

// rest reads for a while, for what must not come.
func (p *peer) rest(d time.Duration) { p.within(d, func() bool { return false }) }

// latest is the newest thing that came, for a report.
func (p *peer) latest() string {
	if len(p.seen) == 0 {
		return ""
	}
	return "last " + p.seen[len(p.seen)-1].show()
}

// how is how the socket ended.
func (p *peer) how() string {
	if p.ended == nil {
		return p.latest()
	}
	return explain(p.ended)
}

// closed waits for the pod to close the socket and wants that code.
func (p *peer) closed(code int) {
	if !p.until(func() bool { return p.ended != nil }) {
		p.a.fail(p.latest(), "the connection was not closed within %v", p.a.cfg.Patience)
	}
	if end, ok := errors.AsType[*wire.Closed](p.ended); !ok || end.Code != code {
		p.a.fail(p.how(), "the connection did not end with close code %d", code)
	}
}

// take notes one thing that came, and serves it when it is for a server.
func (p *peer) take(one incoming) {
	if one.err != nil {
		p.ended = one.err
		if broken, ok := errors.AsType[*wire.Violation](one.err); ok {
			p.fault("%s", broken)
		}
		return
	}
	frame, wrong := jsonrpc.Scan(one.data)
	m := message{frame, one.data, len(p.seen)}
	p.seen = append(p.seen, m)
	switch {
	case one.opcode != wire.TextFrame:
		p.fault("a binary frame of %d bytes", len(one.data))
	case wrong != nil && m.Kind != jsonrpc.Response: // which it says of an answer whose id the pod would not have given
		p.fault("a frame that is no JSON-RPC: %s", jsonrpc.Show(string(one.data)))
	case m.Kind == jsonrpc.Response:
		id := m.id()
		if p.sent[id]--; p.sent[id] < 0 {
			p.fault("an answer that nobody asked for: %s", m.show())
			return
		}
		if hook := p.hooks[id]; hook != nil {
			delete(p.hooks, id)
			hook(m)
			return
		}
		p.answered[id] = append(p.answered[id], m)
	default:
		p.serve(m)
	}
}

func (p *peer) fault(format string, values ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, values...))
}

// ping is a round trip: what the pod had to say at once has come before it.
func (p *peer) ping() {
	m := p.answer(p.send("_wirecheck/ping", object{}))
	_ = p.refused(m, jsonrpc.MethodNotFound, "an unknown method")
}

// silent wants the pod to say nothing to what f does, its own notifications aside, and to be there after it.
func (p *peer) silent(about string, f func()) {
	from := len(p.seen)
	f()
	p.ping()
	for _, m := range p.seen[from : len(p.seen)-1] {
		if m.Kind == jsonrpc.Response || len(p.faults) > 0 {
			p.a.fail(m.show(), "%s was answered", about)
		}
	}
	if len(p.faults) > 0 {
		p.a.fail(p.faults[0], "%s was answered", about)
	}
}

// received are the frames of a method so far.
func (p *peer) received(method string) []message {
	var found []message
	for _, m := range p.seen {
		if m.HasMethod && m.Method == method {
			found = append(found, m)
		}
	}
	return found
}
