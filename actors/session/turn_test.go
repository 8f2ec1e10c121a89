package session

import (
	"math/rand/v2"
	"testing"
)

func TestEveryStepOfATurn(t *testing.T) {
	silent := turn{phase: ending, silent: true}
	for name, c := range map[string]struct {
		from turn
		e    event
		to   turn
		out  outcome
		do   todo
	}{
		"a prompt is accepted in its own turn":                {turn{}, evPrompt, turn{phase: waiting}, unsettled, begin},
		"a second prompt while the agent starts is busy":      {turn{phase: waiting}, evPrompt, turn{phase: waiting}, busyError, 0},
		"a second prompt is busy":                             {turn{phase: running}, evPrompt, turn{phase: running}, busyError, 0},
		"a prompt while the cancelled turn is ending is busy": {turn{phase: ending}, evPrompt, turn{phase: ending}, busyError, 0},
		"the agent gets it":                                   {turn{phase: waiting}, evSent, turn{phase: running}, unsettled, 0},
		"a cancel without a turn does nothing":                {turn{}, evCancel, turn{}, unsettled, 0},
		"a cancel before the agent has it is the end":         {turn{phase: waiting}, evCancel, turn{}, cancelled, disarmed},
		"a cancel goes to the agent":                          {turn{phase: running}, evCancel, turn{phase: ending}, unsettled, tellAgent},
		"a second cancel does nothing":                        {turn{phase: ending}, evCancel, turn{phase: ending}, unsettled, 0},
		"an answer passes as it came":                         {turn{phase: running}, evAnswer, turn{}, asItCame, disarmed},
		"an answer after a cancel is cancelled":               {turn{phase: ending}, evAnswer, turn{}, cancelled, disarmed},
		"an answer after silence is the idle error":           {silent, evAnswer, turn{}, idleError, disarmed},
		"silence ends a turn as a cancel does":                {turn{phase: running}, evSilent, silent, unsettled, tellAgent},
		"a cancel after silence is a cancel":                  {silent, evCancel, turn{phase: ending}, unsettled, 0},
		"silence after a cancel changes nothing":              {turn{phase: ending}, evSilent, turn{phase: ending}, unsettled, 0},
		"an agent that cannot start":                          {turn{phase: waiting}, evNoAgent, turn{}, noAgentError, disarmed},
		"an agent that exits":                                 {turn{phase: running}, evExited, turn{}, exitedError, disarmed},
		"an agent that exits after a cancel is cancelled":     {turn{phase: ending}, evExited, turn{}, cancelled, disarmed},
		"an agent that exits after silence":                   {silent, evExited, turn{}, idleError, disarmed},
		"an agent that left before it heard of it":            {turn{phase: running}, evUnheard, turn{phase: waiting}, unsettled, 0},
		"… and also after a cancel":                           {turn{phase: ending}, evUnheard, turn{}, cancelled, disarmed},
		"an agent that does not end its turn is stopped":      {turn{phase: ending}, evOverdue, turn{}, cancelled, stopAgent | disarmed},
		"… and also after silence":                            {silent, evOverdue, turn{}, idleError, stopAgent | disarmed},
		"a late timer finds nothing":                          {turn{phase: running}, evOverdue, turn{phase: running}, unsettled, 0},
		"the session's end cancels":                           {turn{phase: running}, evEnd, turn{}, cancelled, disarmed},
		"the session's end without a turn":                    {turn{}, evEnd, turn{}, unsettled, 0},
	} {
		if to, out, do := c.from.step(c.e); to != c.to || out != c.out || do != c.do {
			t.Errorf("%s: %v, %d, %b; want %v, %d, %b", name, to, out, do, c.to, c.out, c.do)
		}
	}
}

// Whatever happens, in whatever order: a turn has one outcome, and no turn is left over.
func TestATurnHasExactlyOneOutcome(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		state, open := turn{}, 0
		take := func(e event) {
			was := state
			next, out, do := state.step(e)
			state = next
			switch {
			case e == evPrompt && was.phase == idle:
				open++
			case out != unsettled && out != busyError:
				open--
			}
			if open < 0 || open > 1 {
				t.Fatalf("seed %d: %d outcomes are owed after event %d in %v", seed, open, e, was)
			}
			if (do&disarmed != 0) != (was.phase != idle && next.phase == idle) {
				t.Fatalf("seed %d: event %d in %v: the timers and the phase disagree", seed, e, was)
			}
			if was.cancelledBefore() && (out == asItCame || out == exitedError) {
				t.Fatalf("seed %d: after a cancel the outcome was %d", seed, out)
			}
		}
		for range 40 {
			take(event(rng.IntN(int(evEnd) + 1)))
		}
		take(evEnd)
		if open != 0 || state.phase != idle {
			t.Fatalf("seed %d: %d outcomes are owed at the end, phase %v", seed, open, state.phase)
		}
	}
}

func (t turn) cancelledBefore() bool { return t.phase == ending }
