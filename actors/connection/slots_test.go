package connection

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// accounts is a ledger whose sessions are counted, as one connection's are.
type accounts struct {
	*ledger
	desk  *admission.Desk
	limit *admission.Limit
	group *admission.Group
}

func openAccounts(limit int) *accounts {
	d := admission.New()
	return &accounts{ledger: newLedger(), desk: d, limit: d.Limit("sessions_per_connection", limit, 0), group: d.Group()}
}

// ask is what conn does with a request that opens a session: id is "" for a new one. It reports whether there was room.
func (a *accounts) ask(id string) (req uint64, ok bool) {
	slot, owned := (*admission.Slot)(nil), false
	if id != "" {
		slot, owned = a.borrow(id)
	}
	if !owned {
		var err error
		if slot, err = a.group.Admit(a.limit.Of("1")); err != nil {
			return 0, false
		}
	}
	req, _ = a.enter(&openRequest{class: opening, session: id})
	a.reserve(req, slot)
	return req, true
}

func (a *accounts) answer(req uint64, id string) {
	if id != "" {
		a.opened(req, id)
	}
	a.settle(req)
}

// However a request and the end of its session cross, the session is counted once while it is owned or opened, and not afterwards.
func TestASessionOfAConnectionIsCountedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(a *accounts)
		want int
	}{
		"a new one, refused":               {func(a *accounts) { r, _ := a.ask(""); a.answer(r, "") }, 0},
		"a new one under way":              {func(a *accounts) { a.ask("") }, 1},
		"a new one, granted":               {func(a *accounts) { r, _ := a.ask(""); a.grant("s", kernel.Ref{}); a.answer(r, "s") }, 1},
		"granted and not answered yet":     {func(a *accounts) { a.ask(""); a.grant("s", kernel.Ref{}) }, 1},
		"lost before it was answered":      {func(a *accounts) { r, _ := a.ask(""); a.grant("s", kernel.Ref{}); a.lose("s"); a.answer(r, "s") }, 0},
		"granted and lost":                 {func(a *accounts) { a.own("s"); a.lose("s"); a.lose("s") }, 0},
		"a resume of its own":              {func(a *accounts) { a.own("s"); r, _ := a.ask("s"); a.grant("s", kernel.Ref{}); a.answer(r, "s") }, 1},
		"a resume of its own, refused":     {func(a *accounts) { a.own("s"); r, _ := a.ask("s"); a.answer(r, "") }, 1},
		"a resume of its own, never given": {func(a *accounts) { a.own("s"); slot, _ := a.borrow("s"); a.handBack("s", slot) }, 1},
		"two resumes of its own at once": {func(a *accounts) {
			a.own("s")
			one, _ := a.ask("s")
			two, _ := a.ask("s")
			a.answer(one, "")
			a.answer(two, "s")
		}, 1},
		"lost while it is resumed, and granted again": {func(a *accounts) {
			a.own("s")
			r, _ := a.ask("s")
			a.lose("s")
			a.grant("s", kernel.Ref{})
			a.answer(r, "s")
		}, 1},
		"lost while it is resumed, and refused": {func(a *accounts) { a.own("s"); r, _ := a.ask("s"); a.lose("s"); a.answer(r, "") }, 0},
		"lost while two resume it, and granted to the second": {func(a *accounts) {
			a.own("s")
			one, _ := a.ask("s")
			two, _ := a.ask("s")
			a.lose("s")
			a.answer(one, "")
			a.grant("s", kernel.Ref{})
			a.answer(two, "s")
		}, 1},
		"another's resume, granted":             {func(a *accounts) { r, _ := a.ask("s"); a.grant("s", kernel.Ref{}); a.answer(r, "s") }, 1},
		"an answer without a name to a new one": {func(a *accounts) { a.own("s"); r, _ := a.ask(""); a.answer(r, "") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := openAccounts(9)
			row.do(a)
			if got := a.desk.Used(a.limit); got != row.want {
				t.Errorf("%d are counted, not %d", got, row.want)
			}
			a.group.Close()
			if a.desk.Used(a.limit) != 0 {
				t.Error("the end of the connection gives not all back")
			}
		})
	}
}

func (a *accounts) own(id string) {
	r, _ := a.ask("")
	a.grant(id, kernel.Ref{})
	a.answer(r, id)
}

// Sessions that come and go on many goroutines at once: the count is never above the limit and ends at zero.
func TestSlotsOfAConnectionUnderManyHands(t *testing.T) {
	const limit = 4
	a := openAccounts(limit)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 3))
			ids := []string{"a", "b", "c"}
			for range 500 {
				id := ids[r.IntN(3)]
				resumes := ""
				if r.IntN(2) == 0 {
					resumes = id
				}
				req, ok := a.ask(resumes)
				if ok {
					if r.IntN(3) > 0 {
						a.grant(id, kernel.Ref{})
						a.answer(req, id)
					} else {
						a.answer(req, "")
					}
				}
				if r.IntN(2) == 0 {
					a.lose(id)
				}
				if used := a.desk.Used(a.limit); used > limit {
					t.Errorf("%d of %d are in use", used, limit)
				}
			}
		})
	}
	all.Wait()
	for _, id := range []string{"a", "b", "c"} {
		a.lose(id)
	}
	if used := a.desk.Used(a.limit); used != 0 {
		t.Errorf("%d are in use at the end", used)
	}
}
