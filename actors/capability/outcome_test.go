package capability

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

func TestACallThatMayHaveHadAnEffectIsNeverRefusedAsIfItHadNot(t *testing.T) {
	full := &kernel.Overloaded{Scope: "session_bytes", RetryAfter: time.Second}
	causes := map[Code]error{
		TimedOut:      ErrTimeout,
		TooMuch:       fmt.Errorf("wrapped: %w", full),
		CancelledCall: &ended{EndTurn},
		NotAttached:   fmt.Errorf("%w: the socket", ErrDetached),
	}
	for code, cause := range causes {
		for _, tc := range []struct {
			what           string
			cause          error
			sent, readOnly bool
			want           Code
		}{
			{"not sent", cause, false, false, code},
			{"not sent, says its source", &NotSent{cause}, true, false, code},
			{"sent, reads only", cause, true, true, code},
			{"sent, may write", cause, true, false, OutcomeUnknown},
		} {
			r := Outcome(tc.cause, tc.sent, tc.readOnly)
			if r.Code != tc.want {
				t.Errorf("%s, %s: got %s, want %s", code, tc.what, r.Code, tc.want)
			}
			if plain := Outcome(cause, false, false).Text; tc.want == OutcomeUnknown && !strings.Contains(r.Text, plain) {
				t.Errorf("%s: the cause %q is not in the text %q", code, plain, r.Text)
			}
		}
	}
	if r := Outcome(errors.New("something broke"), true, false); r.Code != OutcomeUnknown {
		t.Errorf("an unknown cause: %v", r)
	}
}
