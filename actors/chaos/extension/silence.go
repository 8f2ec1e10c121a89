package extension

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/proxy"
	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// vanish leaves the socket half-open: the pod gets no byte and no end any more. It has to find out by itself.
func (e *Extension) vanish(*rand.Rand) {
	p := e.peer
	e.peer = nil
	p.Abandon()
	link, proxied := p.Socket().NetConn().(*proxy.Link)
	left := p.Gone()
	if proxied {
		e.w.Faults.Injected("halfopen", "silent")
		link.Silence()
		left = link.PodLeft()
	} else {
		e.w.Faults.Injected("halfopen", "mute")
	}
	bound := e.w.Limits.Keepalive + e.w.Limits.Pong + e.w.Limits.Write + 20*time.Second
	e.w.beside(func(<-chan struct{}) { // also after the run: the pod has to find out, and does so soon
		select {
		case <-left:
			e.w.Book.Exercise(invariant.BackToBaseline)
		case <-time.After(bound):
			e.w.Book.Break(invariant.BackToBaseline, []string{p.Name()}, "%s: a socket whose client is gone without a word is still open after %s", p.Name(), bound)
		}
		if proxied {
			link.Reset()
			link.Wait()
		}
		p.Reset()
		p.Wait()
	})
}

// readSlowly reads nothing for a while, and asks for answers meanwhile.
func (e *Extension) readSlowly(ctx context.Context, r *rand.Rand) {
	p := e.peer
	if _, slow := p.Socket().NetConn().(*proxy.Link); !slow && r.IntN(3) == 0 {
		e.deafen(p)
		return
	}
	e.w.Faults.Injected("slowread", "socket")
	resume := p.Pause()
	for range 200 + r.IntN(800) {
		p.Ask("_chaos/unread", pad(r.IntN(2000)), 2*Patience)
	}
	wait := time.Duration(r.Int64N(int64(4 * time.Second)))
	select {
	case <-ctx.Done():
	case <-p.Gone():
	case <-time.After(wait):
	}
	resume()
}

// unreadAnswers is how many answers a deaf socket asks for: more bytes than the system keeps for it, and more than the pod does.
const unreadAnswers = 60_000

// deafen leaves a socket that asks for more and more and never reads again. It is not silent, so that no missing pong gives it away. The
// pod may keep little for it, and not for long: it has to close it.
func (e *Extension) deafen(p *peer.Peer) {
	e.w.Faults.Injected("slowread", "deaf")
	e.peer = nil
	if buffered, ok := p.Socket().NetConn().(interface{ SetReadBuffer(int) error }); ok {
		_ = buffered.SetReadBuffer(4 << 10)
	}
	resume := p.Pause()
	for range unreadAnswers {
		p.Ask("_chaos/unread", nil, 10*Patience)
	}
	written := make(chan struct{})
	p.Do(func(*wire.Socket) error { close(written); return nil })
	deaf := e.w.Limits.Write + 10*time.Second
	e.w.beside(func(stop <-chan struct{}) {
		over := make(chan struct{})
		defer close(over)
		go murmur(p, over)
		brief := time.After(deaf)
		if deaf > time.Minute {
			select { // the bounds of a pod that runs are long; it is not waited for at the end
			case <-stop:
				p.Reset()
				p.Wait()
				return
			case <-brief:
			}
		} else {
			<-brief
		}
		asked := false
		select {
		case <-written:
			asked = true
		default: // a machine that has not even sent it all proves nothing
		}
		resume()
		if !asked {
			p.Reset()
			p.Wait()
			return
		}
		select {
		case <-p.Gone():
			e.w.Book.Exercise(invariant.Told)
		case <-p.Ask("_chaos/fence", nil, 10*Patience):
			e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s read nothing for %s while %d answers waited, and is still served", p.Name(), deaf, unreadAnswers)
		case <-time.After(Patience):
			e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s read nothing for %s while %d answers waited, and is still open", p.Name(), deaf, unreadAnswers)
		}
		p.Reset()
		p.Wait()
	})
}

// murmur says something that needs no answer, now and then.
func murmur(p *peer.Peer, over <-chan struct{}) {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		select {
		case <-over:
			return
		case <-clock.C:
			p.Do(func(s *wire.Socket) error { return s.Frame(wire.PongFrame, true, nil) })
		}
	}
}

// writeSlowly writes a frame a byte at a time, or a part of one and no more.
func (e *Extension) writeSlowly(ctx context.Context, r *rand.Rand) {
	p := e.peer
	if r.IntN(3) == 0 {
		e.w.Faults.Injected("slowwrite", "stall")
		frame := jsonrpc.AppendNotification(nil, "_chaos/stalled", pad(e.w.Limits.Request/2))
		p.Do(func(s *wire.Socket) error {
			return s.Raw(append(wire.Header(wire.TextFrame, true, int64(len(frame))), frame[:len(frame)/2]...))
		})
		e.peer = nil
		e.stall(p)
		return
	}
	e.w.Faults.Injected("slowwrite", "dribble")
	id := p.NewID()
	answer := p.Expect(id, "_chaos/dribbled", Patience)
	frame := jsonrpc.AppendRequest(nil, id, "_chaos/dribbled", pad(64+r.IntN(256)))
	p.Do(func(s *wire.Socket) error {
		for _, b := range append(wire.Header(wire.TextFrame, true, int64(len(frame))), frame...) {
			if err := s.Raw([]byte{b}); err != nil {
				return err
			}
			<-time.After(time.Millisecond)
		}
		return nil
	})
	e.await(ctx, p, answer)
}

// frameDeadline is what the pod gives one frame, from its first byte to its last (docs/limits.md), and some more.
const frameDeadline = 30*time.Second + 12*time.Second

// stall holds a socket with half a frame on it and wants the pod to close it. The first one of a run is waited for also when that ends
// before: a run may be shorter than what the pod gives a frame.
func (e *Extension) stall(p *peer.Peer) {
	first := e.w.stalls.Add(1) == 1
	e.w.beside(func(stop <-chan struct{}) {
		if first {
			stop = nil
		}
		select {
		case <-stop:
		case <-p.Gone():
			e.w.Book.Exercise(invariant.Told)
		case <-time.After(frameDeadline):
			e.w.Book.Break(invariant.Told, []string{p.Name()}, "%s: half a frame came %s ago, and the pod still waits for the rest", p.Name(), frameDeadline)
		}
		p.Reset()
		p.Wait()
	})
}

// await waits for an answer, the end of its socket, or the end of the run.
func (e *Extension) await(ctx context.Context, p *peer.Peer, answer <-chan peer.Reply) (peer.Reply, bool) {
	select {
	case reply := <-answer:
		return reply, true
	case <-p.Gone():
		return peer.Reply{}, false
	case <-ctx.Done():
		return peer.Reply{}, false
	}
}
