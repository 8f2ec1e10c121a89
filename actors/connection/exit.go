package connection

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/runtime/kernel"
)

// Reason says why a connection ended. The set is closed: reasons are counted by name.
type Reason string

// The reasons, with the close code that the peer is sent where it still can be sent one.
const (
	ClientClosed      Reason = "client_closed"      // the peer's close frame, its own code is echoed
	StreamEnded       Reason = "stream_ended"       // the socket ended without a close frame
	ReadError         Reason = "read_error"         // the socket broke while it was read
	WriteError        Reason = "write_error"        // the socket broke while it was written
	WriteTimeout      Reason = "write_timeout"      // the peer accepted no byte for Config.WriteTimeout
	ProtocolError     Reason = "protocol_error"     // 1002: what came is no WebSocket
	FrameTooLarge     Reason = "frame_too_large"    // 1009
	FrameTimeout      Reason = "frame_timeout"      // 1008: a frame was not whole within Config.FrameTimeout
	InitializeTimeout Reason = "initialize_timeout" // 1008
	// HandshakeDisplaced is an initialize_timeout, 1008, that came before its time: a newcomer needed the place.
	HandshakeDisplaced Reason = "handshake_displaced"
	PongTimeout        Reason = "pong_timeout"      // 1008: nothing came in after a ping
	Overloaded         Reason = "overloaded"        // 1013: no bytes for its frames for Config.BytesWait
	TooManyRefusals    Reason = "too_many_refusals" // 1013: the refusal budget is spent
	SlowReader         Reason = "slow_reader"       // 1013: answers pile up because the peer does not read
	Unauthorized       Reason = "unauthorized"      // 4401
	Refused            Reason = "refused"           // 1013: the pod could not take it after the upgrade
	Shutdown           Reason = "shutdown"          // 1012: the pod stops
	Crashed            Reason = "crashed"           // 1011: our own fault
)

// Reasons lists all of them, for counters that want every label from the start.
var Reasons = []Reason{
	ClientClosed, StreamEnded, ReadError, WriteError, WriteTimeout, ProtocolError, FrameTooLarge, FrameTimeout,
	InitializeTimeout, HandshakeDisplaced, PongTimeout, Overloaded, TooManyRefusals, SlowReader, Unauthorized, Refused, Shutdown, Crashed,
}

// Code is the WebSocket close code that goes with a reason; 0 where none can be sent.
func (r Reason) Code() uint16 {
	switch r {
	case ProtocolError:
		return 1002
	case FrameTooLarge:
		return 1009
	case FrameTimeout, InitializeTimeout, HandshakeDisplaced, PongTimeout:
		return 1008
	case Overloaded, TooManyRefusals, SlowReader, Refused:
		return 1013
	case Unauthorized:
		return closeUnauthorized
	case Shutdown:
		return 1012
	case Crashed:
		return 1011
	case ClientClosed, StreamEnded, ReadError, WriteError, WriteTimeout:
	}
	return 0
}

// Exit is the cause with which a connection ends. It is tunnel.ErrGone for whoever still waits for an answer over it.
type Exit struct {
	Reason Reason
	// PeerCode is the code of the peer's close frame, 0 without one.
	PeerCode uint16
	// Err is the error below, when there is one.
	Err error
}

func (e *Exit) Error() string {
	text := "connection ended: " + string(e.Reason)
	if e.PeerCode != 0 {
		text += " " + strconv.Itoa(int(e.PeerCode))
	}
	if e.Err != nil {
		text += fmt.Sprintf(": %v", e.Err)
	}
	return text
}

// words is the text of the close frame: the reason, and of a limit its name.
func (e *Exit) words() string {
	var full *kernel.Overloaded
	if errors.As(e.Err, &full) {
		return fmt.Sprintf("%s: %s, %d of %d in use", e.Reason, full.Scope, full.Used, full.Limit)
	}
	return string(e.Reason)
}

// Unwrap gives the error below.
func (e *Exit) Unwrap() error { return e.Err }

// Is makes every end of a connection a tunnel.ErrGone, and a clean end of its actor where the fault is not ours.
func (e *Exit) Is(target error) bool {
	return target == tunnel.ErrGone || target == kernel.ErrDone && e.Reason != Crashed
}
