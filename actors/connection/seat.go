package connection

import (
	"net"
	"net/netip"
	"sync"

	"github.com/lxzan/gws"

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

	once sync.Once
	free func()
}

// leave closes the socket and gives the seat back, once, from any goroutine.
func (s *seat) leave() {
	s.once.Do(func() {
		if s.socket != nil {
			_ = s.socket.Close()
		}
		s.reserve.Release()
		s.account.Close()
		s.free()
	})
}

// seats counts who is in. It is shared by the goroutines of the HTTP server, so it has a lock.
type seats struct {
	limit, perAddress int

	mu        sync.Mutex
	open      int
	last      uint64
	byAddress map[netip.Addr]int
}

func newSeats(limit, perAddress int) *seats {
	return &seats{limit: limit, perAddress: perAddress, byAddress: map[netip.Addr]int{}}
}

// take gives a seat its number and a function that gives it back, or names the limit that is reached.
func (s *seats) take(addr netip.Addr) (number uint64, free func(), full string) {
	addr = addr.Unmap()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open >= s.limit:
		return 0, nil, "connections"
	case s.perAddress > 0 && s.byAddress[addr] >= s.perAddress:
		return 0, nil, "connections_per_address"
	}
	s.open++
	s.last++
	if s.perAddress > 0 {
		s.byAddress[addr]++
	}
	return s.last, func() { s.give(addr) }, ""
}

func (s *seats) give(addr netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.byAddress[addr]--; s.byAddress[addr] <= 0 {
		delete(s.byAddress, addr)
	}
}

func (s *seats) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
