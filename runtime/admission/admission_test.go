package admission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpod/acpod/runtime/kernel"
)

// house is a desk with the limits that a pod has.
type house struct {
	*Desk
	all, each, off *Limit
}

func open(all, each int) house {
	d := New()
	return house{d, d.Limit("connections", all, 5*time.Second), d.Limit("connections_per_address", each, 5*time.Second), d.Limit("sessions_per_key", 0, time.Second)}
}

func (h house) enter(t *testing.T, claims ...Claim) *Slot {
	t.Helper()
	s, err := h.Admit(claims...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refusal is the scope with use and limit, or "" for who got in.
func refusal(err error) string {
	full, ok := errors.AsType[*kernel.Overloaded](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %d/%d", full.Scope, full.Used, full.Limit)
}

func TestAClaimIsGrantedInAllItsLimitsOrInNone(t *testing.T) {
	for name, row := range map[string]struct {
		before []string // whose connections are open
		claims func(house) []Claim
		want   string
	}{
		"an empty house":                    {nil, func(h house) []Claim { return []Claim{h.all.Claim(), h.each.Of("a")} }, ""},
		"nothing is claimed":                {[]string{"a", "a", "b"}, func(house) []Claim { return nil }, ""},
		"the last slot":                     {[]string{"a", "b"}, func(h house) []Claim { return []Claim{h.all.Claim(), h.each.Of("a")} }, ""},
		"one more than all":                 {[]string{"a", "b", "c"}, func(h house) []Claim { return []Claim{h.all.Claim(), h.each.Of("d")} }, "connections 3/3"},
		"one more than each":                {[]string{"a", "a"}, func(h house) []Claim { return []Claim{h.all.Claim(), h.each.Of("a")} }, "connections_per_address 2/2"},
		"another has nothing to do with it": {[]string{"a", "a"}, func(h house) []Claim { return []Claim{h.all.Claim(), h.each.Of("b")} }, ""},
		"the first full limit is named":     {[]string{"a", "a", "b"}, func(h house) []Claim { return []Claim{h.all.Claim(), h.each.Of("a")} }, "connections 3/3"},
		"two of a kind need two":            {[]string{"a"}, func(h house) []Claim { return []Claim{h.each.Of("a"), h.each.Of("a")} }, "connections_per_address 1/2"},
		"two of a kind that fit":            {nil, func(h house) []Claim { return []Claim{h.each.Of("a"), h.each.Of("a")} }, ""},
		"a limit that is off":               {nil, func(h house) []Claim { return []Claim{h.off.Of("k"), h.off.Of("k"), {}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(3, 2)
			for _, who := range row.before {
				h.enter(t, h.all.Claim(), h.each.Of(who))
			}
			before, claims := h.Counts(), row.claims(h)
			fits := h.Fits(claims...)
			if !reflect.DeepEqual(before, h.Counts()) {
				t.Error("a question changed the counters")
			}
			s, err := h.Admit(claims...)
			if got := refusal(err); got != row.want || fits != (row.want == "") {
				t.Fatalf("refused %q, want %q (fits: %v)", got, row.want, fits)
			}
			if err == nil {
				s.Release()
			} else if full, _ := errors.AsType[*kernel.Overloaded](err); full.RetryAfter != 5*time.Second || full.Size != 1 {
				t.Errorf("the refusal says %+v", full)
			}
			for i, now := range h.Counts() {
				if now.Used != before[i].Used || now.Refused > 1 || (now.Refused == 1) != strings.HasPrefix(row.want, now.Scope+" ") {
					t.Errorf("afterwards %+v, before %+v", now, before[i])
				}
			}
		})
	}
}

func TestASlotIsGivenBackInPartsAndOnce(t *testing.T) {
	h := open(2, 1)
	s := h.enter(t, h.all.Claim(), h.each.Of("a"))
	if !s.Give(h.each) || s.Give(h.each) || h.Used(h.each) != 0 || h.Used(h.all) != 1 {
		t.Errorf("a part is left: %+v", h.Counts())
	}
	other := h.enter(t, h.all.Claim(), h.each.Of("a"))
	s.Release()
	s.Release()
	if s.Give(h.all) || h.Used(h.all) != 1 {
		t.Errorf("released twice: %+v", h.Counts())
	}
	other.Release()
	var none *Slot
	none.Release()
	if _, ok := none.Yield(nil); ok || none.Give(h.all) || len(h.all.by)+len(h.each.by) != 0 {
		t.Errorf("the tables are not empty: %v %v", h.all.by, h.each.by)
	}
}

func TestWhoYieldsMakesRoomForOneAndForNobodyElse(t *testing.T) {
	for name, row := range map[string]struct {
		who       string // whose slot yields
		newcomer  string
		keepsFull bool // what the yielding one is left with has no room
		ok        bool
	}{
		"in all":                            {who: "a", newcomer: "c", ok: true},
		"of the same address":               {who: "a", newcomer: "a", ok: true},
		"another address is full":           {who: "a", newcomer: "b", ok: false},
		"there is no room to leave through": {who: "a", newcomer: "c", keepsFull: true, ok: false},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(2, 1)
			leaving := h.Limit("closing", 1, time.Second)
			slots := map[string]*Slot{"a": h.enter(t, h.all.Claim(), h.each.Of("a")), "b": h.enter(t, h.all.Claim(), h.each.Of("b"))}
			if row.keepsFull {
				h.enter(t, leaving.Claim())
			}
			before := h.Counts()
			s, ok := slots[row.who].Yield([]Claim{leaving.Claim()}, h.all.Claim(), h.each.Of(row.newcomer))
			if ok != row.ok || (s != nil) != ok {
				t.Fatalf("yielded: %v", ok)
			}
			if !ok {
				if !reflect.DeepEqual(before, h.Counts()) {
					t.Error("a trade that did not come about left a trace")
				}
				return
			}
			if h.Used(h.all) != 2 || h.Used(leaving) != 1 {
				t.Errorf("%+v", h.Counts())
			}
			if _, again := slots[row.who].Yield(nil, h.all.Claim()); again {
				t.Error("what was yielded was yielded once more")
			}
			slots[row.who].Release()
			s.Release()
			if h.Used(leaving) != 0 || h.Used(h.all) != 1 {
				t.Errorf("afterwards %+v", h.Counts())
			}
		})
	}
}

func TestAGroupGivesBackWhatItsGenerationLeft(t *testing.T) {
	h := open(10, 10)
	g := h.Group()
	var slots []*Slot
	for range 5 {
		s, err := g.Admit(h.all.Claim())
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, s)
	}
	stays := h.enter(t, h.all.Claim())
	slots[2].Release()
	slots[4].Release()
	heir, ok := slots[0].Yield(nil, h.all.Claim())
	if !ok {
		t.Fatal("it did not yield")
	}
	g.Close()
	g.Close()
	for _, s := range append(slots, heir) {
		s.Release() // too late, and no harm
	}
	if h.Used(h.all) != 1 {
		t.Errorf("%d are in use", h.Used(h.all))
	}
	if _, err := g.Admit(h.all.Claim()); !errors.Is(err, kernel.ErrStopped) {
		t.Errorf("a closed group admits: %v", err)
	}
	stays.Release()
}

// TestRefusedClaimsLeaveNoTrace compares a desk with a plain recount over random histories.
func TestRefusedClaimsLeaveNoTrace(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 40 {
		d := New()
		limits := []*Limit{d.Limit("a", r.IntN(6), 0), d.Limit("b", 1+r.IntN(4), 0), d.Limit("c", 1+r.IntN(3), 0)}
		group := d.Group()
		held := map[*Slot][]Claim{}
		count := func(c Claim) (n int) {
			for _, claims := range held {
				n += number(claims, c)
			}
			return n
		}
		random := func() (claims []Claim) {
			for range r.IntN(4) {
				claims = append(claims, limits[r.IntN(3)].Of([]string{"", "x", "y"}[r.IntN(3)]))
			}
			return claims
		}
		anyone := func() (*Slot, []Claim) {
			for s, claims := range held {
				return s, claims
			}
			return nil, nil
		}
		for range 120 {
			switch claims := random(); r.IntN(5) {
			case 0, 1:
				fits := true
				for i, c := range claims {
					fits = fits && (c.limit.max == 0 || count(c)+number(claims[:i+1], c) <= c.limit.max)
				}
				s, err := group.Admit(claims...)
				if (err == nil) != fits {
					t.Fatalf("seed %d: %v although it fits: %v", seed, err, fits)
				}
				if err == nil {
					held[s] = claims
				}
			case 2:
				if s, _ := anyone(); s != nil {
					s.Release()
					delete(held, s)
				}
			case 3:
				if s, had := anyone(); len(had) > 0 {
					i := r.IntN(len(had))
					for j, c := range had {
						if c.limit == had[i].limit {
							i = j
							break
						}
					}
					s.Give(had[i].limit)
					held[s] = append(append([]Claim{}, had[:i]...), had[i+1:]...)
				}
			case 4:
				if s, _ := anyone(); s != nil {
					keep := random()
					if heir, ok := s.Yield(keep, claims...); ok {
						held[s], held[heir] = keep, claims
					}
				}
			}
			for _, l := range limits {
				for _, of := range []string{"", "x", "y"} {
					want := count(l.Of(of))
					if l.max == 0 {
						want = 0
					}
					if got := l.by[of]; got != want || l.max > 0 && got > l.max {
						t.Fatalf("seed %d: %s of %q: %d in use, %d held, limit %d", seed, l.scope, of, got, want, l.max)
					}
				}
			}
		}
		group.Close()
		for _, c := range d.Counts() {
			if c.Used != 0 || c.Admitted != c.Released {
				t.Fatalf("seed %d: at the end %+v", seed, c)
			}
		}
		if group.first != nil || len(limits[1].by) != 0 {
			t.Fatalf("seed %d: the desk remembers somebody", seed)
		}
	}
}

// TestAStormNeverPassesALimit has many goroutines enter and leave, each with a few slots at a time; who is in is counted by them as well.
func TestAStormNeverPassesALimit(t *testing.T) {
	const all, each, goroutines, rounds, hold = 7, 3, 16, 400, 5
	h := open(all, each)
	leaving := h.Limit("closing", 2, 0)
	var in, admitted, refused atomic.Int64
	by := map[string]*atomic.Int64{"a": {}, "b": {}, "c": {}}
	var wait sync.WaitGroup
	type holding struct {
		*Slot
		who string
	}
	for n := range goroutines {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 2))
			var held []holding
			release := func(one holding) {
				by[one.who].Add(-1)
				in.Add(-1)
				if r.IntN(2) == 0 {
					wait.Go(one.Release) // twice at once
				}
				one.Release()
			}
			for range rounds {
				who := []string{"a", "b", "c"}[r.IntN(3)]
				s, err := h.Admit(h.all.Claim(), h.each.Of(who))
				if err != nil {
					refused.Add(1)
				} else {
					admitted.Add(1)
					if now := in.Add(1); now > all {
						t.Errorf("%d are in", now)
					}
					if now := by[who].Add(1); now > each {
						t.Errorf("%d of %s are in", now, who)
					}
					if r.IntN(4) == 0 { // in favour of another of the same address, whom nobody else has come before
						if heir, ok := s.Yield([]Claim{leaving.Claim()}, h.all.Claim(), h.each.Of(who)); ok {
							s.Release()
							s = heir
						}
					}
					held = append(held, holding{s, who})
				}
				if len(held) == hold || err != nil && len(held) > 0 && r.IntN(2) == 0 {
					release(held[0])
					held = held[1:]
				}
			}
			for _, one := range held {
				release(one)
			}
		})
	}
	wait.Wait()
	if admitted.Load()+refused.Load() != goroutines*rounds || admitted.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d were admitted and %d refused", admitted.Load(), refused.Load())
	}
	for _, c := range h.Counts() {
		if c.Used != 0 || c.Admitted-c.Released != 0 {
			t.Errorf("at the end %+v", c)
		}
	}
}
