package agent

import (
	"strings"
	"testing"

	"github.com/acpod/acpod/runtime/kernel"
	"github.com/acpod/acpod/runtime/kerneltest"
)

func TestARequestIsWithdrawnByItsIdOnTheWire(t *testing.T) {
	b := launch(t, "good", nil)
	b.ready()
	var one, two Wire
	if one.Is(0) || one.Is(2) {
		t.Error("a request that was not sent has an id")
	}
	var hang kernel.Ticket
	kerneltest.Do(t, b.owner, func(c *kernel.Ctx) {
		hang, _ = c.Request(b.agent, Request{Method: "hang", Wire: &one})
	})
	b.tell(Withdraw{Wire: &two}) // never sent: nothing is said of it
	b.tell(Withdraw{Wire: &one})
	b.tell(Notify{Method: "session/cancel"})
	before, a := b.answer(hang)
	if texts := b.texts(before); a.Err != nil || len(texts) != 2 || texts[0] != `withdrawn {"requestId":2}` || !one.Is(2) || one.Is(3) {
		t.Errorf("the agent heard %q, and answered %v", texts, a.Err)
	}
}

func TestAnAgentIsToldWhatItsClientCanDo(t *testing.T) {
	b := launch(t, "good", func(c *Config) { c.Client = []byte(`{"terminal":true, "auth":{"terminal":true}}`) })
	if raw := string(b.ready().Info.Raw); !strings.Contains(raw, `"clientCapabilities":{"terminal":true, "auth":{}}`) {
		t.Errorf("initialize was asked with %s", raw)
	}
}

// What an agent notes for its client waits for the client like an update.
func TestNotesTakeCredits(t *testing.T) {
	b := launch(t, "noisy", nil)
	early := b.raw().(Noted)
	early.Held.Release()
	if early.Credit == nil || early.Credit.of == nil {
		t.Fatal("it has no credit")
	}
	lines := func() int {
		early.Credit.of.mu.Lock()
		defer early.Credit.of.mu.Unlock()
		return early.Credit.of.lines
	}
	before := lines() // of this one and of no other: it says nothing more by itself
	early.Credit.Done()
	if after := lines(); before != 1 || after != 0 {
		t.Errorf("%d lines are out, then %d", before, after)
	}
}
