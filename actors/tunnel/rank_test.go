package tunnel

import (
	"slices"
	"sync"
	"testing"

	"github.com/acpod/acpod/protocol/acp"
)

func TestWhoHoldsAPlaceIsDecidedByRankAlone(t *testing.T) {
	claim := func(name, id string, connection, attach uint64) Claim {
		return Claim{Name: name, ID: id, Rank: Rank{connection, attach}}
	}
	for _, tc := range []struct {
		what    string
		holders []Claim
		claim   Claim
		gone    bool
		stands  bool
		evict   []int
	}{
		{"the first", nil, claim("a", "1", 1, 1), false, false, nil},
		{"its socket is gone", nil, claim("a", "1", 1, 1), true, true, nil},
		{"a reconnect with a fresh id", []Claim{claim("a", "1", 1, 1)}, claim("a", "2", 2, 2), false, false, []int{0}},
		{"a reconnect with the same id", []Claim{claim("a", "1", 1, 1)}, claim("a", "1", 2, 2), false, false, []int{0}},
		{"an old connection's late resume, a higher attach number", []Claim{claim("a", "2", 2, 2)}, claim("a", "1", 1, 9), false, true, nil},
		{"the same, with the same id", []Claim{claim("a", "1", 2, 2)}, claim("a", "1", 1, 9), false, true, nil},
		{"two of one name in one session", []Claim{claim("a", "1", 1, 1)}, claim("a", "2", 1, 2), false, false, []int{0}},
		{"the earlier of them comes last", []Claim{claim("a", "2", 1, 2)}, claim("a", "1", 1, 1), false, true, nil},
		{"different names coexist", []Claim{claim("a", "1", 1, 1), claim("b", "2", 1, 2)}, claim("c", "3", 1, 3), false, false, nil},
		{"one id under another name", []Claim{claim("a", "1", 1, 1)}, claim("b", "1", 1, 2), false, false, []int{0}},
		{"an eviction reaches every connection", []Claim{claim("a", "1", 1, 1), claim("b", "2", 1, 2), claim("a", "3", 2, 3)}, claim("a", "4", 3, 4), false, false, []int{0, 2}},
		{"one higher holder is enough to stand down", []Claim{claim("a", "1", 1, 1), claim("a", "3", 5, 3)}, claim("a", "4", 3, 4), false, true, nil},
		{"itself is no rival", []Claim{claim("a", "1", 1, 1)}, claim("a", "1", 1, 1), false, false, nil},
	} {
		v := Decide(tc.holders, tc.claim, tc.gone)
		if v.StandDown != tc.stands || !slices.Equal(v.Evict, tc.evict) {
			t.Errorf("%s: got %+v", tc.what, v)
		}
	}
}

func TestTheLastOneStandingIsTheSameForEveryOrderOfArrival(t *testing.T) {
	claims := []Claim{{"a", "1", Rank{1, 1}}, {"a", "2", Rank{2, 2}}, {"a", "3", Rank{1, 3}}, {"a", "2", Rank{3, 4}}}
	var permute func(rest, order []Claim)
	permute = func(rest, order []Claim) {
		if len(rest) == 0 {
			var holders []Claim
			for _, c := range order {
				v := Decide(holders, c, false)
				if v.StandDown {
					continue
				}
				for _, i := range slices.Backward(v.Evict) {
					holders = slices.Delete(holders, i, i+1)
				}
				holders = append(holders, c)
			}
			if len(holders) != 1 || holders[0] != claims[3] {
				t.Errorf("%v ends with %v", order, holders)
			}
			return
		}
		for i := range rest {
			permute(slices.Concat(rest[:i], rest[i+1:]), append(slices.Clone(order), rest[i]))
		}
	}
	permute(claims, nil)
}

func TestAnOpenedConnectionIsClosedOnceWhoeverLearnsOfItFirst(t *testing.T) {
	stats := &Stats{}
	for range 2000 {
		o := &opening{codec: acp.GenA, stream: "s", stats: stats}
		farewells := make(chan *Farewell, 3)
		var group sync.WaitGroup
		group.Go(func() { farewells <- o.arrived([]byte(`{"connectionId":"c-1"}`)) })
		for range 2 {
			group.Go(func() {
				f, open := o.close()
				if open {
					stats.closed(nil)
				}
				farewells <- f
			})
		}
		group.Wait()
		close(farewells)
		n := 0
		for f := range farewells {
			if f != nil {
				n++
				if f.ConnectionID != "c-1" || f.Method != "mcp/disconnect" || string(f.Params) != `{"connectionId":"c-1"}` || !f.Request {
					t.Fatalf("got %+v", f)
				}
			}
		}
		if n != 1 {
			t.Fatalf("%d farewells", n)
		}
	}
	if c := stats.Snapshot(); c.Opened != 2000 || c.Disconnected+c.Late != 2000 {
		t.Errorf("each is opened once and closed once: %+v", c)
	}
}
