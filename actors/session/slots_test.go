package session

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/acpod/acpod/protocol/jsonrpc"
	"github.com/acpod/acpod/runtime/admission"
	"github.com/acpod/acpod/runtime/kernel"
)

// TestWhatEachWayInClaims: one decision for all who come in, and what each needs of it.
func TestWhatEachWayInClaims(t *testing.T) {
	for name, row := range map[string]struct {
		way  way
		want string
	}{
		"session/new":                {wayNew, "sessions sessions_per_key"},
		"a suspended one comes back": {wayBack, "sessions sessions_per_key"},
		"a living one is joined":     {wayJoin, ""},
		"an agent is started":        {wayAgent, "max_sessions"},
	} {
		g := newGate(&Config{Admission: admission.New(), Sessions: 9, SessionsPerKey: 9, MaxSessions: 9})
		if _, err := g.desk.Admit(g.claims(row.way, "k")...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var took []string
		for _, c := range g.desk.Counts() {
			if c.Used == 1 {
				took = append(took, c.Scope)
			}
		}
		if got := strings.Join(took, " "); got != row.want {
			t.Errorf("%s takes %q, not %q", name, got, row.want)
		}
	}
}

// used is what is in use of one limit.
func (p *pod) used(scope string) int {
	p.t.Helper()
	for _, c := range p.s.gate.desk.Counts() {
		if c.Scope == scope {
			return c.Used
		}
	}
	p.t.Fatalf("no limit %s", scope)
	return 0
}

func (p *pod) refused(c *client, req uint64, scope string, limit int64) {
	p.t.Helper()
	a := c.answer(req)
	if a == nil || a.err == nil {
		p.t.Fatalf("it was not refused: %+v", a)
	}
	data, _ := a.err.Data.(jsonrpc.OverloadData)
	if a.err.Code != jsonrpc.Overload || data.Scope != scope || data.Limit != limit || data.Used != limit || data.RetryAfter <= 0 {
		p.t.Errorf("refused with %v %+v, not %s of %d", a.err, data, scope, limit)
	}
}

// Each key has its own part, however many connections it has, and a session that is suspended or closed gives its slot back.
func TestAKeyHasNoMoreSessionsThanItsPart(t *testing.T) {
	inPod(t, func(c *Config) { c.SessionsPerKey, c.SessionTTL = 2, time.Hour }, func(p *pod) {
		one, two, other := p.client("k", 1), p.client("k", 2), p.client("l", 1)
		first, _ := one.opened(`[]`), two.opened(`[]`)
		p.refused(two, two.open(`[]`), "sessions_per_key", 2)
		stranger := other.opened(`[]`)
		one.want(one.close(first), "{}")
		p.settle()
		third := one.opened(`[]`)
		p.refused(two, two.open(`[]`), "sessions_per_key", 2)
		one.leave()
		p.after(2 * time.Hour) // suspended: it does not count
		if n := p.used("sessions"); n != 2 {
			t.Errorf("%d sessions are counted", n)
		}
		fourth := two.opened(`[]`)
		back := p.client("k", 1)
		p.refused(back, back.resume(third, `[]`), "sessions_per_key", 2)
		two.want(two.close(fourth), "{}")
		p.settle()
		if a := back.answer(back.resume(third, `[]`)); a == nil || a.err != nil {
			t.Errorf("the suspended one does not come back: %+v", a)
		}
		if n := p.used("sessions_per_key"); n != 3 {
			t.Errorf("%d are counted", n)
		}
		joins := p.client("k", 1) // the resume of a living one needs no slot although all are taken
		if a := joins.answer(joins.resume(third, `[]`)); a == nil || a.err != nil {
			t.Errorf("a living one cannot be joined at the limit: %+v", a)
		}
		other.want(other.close(stranger), "{}")
		for _, c := range []*client{two, other, back, joins} {
			c.leave()
		}
		p.after(2 * time.Hour)
		p.atRest()
	})
}

// A refused request leaves nothing, however often it is repeated, and the slots come back whatever way an opening fails.
func TestARefusedRequestLeavesNoSlotTaken(t *testing.T) {
	inPod(t, func(c *Config) { c.Sessions, c.MaxSessions = 2, 2 }, func(p *pod) {
		c := p.client("k", 1)
		first := c.opened(`[]`)
		for range 1000 {
			if a := c.answer(c.openAt("/nowhere", `[]`)); a == nil || a.err == nil || a.err.Code != jsonrpc.InvalidParams {
				t.Fatalf("a wrong folder: %+v", a)
			}
		}
		if s, a := p.used("sessions"), p.used("max_sessions"); s != 1 || a != 1 {
			t.Errorf("%d sessions and %d agents are counted", s, a)
		}
		second := c.opened(`[]`)
		agents := p.agents.count()
		for range 1000 {
			p.refused(c, c.open(`[]`), "sessions", 2)
		}
		if p.agents.count() != agents {
			t.Errorf("refused requests started %d agents", p.agents.count()-agents)
		}
		for _, id := range []string{first, second} {
			c.want(c.close(id), "{}")
		}
		p.settle()
		third := c.opened(`[]`)
		p.agents.last().exit(3)
		p.settle()
		if s, a := p.used("sessions"), p.used("max_sessions"); s != 1 || a != 0 {
			t.Errorf("after the agent's crash %d sessions and %d agents are counted", s, a)
		}
		c.want(c.close(third), "{}")
		p.settle()
		p.atRest()
	})
}

// Two requests at once for the last place start one agent.
func TestTwoAtOnceForTheLastPlaceStartOneAgent(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		one, two := p.client("k", 1), p.client("l", 2)
		p.agents.is(func(a *agents) { a.mute = true }) // the first is still being opened when the second comes
		a, b := one.open(`[]`), two.open(`[]`)
		p.settle()
		if one.answer(a) != nil {
			t.Fatalf("the first was answered: %+v", one.answer(a))
		}
		p.refused(two, b, "max_sessions", 1)
		if n := p.agents.count(); n != 1 {
			t.Errorf("%d agents were started", n)
		}
		one.leave()
		p.after(time.Hour)
		p.atRest()
	})
}

