package caller

import (
	"testing"

	"github.com/acpod/acpod/actors/chaos/ledger"
)

func TestWhatTheDemoAgentStreamsIsReadForWhatItIs(t *testing.T) {
	signed := ledger.Signature{Number: 7, Session: 3, Sum: 4000000000, Execution: 1}
	for _, test := range []struct {
		text   string
		end    ledger.End
		signed bool
	}{
		{"done #7/3/4000000000/1 rrr\n", ledger.Result, true},
		{"error: done #7/3/4000000000/1 rrr", ledger.ToolError, true},
		{"error: this capability is detached", ledger.RPCError, false},
		{"something else", ledger.Result, false},
		{"", ledger.Result, false},
	} {
		a := streamed(test.text)
		if a.End != test.end || (a.Signed != nil) != test.signed || test.signed && *a.Signed != signed {
			t.Errorf("%q: %+v", test.text, a)
		}
	}
}
