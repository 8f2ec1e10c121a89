package session

// A turn is one session/prompt. turn is its state machine, as values: the actor does what step says.
//
//	idle → waiting (its agent is being started) → running → idle
//	               ╲ cancel: idle                 ╲ cancel, silence: ending → idle
type turn struct {
	phase  phase
	silent bool // in ending: the agent's silence is why, no cancel of the client
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
	evUnheard              // … and had left before it could hear of the prompt
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
		case ending: // it has been told; from now on the client's word is the reason
			return turn{phase: ending}, unsettled, 0
		}
	case evSilent: // the client hears of it when the agent is free for the next prompt
		if t.phase == running {
			return turn{phase: ending, silent: true}, unsettled, tellAgent
		}
	case evAnswer:
		switch t.phase {
		case running:
			return turn{}, asItCame, disarmed
		case ending:
			return turn{}, t.why(), disarmed
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
			return turn{}, t.why(), disarmed
		}
	case evUnheard: // another one takes it
		switch t.phase {
		case running:
			return turn{phase: waiting}, unsettled, 0
		case ending:
			return turn{}, t.why(), disarmed
		}
	case evOverdue:
		if t.phase == ending {
			return turn{}, t.why(), stopAgent | disarmed
		}
	case evEnd:
		if t.phase != idle {
			return turn{}, t.why(), disarmed
		}
	}
	return t, unsettled, 0
}

// why is the outcome of a turn that was ended for a reason of its own, whatever the agent makes of it.
func (t turn) why() outcome {
	if t.silent {
		return idleError
	}
	return cancelled
}