// A session that is suspended while the resume of it, then a living one, is on its way in comes back with a slot of its own, or not at all.
func TestAResumeThatFindsItSuspendedNeedsASlot(t *testing.T) {
	for _, room := range []bool{true, false} {
		inPod(t, func(c *Config) { c.Sessions, c.SessionTTL = 1, time.Hour }, func(p *pod) {
			c := p.client("k", 1)
			id := c.opened(`[]`)
			c.leave()
			p.after(time.Hour - 10*time.Second)
			resolve := p.s.folders
			p.s.folders = func(workdir string, params *Params) (Folders, *jsonrpc.Error) {
				time.Sleep(20 * time.Second) // a slow disk
				return resolve(workdir, params)
			}
			back := p.client("k", 1)
			req := back.resume(id, `[]`)
			p.after(15 * time.Second) // suspended
			if n := p.used("sessions"); n != 0 {
				t.Fatalf("%d sessions are counted", n)
			}
			p.s.folders = resolve
			other := p.client("l", 2)
			if !room {
				other.opened(`[]`)
			}
			p.after(time.Minute)
			if !room {
				p.refused(back, req, "sessions", 1)
			} else if a := back.answer(req); a == nil || a.err != nil || p.used("sessions") != 1 {
				t.Errorf("answered %+v, %d are counted", a, p.used("sessions"))
			}
			back.leave()
			other.leave()
			p.after(2 * time.Hour)
			p.atRest()
		})
	}
}

// A supervisor that crashes takes its sessions along; its successor begins with nothing taken, and what an old turn still
// asks for is refused.
func TestACrashOfTheSupervisorGivesAllSlotsBack(t *testing.T) {
	g := newGate(&Config{Admission: admission.New(), Sessions: 1, MaxSessions: 1})
	old := g.generation()
	slot, err := old.Admit(g.claims(wayNew, "k")...)
	if err != nil {
		t.Fatal(err)
	}
	next := g.generation()
	if _, err := old.Admit(g.claims(wayNew, "k")...); !errors.Is(err, kernel.ErrStopped) {
		t.Errorf("the old generation still admits: %v", err)
	}
	if _, err := next.Admit(g.claims(wayNew, "k")...); err != nil {
		t.Errorf("its slots are still taken: %v", err)
	}
	slot.Release()
	if g.desk.Used(g.sessions) != 1 {
		t.Error("a slot was given back twice")
	}
}

// A session that ends while another one is asked to yield for it takes no place with it.
func TestAPlaceThatNobodyWantsAnyMoreIsFree(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		a, b := p.client("k", 1), p.client("l", 2)
		second := b.opened("[]")
		p.agents.last().exit(3)
		third := a.opened("[]") // in the place that is free now
		end := make(chan struct{})
		a.hold = func(string) { <-end }
		a.tell(third, Prompt{Client: a, Req: 1000, Params: []byte(`{"prompt":[]}`)}) // it stands still in the refusal
		p.settle()
		turn := b.promptSoon(second, "go") // wants the place of the third, which does not answer
		p.settle()
		b.close(second)
		close(end)
		p.settle()
		b.want(turn, `{"stopReason":"cancelled"}`)
		if n := p.used("max_sessions"); n != 0 {
			t.Errorf("%d places are taken, and there is no agent", n)
		}
		a.leave()
		b.leave()
		p.after(p.s.cfg.SessionTTL)
		p.atRest()
	})
}

// The words of its turn are still on their way to a client that reads slowly, and the answer behind them.
func TestASessionWhoseClientHasNotReadItsAnswerDoesNotYield(t *testing.T) {
	inPod(t, func(c *Config) { c.MaxSessions = 1 }, func(p *pod) {
		c := p.client("k", 1)
		id := c.opened("[]")
		turn := c.prompt(id, "hello")
		c.full = true
		p.agents.last().say("word")
		p.agents.last().end(endTurn)
		other := p.client("l", 2)
		req := other.open("[]")
		if a := c.answer(turn); a != nil {
			t.Errorf("the turn was answered %+v %v", a, a.err)
		}
		p.refused(other, req, "max_sessions", 1)
		c.flow()
		p.after(retryEvery)
		c.want(turn, endTurn)
		other.opened("[]")
	})
}
