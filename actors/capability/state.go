package capability

// State is where a source stands, as far as callers are concerned.
type State uint8

const (
	Connecting State = iota // being connected, or listing for the first time
	Ready                   // its real list is published, calls are taken
	Failed                  // could not be connected or listed
	Detached                // was connected and is gone; what it offered stays listed
	Idle                    // not connected, and connects when it is called or asked ([Configured])
	LoggedOut               // refuses us until its credentials change; what it offered stays listed
)

func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Ready:
		return "ready"
	case Failed:
		return "failed"
	case Detached:
		return "detached"
	case Idle:
		return "idle"
	case LoggedOut:
		return "needs_login"
	}
	return "invalid"
}
