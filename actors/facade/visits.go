package facade

import (
	"net"
	"net/http"
	"sync"
)

// visits knows the open HTTP connections of one generation, and which of them goes when there are too many: the one that
// has been without a request for longest, so that who holds connections without a use for them, or sends a head that never
// ends, keeps nobody out. It is fed by net/http from many goroutines, and decides under its lock in memory alone.
type visits struct {
	most  int
	count func(reason string)

	mu    sync.Mutex
	clock uint64
	open  map[net.Conn]*visit
}

type visit struct {
	busy  bool   // its request has come and is not answered
	since uint64 // by visits.clock
}

func newVisits(most int, count func(string)) *visits {
	return &visits{most: most, count: count, open: map[net.Conn]*visit{}}
}

// changed is the server's ConnState. A connection is active from the end of a request's head on.
func (v *visits) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if out, reason := v.come(conn); out != nil {
			v.count(reason)
			_ = out.Close()
		}
	case http.StateActive:
		v.turn(conn, true)
	case http.StateIdle:
		v.turn(conn, false)
	case http.StateClosed, http.StateHijacked:
		v.gone(conn)
	}
}

// come enters a connection. It gives the one that has to go for it, which is the newcomer when all others are busy.
func (v *visits) come(conn net.Conn) (out net.Conn, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.open) >= v.most {
		if out = v.idlest(); out == nil {
			return conn, "connections"
		}
		reason = "idle_connection"
		delete(v.open, out)
	}
	v.clock++
	v.open[conn] = &visit{since: v.clock}
	return out, reason
}

func (v *visits) turn(conn net.Conn, busy bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.open[conn]; x != nil {
		v.clock++
		x.busy, x.since = busy, v.clock
	}
}

func (v *visits) gone(conn net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, conn)
}

// idlest is the connection that has been without a request for longest, nil when all are busy.
func (v *visits) idlest() (found net.Conn) {
	since := uint64(0)
	for conn, x := range v.open {
		if !x.busy && (found == nil || x.since < since) {
			found, since = conn, x.since
		}
	}
	return found
}
