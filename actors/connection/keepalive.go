package connection

import (
	"time"

	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/kernel"
)

// pulse is what a heartbeat decides from.
type pulse struct {
	now    time.Time
	data   time.Time // of the last data frame either way, or of the keep-alive that is on its way
	heard  time.Time // of the last byte that came in
	pinged time.Time // of the ping that nothing came in after; zero without one
	due    time.Time // when this heartbeat was to come; zero for the first
}

// beat is what a heartbeat does.
type beat struct {
	keepalive, ping, dead bool
	answered              bool // something came in after the ping
	next                  time.Duration
}

// standstill is how late a heartbeat comes when the pod, or the machine, stood still: what the peer sent meanwhile is not read yet.
const standstill = time.Second

// minBeat keeps heartbeats apart, whatever is configured.
const minBeat = 5 * time.Millisecond

// decide keeps a client's worker awake by data frames, which pings are not, and finds peers that are gone without a word: a
// ping goes out when nothing came in for keepalive, and something must come in within pong.
func decide(p pulse, keepalive, pong time.Duration) beat {
	var b beat
	b.answered = !p.pinged.IsZero() && p.heard.After(p.pinged)
	quiet := p.now.Sub(p.data)
	if b.keepalive = quiet >= keepalive; b.keepalive {
		quiet = 0
	}
	b.next = keepalive - quiet
	pinging := !p.pinged.IsZero() && !b.answered
	if silent := p.now.Sub(p.heard); !pinging {
		if b.ping = silent >= keepalive; b.ping {
			b.next = min(b.next, pong)
		} else {
			b.next = min(b.next, keepalive-silent)
		}
	} else {
		waited := p.now.Sub(p.pinged)
		late := !p.due.IsZero() && p.now.Sub(p.due) > standstill
		switch b.dead = waited >= pong; {
		case b.dead && late: // asked once more, from now
			b.dead, b.ping = false, true
			b.next = min(b.next, pong)
		default:
			b.next = min(b.next, pong-waited)
		}
	}
	b.next = max(b.next, minBeat)
	return b
}

// tick is one heartbeat.
func (a *conn) tick(c *kernel.Ctx) error {
	w := a.seat.wire
	p := pulse{now: time.Now(), data: moment(w.data.Load()), heard: moment(w.heard.Load()), pinged: a.pinged, due: a.due}
	if a.kept.After(p.data) {
		p.data = a.kept
	}
	if w.paused.Load() {
		p.heard = p.now
	}
	b := decide(p, a.cfg.Keepalive, a.cfg.PongTimeout)
	if b.dead {
		return &Exit{Reason: PongTimeout}
	}
	if b.answered {
		a.pinged = time.Time{}
	}
	if b.keepalive {
		a.kept = p.now
		a.client.send(jsonrpc.AppendNotification(nil, acp.MethodKeepalive, nil))
	}
	if b.ping {
		a.pinged = p.now
		a.pings.Add(1)
		a.client.out.ping()
	}
	a.show(c)
	a.due = p.now.Add(b.next)
	c.After(b.next, heartbeat{})
	return nil
}
