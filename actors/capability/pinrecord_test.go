package capability

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpod/acpod/protocol/mcp"
)

func TestOwnPinsAreTheSameWhenTheyAreReadAgain(t *testing.T) {
	tool := func(name, description string) *Tool {
		return &Tool{Tool: mcp.Tool{Name: name, Description: description, InputSchema: []byte(`{"type":"object"}`)}}
	}
	own, owner := newSessionPins(), PinOwner{Server: "room"}
	own.Admit(owner, []*Tool{tool("room.click", "clicks"), tool("room.read", "reads")})
	view := &View{pinning: pinning{own: own}}
	again := sessionPinsOf(view.OwnPins())
	if len(again.seen) != 2 {
		t.Fatalf("%d are read of %s", len(again.seen), view.OwnPins())
	}
	if parts := again.Changed(owner, tool("room.click", "clicks")); parts != nil {
		t.Errorf("what has not changed: %v", parts)
	}
	if parts := again.Changed(owner, tool("room.read", "reads, and tells")); len(parts) != 1 || parts[0] != "description" {
		t.Errorf("what has changed: %v", parts)
	}
	for _, raw := range []string{"", "null", "[]", "{}", `[{"server":"room","tool":"room.click","digest":"AQ"}]`, `[{"server":"room","tool":"room.click","digest":"!"}]`, strings.Repeat(" ", 2*ownPinsBytes+1)} {
		if got := sessionPinsOf([]byte(raw)); len(got.seen) != 0 {
			t.Errorf("%.40q gives %d pins", raw, len(got.seen))
		}
	}
	for n := range 4000 {
		own.Admit(owner, []*Tool{tool(fmt.Sprintf("room.%04d", n), "")})
	}
	if raw := view.OwnPins(); len(raw) > ownPinsBytes || len(sessionPinsOf(raw).seen) < 500 {
		t.Errorf("%d bytes with %d pins", len(raw), len(sessionPinsOf(raw).seen))
	}
	if (&View{}).OwnPins() != nil || (&View{pinning: pinning{own: newSessionPins()}}).OwnPins() != nil {
		t.Error("nothing is written down as something")
	}
}
