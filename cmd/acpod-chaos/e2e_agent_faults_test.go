package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/agent"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/prompter"
	"github.com/acpod/acpod/actors/chaos/server"
	"github.com/acpod/acpod/protocol/acp"
)

// Whatever an agent does in a turn, in each way and at each stage: the prompt is answered once and with the right end, every chunk
// came before an end_turn, the next prompt is served, and nothing is left.
func TestEachFaultOfAnAgentInATurn(t *testing.T) {
	t.Parallel()
	for _, fault := range agent.Faults {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			b := newAgentBed(t, `cancel_timeout = "1s"`, `stop_grace = "200ms"`)
			for _, strike := range agent.Every() {
				if strike.Fault != fault.Name || !strike.InTurn() {
					continue
				}
				t.Run(strike.Stage+" "+strike.Variant, func(t *testing.T) {
					s := b.session(t)
					ends := strike.Fault == agent.Crash || strike.Fault == agent.Hang
					s.Server.Behaviour.Execute = func(int) server.Deed {
						return server.Deed{After: 300 * time.Millisecond, Never: ends && strike.Stage == agent.AtCall}
					}
					open(t, s)
					turn := prompter.NewTurn("struck", strike, 10, 200, b.count)
					turn.Hold = ends && strike.Stage == agent.AtAsk
					b.take(t, s, turn)
					if ends {
						b.takenBack(t, s)
					}
					b.struck(t, strike, 1)
					// An agent that ends after its answer may take the next prompt with it.
					b.sound(t, s, "after", strike.Fault == agent.Crash && strike.Stage == agent.AtAnswered)
					b.look(t)
					closed(t, s)
				})
			}
		})
	}
}

// Whatever an agent does before there is a turn: session/new says why there is none, or opens; the next one opens; nothing is left.
func TestEachFaultOfAnAgentBeforeItsFirstTurn(t *testing.T) {
	t.Parallel()
	for _, fault := range agent.Faults {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			b := newAgentBed(t, `start_timeout = "5s"`, `new_timeout = "3s"`, `stop_grace = "200ms"`)
			for _, strike := range agent.Every() {
				if strike.Fault != fault.Name || strike.InTurn() {
					continue
				}
				t.Run(strike.Stage+" "+strike.Variant, func(t *testing.T) {
					s := b.session(t)
					b.plan(strike.String())
					err := s.Open(t.Context())
					b.plan("")
					if got, want := reasonOf(err), opening(strike); got != want {
						t.Errorf("session/new came to %q (%v), want %q", got, err, want)
					}
					if err != nil {
						open(t, s)
					}
					if strike.Variant == "early" && strike.Stage == agent.AtNew {
						b.early(t, s)
					}
					b.sound(t, s, "after", strike.Stage == agent.AtOpened)
					b.look(t)
					closed(t, s)
					b.struck(t, strike, 1)
				})
			}
		})
	}
}

// takenBack wants the client to be told of what ended with its agent: the call that it executes, and the question that it has not answered.
func (b *agentBed) takenBack(t *testing.T, s *prompter.Session) {
	t.Helper()
	for end := time.Now().Add(backBound); ; time.Sleep(10 * time.Millisecond) {
		calls, questions := s.Server.Held(s.Peer()), s.Peer().Asked.Open(acp.MethodPermission)
		if calls+questions == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: the agent is gone for %s, and %d calls and %d questions of it are not taken back", invariant.CancelReaches, backBound, calls, questions)
		}
	}
}

// backBound is shorter than an orphan's window of 30 s, which would take a call back as well.
const backBound = 20 * time.Second

// opening is what session/new comes to with that fault, "" = it opens.
func opening(s agent.Strike) string {
	switch s.Fault {
	case agent.Crash:
		if s.Stage != agent.AtOpened {
			return "agent_exited"
		}
	case agent.Hang:
		switch {
		case s.Stage == agent.AtEOF:
		case s.Variant == "closed":
			return "agent_exited"
		default:
			return "agent_timeout"
		}
	case agent.Never: // of session/new, the second try is answered, without the facade's entry
		if s.Stage == agent.AtInitialize {
			return "agent_timeout"
		}
	case agent.Oversize:
		if s.Variant == "over" {
			return "internal"
		}
	}
	return ""
}

// early wants some of the updates that came too early: in order, and no more than the pod keeps.
func (b *agentBed) early(t *testing.T, s *prompter.Session) {
	t.Helper()
	awaitThat(t, "an early update", func() bool { return len(s.Early()) > 0 })
	b.sound(t, s, "behind-early", false) // what follows the answer of session/new is there when a turn has ended
	names := s.Early()
	last := 0
	for _, name := range names {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "early-"))
		if err != nil || number <= last {
			t.Fatalf("%q came after number %d", name, last)
		}
		last = number
	}
	if n := len(names); n < 32 || n > 64 { // 1 MiB of 16 KiB each
		t.Errorf("%d of the %d early updates came", n, agent.Early)
	}
}

// A pod learns what its agent offers by running it. One that fails then, in each way, delays no client for long, and leaves nothing.
func TestAnAgentThatFailsWhileThePodLearnsDelaysNobody(t *testing.T) {
	t.Parallel()
	for _, strike := range []string{"agentcrash:start:kill", "agenthang:start:deaf", "agenthang:initialize:closed", "agentgarbage:start:all",
		"stderr:start:endless", "never:initialize", "hostiletext:initialize", "duplicate:initialize"} {
		t.Run(strike, func(t *testing.T) {
			t.Parallel()
			b := &agentBed{t: t, folder: t.TempDir()}
			config := bedConfig(t, b.folder, `start_timeout = "5s"`)
			b.plan(strike)
			b.use(startPod(t, config))
			began := time.Now()
			s := b.session(t) // initialize is answered
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("initialize was answered after %v", took)
			}
			want, err := agent.ParseStrike(strike)
			if err != nil {
				t.Fatal(err)
			}
			b.struck(t, want, 1)
			b.plan("")
			open(t, s)
			b.sound(t, s, "after", false)
			closed(t, s)
		})
	}
}

// A cancel in the very moment in which a turn ends is answered once, with the one or the other.
func TestACancelThatRacesTheEndOfItsTurn(t *testing.T) {
	t.Parallel()
	b := newAgentBed(t)
	s := b.session(t)
	open(t, s)
	ends := map[string]int{}
	for i := range 150 {
		turn := prompter.NewTurn(fmt.Sprintf("race-%d", i), agent.Strike{}, 1+i%7, 200, 0)
		turn.Cancel = 0
		if i%3 == 0 {
			turn.Cancel = time.Nanosecond // after the first chunk
		}
		turn.Ends = []string{"cancelled", "end_turn"}
		ends[b.take(t, s, turn)]++
	}
	if ends["cancelled"] == 0 {
		t.Errorf("no turn was cancelled: %v", ends)
	}
	b.sound(t, s, "after", false)
	closed(t, s)
}
