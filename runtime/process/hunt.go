package process

import (
	"os"
	"syscall"
	"time"
)

// hunt ends groups with all that belongs to them. It is for who started none of it: the guardian and a sweep.
type hunt struct {
	groups []Group
	kin    *kin
	noted  map[Group]map[member]struct{}
}

func newHunt(groups []Group) *hunt {
	h := &hunt{groups: groups, noted: map[Group]map[member]struct{}{}}
	h.kin, _ = newKin(system, os.Getpid(), nil)
	return h
}

// find gives what lives of the groups, and the groups of which something lives.
func (h *hunt) find() (prey map[member]struct{}, alive []Group) {
	prey = map[member]struct{}{}
	all := h.kin.all()
	for _, g := range h.groups {
		found := h.kin.of(g, h.noted[g], all)
		if len(found) == 0 {
			continue
		}
		alive = append(alive, g)
		if h.noted[g] == nil {
			h.noted[g] = map[member]struct{}{}
		}
		for pid, s := range found {
			m := member{pid, s.start}
			prey[m], h.noted[g][m] = struct{}{}, struct{}{}
		}
	}
	return prey, alive
}

// endGroups sends TERM to all, waits until all are gone or the grace is over, sends KILL to the rest, and waits as
// long again. It returns those that live on.
func endGroups(groups []Group, grace time.Duration) []Group {
	if len(groups) == 0 {
		return nil
	}
	h := newHunt(groups)
	if h.kin.table == nil {
		return groups // without /proc nothing tells a group from another that has its number
	}
	var left []Group
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		told := map[member]struct{}{}
		deadline := time.Now().Add(grace)
		for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
			_ = h.kin.look()
			var prey map[member]struct{}
			if prey, left = h.find(); len(prey) == 0 {
				return nil
			}
			if pause == time.Millisecond {
				h.signalGroups(left, sig, told)
			}
			for m := range prey {
				if _, before := told[m]; !before || sig == syscall.SIGKILL {
					told[m] = struct{}{}
					m.signal(sig)
				}
			}
			if time.Now().After(deadline) {
				break
			}
			<-time.After(pause) // nothing tells the end of a group
		}
	}
	return left
}

// signalGroups reaches all members of a group in one moment, so that none can fork out of it.
func (h *hunt) signalGroups(groups []Group, sig syscall.Signal, told map[member]struct{}) {
	for _, g := range groups {
		if g.Stray || !g.ours() {
			continue
		}
		signalGroup(g.PGID, sig)
		for m := range h.noted[g] {
			if h.kin.table[m.pid].pgrp == g.PGID {
				told[m] = struct{}{} // a second TERM would mean "at once" to some
			}
		}
	}
}

// remaining are those of the groups of which something lives.
func remaining(groups []Group) []Group {
	if len(groups) == 0 {
		return nil
	}
	h := newHunt(groups)
	_, alive := h.find()
	return alive
}
