package session

import (
	"bytes"
	"sync/atomic"
	"time"
)

// life is what the supervisor may read of a session without a turn of it, through all its generations. The session
// writes, the supervisor reads.
type life struct {
	started atomic.Bool            // its first generation has run
	opened  atomic.Bool            // its client got an id and a result: it may be resumed
	ending  atomic.Uint32          // an end, set before the session stops itself
	status  atomic.Pointer[status] // never nil once started
}

// end is how a session stopped itself.
type end uint32

const (
	endUnknown   end = iota // it did not stop itself
	endClosed               // for good
	endSuspended            // its record is kept
	endMoved                // its record is another pod's
)

// status is a snapshot.
type status struct {
	busy      bool // a turn runs, it is being opened, or it is on its way out
	idleSince time.Time
	client    Client // nil: nobody is attached
	carried
}

func (s *status) same(o *status) bool {
	return s.busy == o.busy && s.idleSince.Equal(o.idleSince) && s.client == o.client && bytes.Equal(s.lastTurn, o.lastTurn) &&
		s.missed == o.missed && s.missedB == o.missedB && s.inner == o.inner && s.memory == o.memory
}
