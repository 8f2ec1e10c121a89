package peer

import (
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// writePatience is how long one write may wait for a pod that does not read. It must read always: its reader waits for bytes on an
// account for 5 s at most, and closes then.
const writePatience = 60 * time.Second

func (p *Peer) read() {
	defer p.done.Done()
	for {
		p.mu.Lock()
		hold := p.hold
		p.mu.Unlock()
		if hold != nil {
			<-hold
			continue
		}
		message, err := p.socket.Read()
		if err != nil {
			p.end(err)
			return
		}
		if !p.frozen.Load() {
			p.handle(message)
		}
	}
}

func (p *Peer) handle(message []byte) {
	f, fault := jsonrpc.Scan(message)
	switch {
	case fault != nil:
		p.o.Book.Break(invariant.Told, []string{p.o.Name}, "%s: the pod sent a frame that is no message: %v: %.300q", p.o.Name, fault, message)
	case f.Kind == jsonrpc.Response && f.ID.IsNull():
		if p.o.Odd != nil {
			p.o.Odd(jsonrpc.ParseError(f.Error))
		}
	case f.Kind == jsonrpc.Response:
		key := string(f.ID.Raw())
		p.Requests.Answer(key)
		p.mu.Lock()
		answer := p.pending[key]
		delete(p.pending, key)
		p.mu.Unlock()
		if answer == nil {
			return // the second answer to an id that was used twice
		}
		reply := Reply{Result: f.Result}
		if f.Error != nil {
			reply.Error = jsonrpc.ParseError(f.Error)
		}
		answer <- reply
	default:
		if f.Kind == jsonrpc.Request {
			p.Asked.Ask(string(f.ID.Raw()), f.Method)
		}
		p.o.Serve(p, f)
	}
}

func (p *Peer) end(err error) {
	p.socket.Reset()
	p.cause = err
	p.mu.Lock()
	p.closed = true
	p.queue = nil
	p.mu.Unlock()
	p.Requests.Close()
	p.Connections.Close()
	if p.o.Traffic != nil {
		p.o.Traffic.In.Add(p.socket.BytesIn())
		p.o.Traffic.Out.Add(p.socket.BytesOut())
	}
	close(p.gone)
}

func (p *Peer) write() {
	defer p.done.Done()
	for {
		select {
		case <-p.gone:
			return
		case <-p.queued:
		}
		p.mu.Lock()
		queue := p.queue
		p.queue = nil
		p.mu.Unlock()
		for _, f := range queue {
			_ = p.socket.NetConn().SetWriteDeadline(time.Now().Add(writePatience))
			err := f(p.socket)
			_ = p.socket.NetConn().SetWriteDeadline(time.Time{}) // the reader answers pings, however long ago this was
			if err != nil {
				p.stuck(err)
				return
			}
		}
	}
}

// stuck ends the socket after a write that failed. A close of the pod may still be read.
func (p *Peer) stuck(error) {
	p.mu.Lock()
	p.closed = true
	p.queue = nil
	p.mu.Unlock()
	_ = p.socket.NetConn().SetReadDeadline(time.Now().Add(5 * time.Second))
}
