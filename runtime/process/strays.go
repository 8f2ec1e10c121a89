package process

import (
	"os"
	"sync"
	"syscall"
)

// maxStrays is how many processes that left a group are remembered of one child. One that makes more is ended all the same
// as far as they descend from each other; what is over the bound is a stranger when it is orphaned.
const maxStrays = 1024

// strays are the processes that belong to a child and are not in its group.
type strays struct {
	mu    sync.Mutex
	noted map[member]Group // as the guardian was told
	over  bool             // all are gone: nothing is noted any more
}

func (s *strays) members() map[member]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := make(map[member]struct{}, len(s.noted))
	for one := range s.noted {
		m[one] = struct{}{}
	}
	return m
}

// live tells whether one of them lives.
func (s *strays) live() bool {
	for m := range s.members() {
		if m.runs() {
			return true
		}
	}
	return false
}

// look finds what has left the group, and keeps it in mind. It gives all that lives of this child.
func (p *Process) look() map[int]stat {
	k, err := newKin(system, os.Getpid(), ours)
	if err != nil {
		return nil
	}
	return p.note(k, k.orphans())
}

// note is look with a table that was read already.
func (p *Process) note(k *kin, orphans []int) map[int]stat {
	noted := p.strays.members()
	for _, pid := range p.cgroup.members() {
		if one, there := k.table[pid]; there {
			noted[member{pid, one.start}] = struct{}{}
		}
	}
	found := k.of(p.group, noted, orphans)
	s := &p.strays
	s.mu.Lock()
	defer s.mu.Unlock()
	for m, told := range s.noted {
		if k.past(m) {
			delete(s.noted, m)
			p.spec.Guardian.Remove(told)
		}
	}
	if s.over { // this table is older than the end of the stop
		return found
	}
	for pid, one := range found {
		m := member{pid, one.start}
		if _, known := s.noted[m]; known || pid == p.group.PGID || one.pgrp == p.group.PGID || len(s.noted) >= maxStrays {
			continue
		}
		if s.noted == nil {
			s.noted = map[member]Group{}
		}
		told := Group{PGID: pid, Start: one.start, SID: one.sid, Stray: true}
		s.noted[m] = told
		p.spec.Guardian.Add(told)
	}
	return found
}

// forget takes all strays back from the guardian: they are gone.
func (p *Process) forget() {
	p.strays.mu.Lock()
	defer p.strays.mu.Unlock()
	for _, told := range p.strays.noted {
		p.spec.Guardian.Remove(told)
	}
	p.strays.noted, p.strays.over = nil, true
}

// chase sends sig to the group at once, and whenever it is called to those outside that did not get it yet; KILL to all.
func (p *Process) chase(sig syscall.Signal) func() {
	told := map[member]struct{}{}
	first := true
	return func() {
		found := p.look()
		if (first || sig == syscall.SIGKILL) && p.group.ours() { // its number may be another's by now
			signalGroup(p.group.PGID, sig)
		}
		if sig == syscall.SIGKILL {
			p.cgroup.kill()
		}
		first = false
		for pid, s := range found {
			m := member{pid, s.start}
			if _, before := told[m]; s.pgrp == p.group.PGID || before && sig != syscall.SIGKILL {
				continue
			}
			told[m] = struct{}{}
			m.signal(sig)
		}
	}
}
