package session

// A turn is one session/prompt. turn is its state machine, as values: the actor does what step says.
//
//	idle → waiting (its agent is being started) → running → idle
//	               ╲ cancel: idle                 ╲ cancel, silence: ending → idle
type turn struct {
	phase phase
	told  bool // in ending: the turn has its outcome already, what the agent says of it is dropped
}

type phase uint8

const (
	idle    phase = iota
	waiting       // accepted, and not yet sent: the agent is being started
	running       // the agent has it
	ending        // the agent was told to cancel and has not ended it yet
)

func (p phase) String() string {
	return [...]string{"idle", "waiting", "running", "ending"}[p]
}

// event is what happens to a turn.
type event uint8

const (
	evPrompt  event = iota // a prompt with good content came
	evSent                 // the prompt went to the agent
	evCancel               // the client cancels
	evAnswer               // the agent answered the prompt, with a result or an error
	evNoAgent              // no agent could be started for it
	evExited               // the agent is gone
	evSilent               // nothing of the agent for agent.turn_idle_timeout
	evOverdue              // agent.cancel_timeout has passed since the cancel
	evEnd                  // the session is closed
)

// outcome is how a turn ends, for its client and for last_turn.
type outcome uint8

const (
	unsettled    outcome = iota // it does not end now
	asItCame                    // what the agent answered, to the byte
	cancelled                   // {"stopReason":"cancelled"}, whatever the agent said
	idleError                   // -32603 idle
	exitedError                 // -32603 agent_exited
	noAgentError                // why no agent could be started
	busyError                   // -32001 busy: the new prompt is refused, the running turn goes on
)

// todo is what the actor does besides.
type todo uint8

const (
	begin     todo = 1 << iota // have the agent take the prompt
	tellAgent                  // session/cancel, answer open permission requests, start agent.cancel_timeout
	stopAgent                  // its process is ended; the next prompt starts another
	disarmed                   // no timer of this turn runs any more
)

// step says what becomes of a turn, with which outcome it ends now, and what else is to do.
func (t turn) step(e event) (turn, outcome, todo) {
	switch e {
	case evPrompt:
		if t.phase != idle {
			return t, busyError, 0
		}
		return turn{phase: waiting}, unsettled, begin
	case evSent:
		if t.phase == waiting {
			return turn{phase: running}, unsettled, 0
		}
	case evCancel:
		switch t.phase {
		case waiting: // the agent never heard of it
			return turn{}, cancelled, disarmed
		case running:
			return turn{phase: ending}, unsettled, tellAgent
		}
	case evSilent:
		if t.phase == running {
			return turn{phase: ending, told: true}, idleError, tellAgent
		}
	case evAnswer:
		switch t.phase {
		case running:
			return turn{}, asItCame, disarmed
		case ending:
			return turn{}, t.unlessTold(cancelled), disarmed
		}
	case evNoAgent:
		if t.phase == waiting {
			return turn{}, noAgentError, disarmed
		}
	case evExited:
		switch t.phase {
		case waiting, running:
			return turn{}, exitedError, disarmed
		case ending:
			return turn{}, t.unlessTold(cancelled), disarmed
		}
	case evOverdue:
		if t.phase == ending {
			return turn{}, t.unlessTold(cancelled), stopAgent | disarmed
		}
	case evEnd:
		if t.phase != idle {
			return turn{}, t.unlessTold(cancelled), disarmed
		}
	}
	return t, unsettled, 0
}

func (t turn) unlessTold(o outcome) outcome {
	if t.told {
		return unsettled
	}
	return o
}
