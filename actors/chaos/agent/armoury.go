package agent

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
)

// armoury holds the strikes that are still to come.
type armoury struct {
	records string
	mu      sync.Mutex
	rng     *rand.Rand
	planned []Strike
	stuck   bool
}

func newArmoury(o Options) *armoury {
	m := &armoury{records: o.Records, rng: rand.New(rand.NewPCG(o.Plan.Seed, o.Ordinal))}
	for _, s := range o.Plan.Strikes {
		if m.rng.Float64() < s.Rate {
			m.planned = append(m.planned, s.Strike)
		}
	}
	return m
}

func (m *armoury) intN(n int) int { m.mu.Lock(); defer m.mu.Unlock(); return m.rng.IntN(n) }

// hearing does not return once the agent has gone deaf.
func (m *armoury) hearing(ctx context.Context) {
	m.mu.Lock()
	stuck := m.stuck
	m.mu.Unlock()
	if stuck {
		forever(ctx)
	}
}

func (m *armoury) deafen() { m.mu.Lock(); m.stuck = true; m.mu.Unlock() }

// take looks for an armed strike of a fault at a stage, of the turn first, then of the plan. It strikes once; its variation is
// settled, and it is written down, before the caller does what it says.
func (m *armoury) take(stage, fault string, t *turn) (Strike, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := func(s Strike) bool { return s.Stage == stage && s.Fault == fault }
	var s Strike
	if at := indexOf(t, is); at >= 0 {
		s = t.armed[at]
		t.armed = slices.Delete(t.armed, at, at+1)
	} else if at := slices.IndexFunc(m.planned, is); at >= 0 {
		s = m.planned[at]
		m.planned = slices.Delete(m.planned, at, at+1)
	} else {
		return Strike{}, false
	}
	if known, _ := Named(s.Fault); s.Variant == "" && len(known.Variants) > 0 {
		s.Variant = known.Variants[m.rng.IntN(len(known.Variants))]
	}
	note(m.records, s)
	return s, true
}

// armed tells whether anything will strike at a stage.
func (m *armoury) armed(stage string, t *turn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := func(s Strike) bool { return s.Stage == stage }
	return indexOf(t, is) >= 0 || slices.ContainsFunc(m.planned, is)
}

func indexOf(t *turn, is func(Strike) bool) int {
	if t == nil {
		return -1
	}
	return slices.IndexFunc(t.armed, is)
}

func (m *armoury) arm(t *turn, s Strike) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.armed = append(t.armed, s)
}
