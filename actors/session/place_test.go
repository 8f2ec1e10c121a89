package session

import (
	"slices"
	"testing"

	"github.com/acpod/acpod/actors/tunnel"
	"github.com/acpod/acpod/protocol/acp"
	"github.com/acpod/acpod/runtime/kernel"
)

// TestADeclarationTakesTheirPlaceFromOlderOnesOnly: what the session does with the verdict of tunnel.Decide.
func TestADeclarationTakesTheirPlaceFromOlderOnesOnly(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		older, younger := p.client("k", 1), p.client("k", 1)
		holder := func(c *client, name, id string) *served {
			d := acp.Declared{Name: name, ID: id}
			return &served{planned: planned{Declared: d}, client: c, ref: p.root, tunnel: tunnel.New(tunnel.Params{Declared: d, Carrier: c, Attach: 5})}
		}
		newcomer := func(attach uint64) *served {
			return &served{planned: planned{Declared: acp.Declared{Name: "room", ID: "new"}, state: stateConnecting, attach: attach}}
		}
		closed := p.client("k", 1)
		close(closed.gone)
		other := holder(younger, "other", "y")
		for name, row := range map[string]struct {
			holders []*served
			by      *client
			attach  uint64
			yields  bool
		}{
			"a newer connection holds the name":           {[]*served{other, holder(younger, "room", "x")}, older, 9, true},
			"a later declaration holds it":                {[]*served{holder(older, "room", "x")}, older, 4, true},
			"nobody":                                      {nil, older, 1, false},
			"another name and id":                         {[]*served{other}, older, 9, false},
			"its own connection has gone":                 {nil, closed, 1, true},
			"one that was never opened, of the same name": {[]*served{{planned: planned{Declared: acp.Declared{Name: "room"}}}}, older, 1, false},
		} {
			one := newcomer(row.attach)
			left := (&session{}).place(one, row.by, row.holders)
			if yields := one.state == stateSuperseded; yields != row.yields || yields != (one.reason != "") {
				t.Errorf("%s: it yields: %v (%s, %q)", name, yields, one.state, one.reason)
			}
			if slices.Contains(row.holders, other) && !slices.Contains(left, other) {
				t.Errorf("%s: another server lost its place", name)
			}
		}
		over := holder(older, "room", "x")
		over.ref = kernel.Ref{}
		for what, c := range map[string]tunnel.Claim{"one whose connection has gone": claims([]*served{holder(closed, "room", "x")})[0], "one that has ended": claims([]*served{over})[0]} {
			if c.Rank != (tunnel.Rank{}) || c.Name != "room" || c.ID != "x" {
				t.Errorf("%s ranks %+v", what, c)
			}
		}
		if c := claims([]*served{holder(younger, "room", "x")})[0]; c.Rank != (tunnel.Rank{Connection: younger.Rank(), Attach: 5}) {
			t.Errorf("one that lives ranks %+v", c)
		}
	})
}

// TestAnIdUnderAnotherNameIsAnotherServer: the tunnel under the old name is ended, once, before the new one serves.
func TestAnIdUnderAnotherNameIsAnotherServer(t *testing.T) {
	inPod(t, nil, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened(`[{"type":"acp","id":"r1","name":"room"}]`)
		c.resume(id, `[{"type":"acp","serverId":"r1","name":"room"}]`) // another generation of the same
		p.settle()
		if c.frames("mcp/connect") != 2 || c.frames("mcp/disconnect") != 1 {
			t.Errorf("%q", c.mcp)
		}
	})
}
