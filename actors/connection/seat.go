package connection

import (
	"container/list"
	"net"
	"sync"
	"time"

	"github.com/lxzan/gws"

	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// connectionReserve is charged to each connection for its life: buffers, goroutines, and what keeps errors possible when the
// account is full.
const connectionReserve = 16 << 10

// seat is one accepted socket, from the upgrade to its close.
type seat struct {
	number   uint64 // accept number
	id       string // of the Acp-Connection-Id header
	identity string
	peer     string // the socket's own address
	loopback bool
	account  *kernel.Account
	reserve  *kernel.Lease
	socket   net.Conn
	wire     *wire
	gws      *gws.Conn
	reader   *reader

	once     sync.Once
	entrance *entrance
	slot     *admission.Slot  // of the socket: its connection and, until its initialize, its handshake
	owned    *admission.Group // of the sessions that the connection owns or opens
	name     string           // under which those are counted

	// Guarded by the entrance.
	ref   kernel.Ref    // zero until it has an actor
	since time.Time     // it came in
	waits *list.Element // until its initialize
}

// leave closes the socket and gives the seat back, once, from any goroutine.
func (s *seat) leave() {
	s.once.Do(func() {
		if s.socket != nil {
			_ = s.socket.Close()
		}
		s.reserve.Release()
		if s.account != nil {
			s.account.Close()
		}
		s.entrance.leave(s)
	})
}
