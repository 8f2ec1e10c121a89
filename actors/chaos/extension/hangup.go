package extension

import (
	"math/rand/v2"
	"time"

	"github.com/acpod/acpod/actors/chaos/wire"
	"github.com/acpod/acpod/protocol/jsonrpc"
)

// hangUp ends the socket in one of the ways in which sockets end without a word.
func (e *Extension) hangUp(r *rand.Rand) {
	switch p := e.peer; r.IntN(3) {
	case 0:
		e.w.Faults.Injected("drop", "rst")
		p.Reset()
	case 1:
		e.w.Faults.Injected("drop", "fin")
		p.Do(func(s *wire.Socket) error { s.Fin(); return nil })
	default:
		e.w.Faults.Injected("drop", "midframe")
		frame := jsonrpc.AppendNotification(nil, "_chaos/half", pad(4<<10))
		p.Do(func(s *wire.Socket) error {
			err := s.Raw(append(wire.Header(wire.TextFrame, true, int64(len(frame))), frame[:r.IntN(len(frame))]...))
			s.Reset()
			return err
		})
	}
	select {
	case <-e.peer.Gone():
	case <-time.After(5 * time.Second): // a FIN that the pod does not answer with its own
	}
	e.drop()
}

// pad is a JSON object of about n bytes.
func pad(n int) []byte {
	b := make([]byte, 0, n+16)
	b = append(b, `{"pad":"`...)
	for range n {
		b = append(b, 'p')
	}
	return append(b, `"}`...)
}
