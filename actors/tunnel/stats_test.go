package tunnel

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestEachWayInWhichAConnectionEndsIsCountedOnce(t *testing.T) {
	s := &Stats{}
	for range 6 {
		s.open()
	}
	s.closed(nil)
	s.closed(context.DeadlineExceeded)
	s.closed(fmt.Errorf("the carrier: %w", ErrGone))
	s.dismissed()
	s.unbound(errors.New("that id is in use"))
	s.unbound(ErrGone)
	want := Connections{Opened: 6, Disconnected: 1, Unanswered: 1, SocketGone: 2, Late: 1, Taken: 1}
	if got := s.Snapshot(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var none *Stats
	none.open()
	none.closed(nil)
	none.dismissed()
	none.unbound(nil)
	if none.Snapshot() != (Connections{}) {
		t.Error("nobody counts")
	}
}
