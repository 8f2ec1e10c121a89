package capability

import (
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// A refusal for want of room names the account, its limit, what is used of it and when to retry, to people and to programs;
// also when the call had left before.
func TestARefusalForWantOfRoomNamesTheAccount(t *testing.T) {
	full := &kernel.Overloaded{Scope: "session_bytes", Limit: 1000, Used: 990, Size: 20, RetryAfter: 2 * time.Second}
	const data = `"acpod.dev/overload":{"scope":"session_bytes","limit":1000,"used":990,"size":20,"retry_after_ms":2000}`
	for _, row := range []struct {
		name   string
		result string
		wants  []string
	}{
		{"not sent", string(Outcome(&NotSent{full}, true, false).Result()), []string{`"acpod.dev/refusal":"overloaded"`, data, "session_bytes", "990 of 1000", "20", "2s"}},
		{"sent", string(Outcome(full, true, false).Result()), []string{`"acpod.dev/refusal":"outcome_unknown"`, data, "session_bytes", "990 of 1000"}},
		{"without a time", string(Outcome(&kernel.Overloaded{Scope: "outbound_bytes", Limit: 5, Used: 4, Size: 2}, false, false).Result()), []string{`"retry_after_ms":1000`, "1s", "4 of 5"}},
		{"of a client", string(Outcome(&kernel.Overloaded{Scope: "calls of this server"}, false, false).Result()), []string{"(calls of this server)"}},
		{"too large", string(Outcome(&TooLarge{Size: 11, Limit: 10}, true, true).Result()), []string{`"scope":"result_bytes","limit":10,"used":11,"size":11}`}},
	} {
		for _, want := range row.wants {
			if !strings.Contains(row.result, want) {
				t.Errorf("%s: %s has no %s", row.name, row.result, want)
			}
		}
	}
	if got := string((&Refusal{Code: Unknown, Text: "t"}).Result()); strings.Contains(got, "overload") {
		t.Errorf("got %s", got)
	}
}
