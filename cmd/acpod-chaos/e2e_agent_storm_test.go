package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/acpod/acpod/actors/chaos/fault"
	"github.com/acpod/acpod/actors/chaos/ledger"
	"github.com/acpod/acpod/actors/chaos/prompter"
)

// Sessions whose agents do everything wrong that there is, whose clients cancel, leave and come back, all at once: every turn ends
// once and as it may, every chunk is there, and at the end there is nothing.
func TestSessionsWhoseAgentsDoEverythingWrong(t *testing.T) {
	t.Parallel()
	b := newAgentBedOf(t, watched.acpod)
	faults, err := fault.Parse("drop:0.1,cancelrace:0.1,agentcrash:0.1,agentgarbage:0.1,stderr:0.1,agenthang:0.02,hostiletext:0.1,flood:0.05,oversize:0.05,duplicate:0.1,late:0.02,never:0.01")
	if err != nil {
		t.Fatal(err)
	}
	tally := ledger.NewTally()
	driver, err := prompter.New(prompter.Config{
		Sessions: 12, Seed: seedOf(t), Book: b.book, Faults: faults, Calls: b.world.Calls, Tally: tally, Open: b.world.Open, Folder: b.folder,
		Canaries: []string{"CHAOS_CANARY_TOKEN"}, Pace: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { // enough turns, however fast the machine is
		for ctx.Err() == nil && turns(tally) < 120 {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}()
	if err := driver.Run(ctx); err != nil {
		t.Fatal(err)
	}
	struck, err := b.records().Struck()
	ends := tally.Ends()
	if err != nil || len(struck) < 5 || ends["turn_end_turn"] == 0 || ends["turn_cancelled"] == 0 {
		t.Errorf("the storm was none: %v struck, %v, turns %v", struck, err, ends)
	}
	t.Logf("turns by their end: %v", ends)
}

func turns(tally *ledger.Tally) (n int64) {
	for _, count := range tally.Ends() {
		n += count
	}
	return n
}

// seedOf is CHAOS_SEED, for a run that is to be repeated, else 1.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("CHAOS_SEED")
	if text == "" {
		return 1
	}
	var seed uint64
	for _, r := range text {
		seed = seed*10 + uint64(r-'0')
	}
	return seed
}
