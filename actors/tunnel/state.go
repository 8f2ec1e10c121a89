package tunnel

import "errors"

// State is where a tunnel stands, named as `_meta["acpod.dev/servers"]` names it.
type State string

const (
	Connecting State = "connecting"
	Ready      State = "ready"
	Failed     State = "failed"
	Superseded State = "superseded"
	Withdrawn  State = "withdrawn"
)

// Causes with which a session stops a tunnel.
var (
	ErrStoodDown = errors.New("a newer tunnel holds this server")
	ErrEvicted   = errors.New("a newer tunnel took this server over")
	ErrWithdrawn = errors.New("the client declares this server no more")
	ErrTakenOver = errors.New("a newer connection took the session over")
)

// Status is a tunnel's state and why, one line, escaped. The reason of one that is ready says what of its tools is not listed.
type Status struct {
	State  State
	Reason string
}

// Changed is told to the session (Signal) at each change of a tunnel's status
// or list.
type Changed struct {
	Tunnel *Tunnel
	Status Status
}
