package tunnel

import (
	"errors"
	"sync/atomic"
)

// Stats counts the MCP connections of all tunnels that were given the same one. Each connection opened is closed once, in one of
// the ways: what is open now is Opened minus their sum. Its methods are safe from any goroutine; a nil one counts nothing.
type Stats struct {
	opened, disconnected, unanswered, socketGone, late, taken atomic.Int64
}

// Connections is a snapshot of [Stats].
type Connections struct {
	Opened       int64 // the client answered mcp/connect with an id
	Disconnected int64 // it was told mcp/disconnect and answered; a generation that has no answer, or no disconnect, counts here
	Unanswered   int64 // it was told, and gave no good answer in time
	SocketGone   int64 // its socket ended first, and it with the socket
	Late         int64 // its answer came when nobody wanted it any more, and it was told at once
	Taken        int64 // its id was that of another on the same socket: to close it would have closed that one
}

// Snapshot reads all counts. What was closed is read before what was opened, so that never more seem closed than opened.
func (s *Stats) Snapshot() Connections {
	if s == nil {
		return Connections{}
	}
	c := Connections{Disconnected: s.disconnected.Load(), Unanswered: s.unanswered.Load(), SocketGone: s.socketGone.Load(), Late: s.late.Load(), Taken: s.taken.Load()}
	c.Opened = s.opened.Load()
	return c
}

func (s *Stats) open() {
	if s != nil {
		s.opened.Add(1)
	}
}

func (s *Stats) dismissed() {
	if s != nil {
		s.late.Add(1)
	}
}

// closed counts an end of which the disconnect gave err, nil when all was well.
func (s *Stats) closed(err error) {
	switch {
	case s == nil:
	case errors.Is(err, ErrGone):
		s.socketGone.Add(1)
	case err != nil:
		s.unanswered.Add(1)
	default:
		s.disconnected.Add(1)
	}
}

// unbound counts a connection that could not be told from another one, or whose socket had ended: err is the carrier's.
func (s *Stats) unbound(err error) {
	switch {
	case s == nil:
	case errors.Is(err, ErrGone):
		s.socketGone.Add(1)
	default:
		s.taken.Add(1)
	}
}
