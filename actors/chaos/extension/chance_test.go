package extension

import (
	"reflect"
	"testing"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/server"
)

// served is what an extension does with the servers of its first sessions, in a world in which others have opened sessions before.
func served(t *testing.T, seed uint64, number, others int) (tools [][]byte, deeds []server.Deed) {
	t.Helper()
	faults, err := fault.Parse("late:0.3,never:0.2,duplicate:0.3,oversize:0.3,hostiletext:0.3")
	if err != nil {
		t.Fatal(err)
	}
	book := invariant.NewBook(nil)
	w := &World{Dice: fault.NewDice(seed), Faults: faults, Book: book, Calls: ledger.NewCalls(book), Limits: Limits{Result: 1000, Tools: 2, ToolSchema: 10}, Secret: func(string) {}}
	for range others {
		w.nextSession()
	}
	e := New(w, number, 0, 4)
	for range 4 {
		s := e.newServer(w.nextSession(), "an id", e.opening())
		tools = append(tools, s.Tools)
		for range 8 {
			deeds = append(deeds, s.Behaviour.Step("connect"), s.Behaviour.Step("tools/list"))
		}
	}
	return tools, deeds
}

func TestWhatAServerDoesDependsOnTheSeedAndItsExtensionAndOnNoOther(t *testing.T) {
	tools, deeds := served(t, 1, 3, 0)
	for _, test := range []struct {
		name           string
		seed           uint64
		number, others int
		same           bool
	}{
		{"others came first", 1, 3, 17, true},
		{"another extension", 1, 4, 0, false},
		{"another seed", 2, 3, 0, false},
	} {
		theirTools, theirs := served(t, test.seed, test.number, test.others)
		if same := reflect.DeepEqual(deeds, theirs) && reflect.DeepEqual(tools, theirTools); same != test.same {
			t.Errorf("%s: the same is %v", test.name, same)
		}
	}
	if reflect.DeepEqual(deeds[:16], deeds[16:32]) {
		t.Error("two servers of one extension do the same")
	}
}
