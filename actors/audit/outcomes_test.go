package audit

import (
	"fmt"
	"testing"

	"github.com/acpod/acpod/actors/capability"
)

func TestEachEndOfACallIsCountedAlsoWhenItsRecordFindsNoRoom(t *testing.T) {
	r, _ := New(Config{Log: quiet(&page{})}) // nobody writes: the queue fills up
	for range QueueRecords + 10 {
		r.Record(entry(capability.EventCall))
		r.Record(entry(capability.EventExit))
	}
	refused := entry(capability.EventRefused)
	refused.Outcome = "overloaded"
	r.Record(refused)
	if got := r.Outcomes(); len(got) != 2 || got[capability.OutcomeOK] != QueueRecords+10 || got["overloaded"] != 1 {
		t.Errorf("got %v", got)
	}
	for n := range 10 * maxOutcomes {
		refused.Outcome = fmt.Sprint("outcome ", n)
		r.Record(refused)
	}
	if got := r.Outcomes(); len(got) > maxOutcomes+1 || got[OtherOutcome] == 0 {
		t.Errorf("%d outcomes are counted apart, %d beyond them", len(got), got[OtherOutcome])
	}
}
