package prompter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpod/acpod/actors/chaos/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whatever is drawn can be read by an agent, has an end, and has the step at which its strike happens.
func TestEachTurnThatIsDrawnMakesSense(t *testing.T) {
	var chances Chances
	for _, fault := range agent.Faults {
		chances = append(chances, Chance{fault.Name, 0.08})
	}
	chances = append(chances, Chance{cancelRace, 0.08}, Chance{drop, 0.08})
	rng := rand.New(rand.NewPCG(1, 2))
	drawn := map[string]int{}
	for i := range 5000 {
		turn := draw(rng, fmt.Sprint("k", i), i, chances)
		script, err := agent.ParseScript(turn.Script.String())
		if err != nil || script.String() != turn.Script.String() {
			t.Fatalf("%q: %v", turn.Script, err)
		}
		if len(turn.Ends) == 0 || turn.May("cancelled") && turn.Cancel < 0 {
			t.Fatalf("%s ends %q, cancelled after %v", turn.Strike, turn.Ends, turn.Cancel)
		}
		text := turn.Script.String()
		for stage, step := range map[string]string{agent.AtCall: "\ncall ", agent.AtAsk: "\nask\n", agent.AtChunk: "\nchunks ", agent.AtLine: "\nchunks "} {
			if turn.Strike.Stage == stage && !strings.Contains(text, step) {
				t.Fatalf("%s cannot strike in %q", turn.Strike, text)
			}
		}
		drawn[turn.Strike.Fault]++
		if turn.Unread > 0 {
			drawn[agent.Flood]++
			if turn.Fill() < 5*UnreadInPod || !turn.May("end_turn") {
				t.Fatalf("%q says %d bytes and ends %q", turn.Script, turn.Fill(), turn.Ends)
			}
		}
		if turn.Drop >= 0 {
			drawn[drop]++
		}
	}
	for _, c := range chances {
		if drawn[c.Name] < 100 && c.Name != cancelRace {
			t.Errorf("%s was drawn %d times of 5000", c.Name, drawn[c.Name])
		}
	}
	first := fmt.Sprint(draw(rand.New(rand.NewPCG(7, 7)), "k", 1, chances))
	if second := fmt.Sprint(draw(rand.New(rand.NewPCG(7, 7)), "k", 1, chances)); first != second {
		t.Error("one seed gives two turns")
	}
}

func TestTheEndsOfAStrike(t *testing.T) {
	for text, want := range map[string]string{
		"agentcrash:chunk:kill":    AgentExited,
		"agentcrash:answered:exit": "end_turn",
		"agentcrash:cancel:exit":   "cancelled",
		"agenthang:chunk:deaf":     "cancelled",
		"agenthang:chunk:closed":   "cancelled " + AgentExited,
		"agentgarbage:chunk:all":   "end_turn",
		"agentgarbage:cancel:all":  "cancelled",
		"never:answer":             "cancelled",
		"late:answer":              "end_turn",
		"late:cancel":              "cancelled",
		"oversize:answer:over":     LineTooLong,
		"oversize:answer:exact":    "end_turn",
		"oversize:answer":          LineTooLong + " end_turn",
		"hostiletext:answer":       Theirs,
		"hostiletext:ask":          "end_turn",
	} {
		strike, err := agent.ParseStrike(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(endsOf(strike), " "); got != want {
			t.Errorf("%s ends with %q, want %q", text, got, want)
		}
	}
}
