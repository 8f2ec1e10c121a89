package bridge

import (
	"errors"
	"maps"
	"os"
	"testing"
)

const self = 50

// machine is a process table; before is called ahead of each look, with its number, and may change it.
func machine(t map[int]process, before func(look int, t map[int]process)) table {
	t, look := maps.Clone(t), 0
	return func(pid int) (process, error) {
		if look++; before != nil {
			before(look, t)
		}
		p, ok := t[pid]
		if !ok {
			return process{}, errors.New("no such process")
		}
		return p, nil
	}
}

func TestAPeerIsWhoseProcessItDescendsFrom(t *testing.T) {
	// pod 50: agent a 100 → shell 110 → relay 120; agent b 200 → relay 210; a server of mcp.json 300 → relay 310.
	family := map[int]process{
		1: {0, 1}, self: {1, 10}, 100: {self, 100}, 110: {100, 110}, 120: {110, 120}, 200: {self, 200}, 210: {200, 210},
		300: {self, 300}, 310: {300, 310}, 400: {self, 400}, 500: {1, 50}, 510: {500, 60}, 600: {0, 70}, 610: {600, 80},
	}
	find := func(pid int, start uint64) (Agent, bool) {
		switch [2]uint64{uint64(pid), start} {
		case [2]uint64{100, 100}:
			return Agent{Session: "a"}, true
		case [2]uint64{200, 200}:
			return Agent{Session: "b"}, true
		}
		return Agent{}, false
	}
	for name, c := range map[string]struct {
		pid    int
		before func(look int, t map[int]process)
		want   string
		why    reason
	}{
		"the agent itself":                    {100, nil, "a", ""},
		"a relay below a shell":               {120, nil, "a", ""},
		"a relay of another agent":            {210, nil, "b", ""},
		"a child of the pod that is no agent": {310, nil, "", noAgent},
		"an orphan that came to the pod":      {400, nil, "", noAgent},
		"a relay outside of every tree":       {510, nil, "", noAgent},
		"a tree whose root has no parent":     {610, nil, "", noAgent},
		"the pod itself":                      {self, nil, "", noPid},
		"init":                                {1, nil, "", noPid},
		"no pid":                              {0, nil, "", noPid},
		"a process that there is not":         {999, nil, "", changed},
		"the peer's pid was reused": {210, func(look int, t map[int]process) {
			if look == 3 { // between the two looks at it
				t[210] = process{200, 999}
			}
		}, "", changed},
		"the agent's pid was reused before": {120, func(_ int, t map[int]process) { t[100] = process{self, 115} }, "", changed},
		"the parent ended meanwhile, and its pid was taken by another agent's child": {120, func(look int, t map[int]process) {
			if look == 2 {
				t[110], t[120] = process{200, 118}, process{1, 120}
			}
		}, "", changed},
		"the parent ended meanwhile, and its pid is free": {120, func(look int, t map[int]process) {
			if look == 2 {
				delete(t, 110)
			}
		}, "", changed},
		"the peer ended meanwhile": {120, func(look int, t map[int]process) {
			if look == 3 {
				delete(t, 120)
			}
		}, "", changed},
		"a parent that is younger than its child": {120, func(_ int, t map[int]process) { t[110] = process{200, 130} }, "", changed},
	} {
		got, why := agentOf(machine(family, c.before), find, c.pid, self)
		if got.Session != c.want || why != c.why {
			t.Errorf("%s: %q %q, not %q %q", name, got.Session, why, c.want, c.why)
		}
	}
}

func TestAWalkEnds(t *testing.T) {
	chain := map[int]process{}
	for pid := 100; pid < 100+2*depth; pid++ {
		chain[pid] = process{pid + 1, uint64(1000 - pid)}
	}
	find := func(at int) func(int, uint64) (Agent, bool) {
		return func(pid int, _ uint64) (Agent, bool) { return Agent{Session: "x"}, pid == at }
	}
	if got, why := agentOf(machine(chain, nil), find(100+depth-1), 100, self); why != "" || got.Session != "x" {
		t.Errorf("the last that is looked at: %q", why)
	}
	if _, why := agentOf(machine(chain, nil), find(100+depth), 100, self); why != noAgent {
		t.Errorf("one beyond: %q", why)
	}
	circle := map[int]process{100: {101, 5}, 101: {100, 5}} // no kernel says so
	if _, why := agentOf(machine(circle, nil), find(0), 100, self); why != noAgent {
		t.Errorf("a circle: %q", why)
	}
}

func TestTheSystemsProcessesAreRead(t *testing.T) {
	mine, err := system(os.Getpid())
	if err != nil || mine.parent != os.Getppid() || mine.start == 0 {
		t.Errorf("%+v %v", mine, err)
	}
}
