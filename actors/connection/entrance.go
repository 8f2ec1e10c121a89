package connection

import (
	"container/list"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

const (
	// retryAfter is what a client that is turned away is told.
	retryAfter = 5 * time.Second
	// sessionRetry is the same for a session too many of one connection.
	sessionRetry = time.Second
	// maxClosing bounds the sockets that are only told why they must go: those displaced, and those with a wrong key. They
	// count no more among the connections and must not pile up either.
	maxClosing = 256
	// closingLinger is how long a displaced socket is waited for after its close frame.
	closingLinger = 250 * time.Millisecond
)

// entrance decides who gets in: it claims the slots of a socket before anything is done for it, and knows which sockets wait for
// their initialize and since when. It is shared by the goroutines of the HTTP server, which have to know before there is an
// actor, so it has a lock.
type entrance struct {
	desk                                          *admission.Desk
	connections, perAddress, handshakes, sessions *admission.Limit
	closing                                       *admission.Limit
	patience                                      time.Duration
	last                                          atomic.Uint64

	mu      sync.Mutex
	waiting list.List // of *seat, the longest waiting first
}

func newEntrance(cfg *Config) *entrance {
	desk := cfg.Admission
	return &entrance{
		desk:        desk,
		connections: desk.Limit("connections", cfg.Connections, retryAfter),
		perAddress:  desk.Limit("connections_per_address", cfg.ConnectionsPerAddress, retryAfter),
		handshakes:  desk.Limit("handshakes", cfg.Handshakes, retryAfter),
		sessions:    desk.Limit("sessions_per_connection", cfg.SessionsPerConnection, sessionRetry),
		closing:     desk.Limit("closing", maxClosing, retryAfter),
		patience:    cfg.HandshakePatience,
	}
}

// enter gives a socket of that address its seat, among those who have still to say initialize. When there is no room, the one
// that has waited longest for that, at least for the patience, has to go for it: displaced is its actor, which the caller stops. So
// sockets that say nothing keep nobody out.
func (e *entrance) enter(address netip.Addr, now time.Time) (s *seat, displaced kernel.Ref, err error) {
	claims := []admission.Claim{e.connections.Claim(), e.perAddress.Of(addressOf(address)), e.handshakes.Claim()}
	e.mu.Lock()
	defer e.mu.Unlock()
	var slot *admission.Slot
	if !e.desk.Fits(claims...) {
		slot, displaced = e.displace(now, claims)
	}
	if slot == nil {
		if slot, err = e.desk.Admit(claims...); err != nil {
			return nil, kernel.Ref{}, err
		}
	}
	s = e.seat(slot)
	s.since = now
	s.waits = e.waiting.PushBack(s)
	return s, displaced, nil
}

// enterToLeave gives a seat to a socket that is only told why it is refused.
func (e *entrance) enterToLeave(address netip.Addr) (*seat, error) {
	slot, err := e.desk.Admit(e.perAddress.Of(addressOf(address)), e.closing.Claim())
	if err != nil {
		return nil, err
	}
	return e.seat(slot), nil
}

func (e *entrance) seat(slot *admission.Slot) *seat {
	n := e.last.Add(1)
	return &seat{number: n, name: strconv.FormatUint(n, 10), entrance: e, slot: slot, owned: e.desk.Group()}
}

// displace finds who goes for a newcomer, and gives that its slot. One without an actor is just being let in, and is passed over.
// Called with the lock.
func (e *entrance) displace(now time.Time, claims []admission.Claim) (*admission.Slot, kernel.Ref) {
	for at := e.waiting.Front(); at != nil; at = at.Next() {
		s := at.Value.(*seat)
		if now.Sub(s.since) < e.patience {
			break
		}
		if s.ref.IsZero() {
			continue
		}
		if slot, ok := s.slot.Yield([]admission.Claim{e.closing.Claim()}, claims...); ok {
			e.forget(s)
			return slot, s.ref
		}
	}
	return nil, kernel.Ref{}
}

// actor notes which actor a seat has got.
func (e *entrance) actor(s *seat, ref kernel.Ref) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.ref = ref
}

// greeted ends a handshake: the client has said initialize. Its connection stays.
func (e *entrance) greeted(s *seat) {
	e.mu.Lock()
	e.forget(s)
	e.mu.Unlock()
	s.slot.Give(e.handshakes)
}

// leave gives back all that a seat holds.
func (e *entrance) leave(s *seat) {
	e.mu.Lock()
	e.forget(s)
	e.mu.Unlock()
	s.slot.Release()
	s.owned.Close()
}

func (e *entrance) forget(s *seat) {
	if s.waits != nil {
		e.waiting.Remove(s.waits)
		s.waits = nil
	}
}

// taken is how many sockets there are, those on their way in or out included.
func (e *entrance) taken() int { return e.desk.Used(e.connections) + e.desk.Used(e.closing) }

// addressOf is a peer's address as it is counted: one for IPv4, whether the listener speaks IPv4 or both, and "" for a socket without one.
func addressOf(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.Unmap().String()
}

// full is the name of the limit that an error of the entrance or of an account tells.
func full(err error) string {
	if o, ok := errors.AsType[*kernel.Overloaded](err); ok {
		return o.Scope
	}
	return "draining"
}
