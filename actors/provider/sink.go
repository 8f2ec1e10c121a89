package provider

import (
	"context"
	"errors"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/protocol/mcp"
	"github.com/acpod/acpod/runtime/kernel"
)

// roomTimeout is how long a message waits for room in the actor's account before it is dropped. What fills that account are
// messages that the actor is about to hand on.
const roomTimeout = 10 * time.Second

// sink leads what one link tells into the actor's mailbox, with the number of the connection, so that nothing of an earlier one is
// taken for this one's.
type sink struct {
	ctx     context.Context
	self    kernel.Ref
	account *kernel.Account
	number  uint64
}

// Messages of a link to the actor.
type (
	linkUp struct {
		number uint64
		pid    int
	}
	received struct {
		number  uint64
		message jsonrpc.Frame
		about   jsonrpc.ID
		held    *kernel.Lease
	}
	notAnswered struct {
		number uint64
		id     jsonrpc.ID
		err    error
	}
	linkDown struct {
		number uint64
		err    error
	}
	listenGap struct{ number uint64 }
	linkEnded struct {
		number uint64
		err    error
	}
)

// Lease is that of the message's bytes ([kernel.Leased]).
func (m received) Lease() *kernel.Lease { return m.held }

// Up implements [link.Sink].
func (s *sink) Up(pid int) { s.tell(linkUp{s.number, pid}) }

// Failed implements [link.Sink].
func (s *sink) Failed(id jsonrpc.ID, err error) { s.tell(notAnswered{s.number, id, err}) }

// Down implements [link.Mourner].
func (s *sink) Down(err error) { s.tell(linkDown{s.number, err}) }

// Missed implements [link.Listener].
func (s *sink) Missed() { s.tell(listenGap{s.number}) }

// Account implements [link.Sink].
func (s *sink) Account() *kernel.Account { return s.account }

// Refused implements [link.Sink].
func (s *sink) Refused(scope string) { s.self.CountRefusal(scope) }

// Message implements [link.Sink]. A message that finds no room in time is dropped; the request that it answers fails with that.
func (s *sink) Message(_ []byte, scanned jsonrpc.Frame, about jsonrpc.ID, lease *kernel.Lease) {
	size := lease.Size()
	err := s.self.Tell(received{s.number, scanned, about, lease})
	if _, full := errors.AsType[*kernel.Overloaded](err); !full {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, roomTimeout)
	defer cancel()
	for {
		if lease, err = s.account.AcquireWait(ctx, size+kernel.MessageBytes); err != nil {
			break
		}
		lease.Shrink(size)
		err = s.self.Tell(received{s.number, scanned, about, lease})
		if _, full := errors.AsType[*kernel.Overloaded](err); !full {
			return
		}
	}
	s.Refused("undelivered")
	if scanned.Kind == jsonrpc.Response {
		s.Failed(scanned.ID, err)
	}
	if scanned.Method == mcp.MethodListChanged { // the news is lost, that there was some is not
		s.Missed()
	}
}

// tell hands over a small message. What finds no room in the account goes by the lane that has room of its own: it may overtake then,
// and says nothing that depends on what it overtakes.
func (s *sink) tell(m kernel.Msg) {
	err := s.self.Tell(m)
	if _, full := errors.AsType[*kernel.Overloaded](err); full && s.self.Signal(m) != nil {
		s.Refused("undelivered")
	}
}
