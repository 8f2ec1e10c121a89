package process

import (
	"os"
	"syscall"
)

// member is one process for good: a pid alone comes to mean another one.
type member struct {
	pid   int
	start uint64
}

// runs tells whether it lives.
func (m member) runs() bool {
	s, err := readStat(m.pid)
	return err == nil && s.start == m.start && !s.dead()
}

// signal reaches that process or none: what is signalled is held by a descriptor before its start time is compared.
func (m member) signal(sig syscall.Signal) {
	if m.pid <= 1 || m.pid == os.Getpid() {
		return
	}
	held, err := os.FindProcess(m.pid)
	if err != nil {
		return
	}
	defer func() { _ = held.Release() }()
	if m.runs() {
		_ = held.Signal(sig)
	}
}

// kin finds what belongs to a group although it may have left it.
type kin struct {
	table
	proc     proc
	self     int // never among them
	ours     *children
	spared   map[int]struct{} // nor these: children of ours that are leaders themselves
	blind    bool             // who of our children is an orphan cannot be told now
	children map[int][]int
	groups   map[int][]int
	sessions map[int][]int
	marked   map[member]map[[32]byte]struct{} // what was read of environments
}

// newKin takes a first look. ours is nil for who started nothing itself.
func newKin(p proc, self int, ours *children) (*kin, error) {
	k := &kin{proc: p, self: self, ours: ours, marked: map[member]map[[32]byte]struct{}{}}
	return k, k.look()
}

// look reads the table anew. Environments are read once a process.
func (k *kin) look() error {
	t, err := k.proc.table()
	if err != nil {
		return err
	}
	if k.ours != nil { // after the table: each own child in it is in the book by now, or has ended
		var sure bool
		k.spared, sure = k.ours.book()
		k.blind = !sure
	}
	k.table, k.children, k.groups, k.sessions = t, map[int][]int{}, map[int][]int{}, map[int][]int{}
	for pid, s := range t {
		k.children[s.ppid] = append(k.children[s.ppid], pid)
		k.groups[s.pgrp] = append(k.groups[s.pgrp], pid)
		k.sessions[s.sid] = append(k.sessions[s.sid], pid)
	}
	return nil
}

// of are the living processes that belong to the group: its leader and members, those that were noted before, whoever
// descends from one of them, whoever is in a group or session that one of them leads, and, among candidates, who carries
// its mark.
func (k *kin) of(g Group, noted map[member]struct{}, candidates []int) map[int]stat {
	found := map[int]stat{}
	var open []int
	add := func(pid int) {
		s, there := k.table[pid]
		_, spared := k.spared[pid]
		if _, known := found[pid]; known || !there || pid <= 1 || pid == k.self || spared && pid != g.PGID {
			return
		}
		found[pid] = s
		open = append(open, pid)
	}
	leader, led := k.table[g.PGID]
	led = led && leader.start == g.Start
	if led {
		add(g.PGID)
	}
	if !g.Stray {
		for _, pid := range k.groups[g.PGID] {
			if s := k.table[pid]; led || k.table[g.PGID].start == 0 && s.sid == g.SID && s.start >= g.Start {
				add(pid)
			}
		}
	}
	for m := range noted {
		if s, there := k.table[m.pid]; there && s.start == m.start {
			add(m.pid)
		}
		if m.pid != g.PGID { // it may have ended and left a group or session of its own
			k.ledBy(m.pid, m.start, add)
		}
	}
	if g.Mark != ([32]byte{}) {
		for _, pid := range candidates {
			if s := k.table[pid]; s.start >= g.Start && k.carries(pid, s.start, g.Mark) {
				add(pid)
			}
		}
	}
	for len(open) > 0 {
		pid := open[len(open)-1]
		open = open[:len(open)-1]
		for _, child := range k.children[pid] {
			add(child)
		}
		if s := found[pid]; pid != g.PGID {
			k.ledBy(pid, s.start, add)
		}
	}
	for pid, s := range found {
		if s.dead() {
			delete(found, pid)
		}
	}
	return found
}

// ledBy are the members of the group and the session whose number is pid. While one of them lives, no other process gets
// that number.
func (k *kin) ledBy(pid int, start uint64, add func(int)) {
	if leader, there := k.table[pid]; there && leader.start != start {
		return
	}
	for _, set := range [][]int{k.groups[pid], k.sessions[pid]} {
		for _, one := range set {
			if k.table[one].start >= start {
				add(one)
			}
		}
	}
}

// past tells that a process has ended and left no group and no session of its number. When another process has the number by now it is so
// too, and what that one leaves in a group of its own is nobody's here.
func (k *kin) past(m member) bool {
	now, there := k.table[m.pid]
	switch {
	case there && now.start != m.start:
		return true
	case there && !now.dead():
		return false
	}
	return len(k.groups[m.pid]) == 0 && len(k.sessions[m.pid]) == 0
}

func (k *kin) carries(pid int, start uint64, mark [32]byte) bool {
	m := member{pid, start}
	marks, read := k.marked[m]
	if !read {
		marks = k.proc.marks(pid)
		k.marked[m] = marks
	}
	_, carried := marks[mark]
	return carried
}

// orphans are the children of this process that it did not start itself.
func (k *kin) orphans() []int {
	if k.blind {
		return nil
	}
	var found []int
	for _, pid := range k.children[k.self] {
		if _, own := k.spared[pid]; !own && !k.table[pid].dead() {
			found = append(found, pid)
		}
	}
	return found
}

// all are all processes.
func (k *kin) all() []int {
	pids := make([]int, 0, len(k.table))
	for pid := range k.table {
		pids = append(pids, pid)
	}
	return pids
}
