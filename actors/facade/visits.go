package facade

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// mostHeads is how many connections may be in the middle of a request's head at once. A head is on no account: who sends
// it is not known before it has come. Of a sound client it comes in one piece, so this many are only ever slow on purpose.
const mostHeads = 128

// stage is where a connection stands.
type stage uint8

const (
	idle    stage = iota // between two requests, or before the first
	reading              // a head has begun and is not whole
	serving              // its request is on an account
)

// visits knows the open HTTP connections of one generation, and which of them goes when there are too many: the one that
// has been idle longest, so that who holds connections without a use for them keeps nobody out. It is fed by net/http
// from many goroutines, and decides under its lock in memory alone.
type visits struct {
	most, heads int
	count       func(reason string)

	mu     sync.Mutex
	clock  uint64
	open   map[net.Conn]*visit
	inHead int
}

type visit struct {
	stage stage
	since uint64 // by visits.clock
}

func newVisits(most, heads int, count func(string)) *visits {
	return &visits{most: most, heads: heads, count: count, open: map[net.Conn]*visit{}}
}

// changed is the server's ConnState.
func (v *visits) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		v.leave(v.come(conn))
	case http.StateActive:
		v.leave(v.turn(conn, reading))
	case http.StateIdle:
		v.turn(conn, idle)
	case http.StateClosed, http.StateHijacked:
		v.gone(conn)
	}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// carried is the server's ConnContext.
func carried(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// serve notes that the head of a request is whole.
func (v *visits) serve(r *http.Request) {
	if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		v.turn(conn, serving)
	}
}

// come enters a connection. It gives the one that has to go for it, which is the newcomer when all others are in use.
func (v *visits) come(conn net.Conn) (out net.Conn, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.open) >= v.most {
		if out = v.longest(idle); out == nil {
			out = v.longest(reading)
		}
		if out == nil {
			return conn, "connections"
		}
		v.drop(out)
		reason = "idle_connection"
	}
	v.clock++
	v.open[conn] = &visit{stage: idle, since: v.clock}
	return out, reason
}

// turn moves a connection to another stage. It gives the one whose head takes longest when too many heads are on their way.
func (v *visits) turn(conn net.Conn, to stage) (out net.Conn, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x := v.open[conn]
	if x == nil {
		return nil, ""
	}
	v.clock++
	v.inHead += inHead(to) - inHead(x.stage)
	x.stage, x.since = to, v.clock
	if v.inHead > v.heads {
		out, reason = v.longest(reading), "slow_head"
		v.drop(out)
	}
	return out, reason
}

func (v *visits) gone(conn net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop(conn)
}

func (v *visits) drop(conn net.Conn) {
	if x := v.open[conn]; x != nil {
		v.inHead -= inHead(x.stage)
		delete(v.open, conn)
	}
}

func inHead(s stage) int {
	if s == reading {
		return 1
	}
	return 0
}

// longest is the connection that has been in a stage for longest, nil when none is.
func (v *visits) longest(in stage) (found net.Conn) {
	since := uint64(0)
	for conn, x := range v.open {
		if x.stage == in && (found == nil || x.since < since) {
			found, since = conn, x.since
		}
	}
	return found
}

// leave closes a connection that has to go.
func (v *visits) leave(conn net.Conn, reason string) {
	if conn != nil {
		v.count(reason)
		_ = conn.Close()
	}
}
