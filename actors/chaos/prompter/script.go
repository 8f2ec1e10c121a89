package prompter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/server"
)

// Turn is one prompt: what is asked for, what the client does meanwhile, and how it may end.
type Turn struct {
	Key    string
	Script agent.Script
	Strike agent.Strike  // zero = the agent does its duty
	Cancel time.Duration // after that; negative = never, 0 = in the frame after the prompt
	Drop   time.Duration // the socket is cut after that; negative = it is not
	Hold   bool          // questions are not answered
	Unread time.Duration // nothing is read for that long, although the agent says much
	Ends   []string      // how it may end, in the words of Outcome
	Calls  []int         // numbers of the calls in it
}

// The words for ends that are no stop reason.
const (
	AgentExited = "agent_exited"
	LineTooLong = "line_too_long"
	Theirs      = "error -32050" // of a hostile agent, as it came
)

// Chunks is how many the script asks for, and of which size: a driver's script has one row.
func (t *Turn) Chunks() (n, size int) {
	for _, step := range t.Script {
		if step.Do == "chunks" {
			n, size = n+step.N, step.Bytes
		}
	}
	return n, size
}

// May tells whether the turn may end that way.
func (t *Turn) May(end string) bool { return slices.Contains(t.Ends, end) }

// NewTurn makes a turn with a row of chunks in which a strike happens, the steps that its stage needs, and the ends that are right then.
// number is that of its call, where there is one.
func NewTurn(key string, strike agent.Strike, chunks, size, number int) *Turn {
	t := &Turn{Key: key, Strike: strike, Cancel: -1, Drop: -1, Script: agent.Script{{Do: "turn", Text: key}}}
	if strike != (agent.Strike{}) {
		t.Script = append(t.Script, agent.Step{Do: "fault", Strike: strike})
	}
	row := agent.Step{Do: "chunks", N: chunks, Bytes: size}
	switch {
	case strike.Stage == agent.AtCall, strike.Fault == agent.Hostile && strike.Stage == agent.AtPrompt: // of a call's title
		t.call(number)
		t.Script = append(t.Script, row)
	case strike.Stage == agent.AtAsk:
		t.Script = append(t.Script, agent.Step{Do: "ask"}, row)
	case strike.Stage == agent.AtCancel:
		t.Script = append(t.Script, row, agent.Step{Do: "sleep", For: time.Hour})
		t.Cancel = 20 * time.Millisecond
	default:
		t.Script = append(t.Script, row)
	}
	t.Ends = endsOf(strike)
	if t.May("cancelled") && t.Cancel < 0 { // nothing else would end it soon
		t.Cancel = 50 * time.Millisecond
	}
	return t
}

func (t *Turn) call(number int) {
	t.Calls = append(t.Calls, number)
	t.Script = append(t.Script, agent.Step{Do: "call", Text: server.Name + ".click", JSON: fmt.Sprintf(`{"n":%d}`, number)})
}

// endsOf says how a turn may end whose agent does that.
func endsOf(s agent.Strike) []string {
	switch s.Fault {
	case agent.Crash:
		switch s.Stage {
		case agent.AtAnswered:
			return []string{"end_turn"}
		case agent.AtCancel:
			return []string{"cancelled"}
		}
		return []string{AgentExited}
	case agent.Hang:
		if s.Variant == "closed" || s.Variant == "" { // the pod may see the end of stdout before the cancel
			return []string{"cancelled", AgentExited}
		}
		return []string{"cancelled"}
	case agent.Never:
		return []string{"cancelled"}
	case agent.Oversize:
		if s.Stage == agent.AtAnswer && s.Variant != "exact" {
			return []string{LineTooLong, "end_turn"}[:1+one(s.Variant == "")]
		}
	case agent.Hostile:
		if s.Stage == agent.AtAnswer {
			return []string{Theirs}
		}
	}
	if s.Stage == agent.AtCancel {
		return []string{"cancelled"}
	}
	return []string{"end_turn"}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// draw makes the next turn of a session.
func draw(rng *rand.Rand, key string, number int, faults Chances) *Turn {
	strike := agent.Strike{}
	what := faults.draw(rng)
	if fault, known := agent.Named(what); known {
		var stages []string
		for _, stage := range fault.Stages {
			if (agent.Strike{Fault: what, Stage: stage}).InTurn() {
				stages = append(stages, stage)
			}
		}
		strike = agent.Strike{Fault: what, Stage: stages[rng.IntN(len(stages))]}
		if len(fault.Variants) > 0 {
			strike.Variant = fault.Variants[rng.IntN(len(fault.Variants))]
		}
	}
	t := NewTurn(key, strike, 1+rng.IntN(60), 64+rng.IntN(2000), number)
	switch {
	case what == cancelRace:
		t.Cancel = time.Duration(rng.IntN(3000)) * time.Microsecond * time.Duration(rng.IntN(2)) // half of them in the next frame
		t.Ends = []string{"cancelled", "end_turn"}
	case what == agent.Flood && rng.IntN(2) == 0:
		t = NewUnread(key, time.Duration(1000+rng.IntN(1000))*time.Millisecond)
	case what == drop:
		t.Script = append(t.Script[:1], agent.Step{Do: "sleep", For: time.Duration(rng.IntN(200)) * time.Millisecond}, t.Script[len(t.Script)-1])
		t.Drop = time.Duration(rng.IntN(150)) * time.Millisecond
	case strike == agent.Strike{} && rng.IntN(3) == 0:
		t.call(number)
	case strike == agent.Strike{} && rng.IntN(3) == 0:
		t.Script = append(t.Script, agent.Step{Do: "ask"})
		if rng.IntN(4) == 0 {
			t.Hold, t.Cancel, t.Ends = true, 30*time.Millisecond, []string{"cancelled"}
		}
	}
	return t
}
