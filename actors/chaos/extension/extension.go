package extension

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/peer"
	"github.com/acpod/acpod/actors/chaos/server"
)

// tick is how often an extension looks around and draws.
const tick = 500 * time.Millisecond

// Extension is one simulated client. Run and Leave are for one goroutine.
type Extension struct {
	w      *World
	number int
	secret string
	slots  []*slot
	peer   *peer.Peer // the socket that owns the sessions; nil without one

	lives, ticks, turns, servings int // how often it has drawn, by kind
	lost                          int // sessions that were asked for on a socket that ended before the answer

	mu      sync.Mutex
	servers map[string]*server.Server // by declared id, also those that are over
	odd     map[int]int               // errors with the id null on the present socket, by code
	talks   map[string]*Turns         // by session, where there is the demo agent
	calm    bool                      // no faults any more
}

// slot is one session of the extension.
type slot struct {
	index  int    // in the world's directory
	id     string // "" = none is open
	number int
	server *server.Server
	entry  *Entry
	ending bool // its close was asked for, and may have been done although the answer was lost
}

// New makes the extension with that number, whose sessions have the places of the directory from first on.
func New(w *World, number, first, sessions int) *Extension {
	e := &Extension{
		w: w, number: number, servers: map[string]*server.Server{}, talks: map[string]*Turns{}, odd: map[int]int{},
		secret: fmt.Sprintf("cnry-client-%d-%016x", number, w.Dice.Of("secret", number, 0).Uint64()),
	}
	w.Secret(e.secret)
	for i := range sessions {
		e.slots = append(e.slots, &slot{index: first + i})
	}
	return e
}

// Run lives until ctx ends. The socket that it has then stays open for Leave.
func (e *Extension) Run(ctx context.Context) {
	for ctx.Err() == nil {
		e.lives++
		r := e.w.Dice.Of("dial", e.number, e.lives)
		if err := e.arrive(ctx, r); err != nil {
			e.drop()
			e.pause(ctx, 50*time.Millisecond+time.Duration(r.Int64N(int64(500*time.Millisecond))))
			continue
		}
		e.live(ctx)
		if ctx.Err() == nil {
			e.pause(ctx, time.Duration(r.Int64N(int64(300*time.Millisecond))))
		}
	}
}

// live serves on the present socket until that ends or a fault has left it.
func (e *Extension) live(ctx context.Context) {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for e.peer != nil {
		select {
		case <-ctx.Done():
			return
		case <-e.peer.Gone():
			e.w.Doings.Count(fmt.Sprintf("socket_closed_%d", e.peer.CloseCode()))
			e.drop()
			return
		case now := <-clock.C:
			e.look(now)
			e.ticks++
			r := e.w.Dice.Of("life", e.number, e.ticks)
			if name := e.w.Faults.DrawFor(r, fault.Life, tick.Seconds()); name != "" {
				e.inflict(ctx, name, r)
			} else if r.Float64() < 0.005 {
				e.renew(ctx)
			} else if r.Float64() < 0.005 {
				e.list(ctx)
			}
		}
	}
}

// look checks what is owed on the present socket.
func (e *Extension) look(now time.Time) {
	e.peer.Check(now, DisconnectGrace)
	for _, s := range e.known() {
		s.Overdue(now, e.w.Limits.Tunnel+e.w.Limits.Orphan+30*time.Second)
	}
}

func (e *Extension) known() []*server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*server.Server, 0, len(e.servers))
	for _, s := range e.servers {
		all = append(all, s)
	}
	return all
}

// drop lets the present socket go, with a reset when it still lives.
func (e *Extension) drop() {
	if e.peer != nil {
		e.peer.Reset()
		e.peer.Wait()
		e.peer = nil
	}
}

func (e *Extension) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (e *Extension) isCalm() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calm
}

// inflict does one fault of a socket's life.
func (e *Extension) inflict(ctx context.Context, name string, r *rand.Rand) {
	if len(e.slots) == 0 && (name == "flood" || name == "duplicate" || name == "replace") {
		return // they are about sessions, and it is one of those that have none
	}
	switch name {
	case "drop":
		e.hangUp(r)
	case "halfopen":
		e.vanish(r)
	case "slowread":
		e.readSlowly(ctx, r)
	case "slowwrite":
		e.writeSlowly(ctx, r)
	case "flood":
		e.flood(ctx, r)
	case "oversize":
		e.oversize(ctx, r)
	case "malformed":
		e.malform(ctx, r)
	case "hostiletext":
		e.hostile(ctx, r)
	case "duplicate":
		e.repeat(ctx, r)
	case "replace":
		e.replace(ctx, r)
	}
}
