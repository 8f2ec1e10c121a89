package process

import (
	"errors"
	"syscall"
)

// Group is a process group as it is told to the guardian and written into a record: a number alone would come to
// mean another group once it is used again.
type Group struct {
	PGID  int      // the leader's pid
	Start uint64   // when the leader started, in clock ticks since boot (/proc/<pid>/stat, field 22)
	SID   int      // the session of the process that started it
	Mark  [32]byte // SHA-256 of [Spec].Mark; zero = none
	Stray bool     // no group: PGID is the pid of one process that belongs to a group and has left it
}

// dead tells a zombie: it runs no more and only waits for somebody to ask how it ended, which for an orphan is the
// init process's duty. It does not count as a member. One whose first thread has ended looks like it and runs on.
func (s stat) dead() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

// alive tells whether a living process is in the group. The cheap question comes first; only a yes, which zombies
// give too, costs a walk through /proc.
func alive(pgid int) bool {
	if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
		return false
	}
	found, err := anyMember(pgid, func(stat) bool { return true })
	return found || err != nil // without /proc the kernel's answer stands
}

// anyMember tells whether a living member of the group satisfies ok.
func anyMember(pgid int, ok func(stat) bool) (bool, error) {
	t, err := system.table()
	if err != nil {
		return false, err
	}
	for _, s := range t {
		if s.pgrp == pgid && !s.dead() && ok(s) {
			return true, nil
		}
	}
	return false, nil
}

// ours tells whether what lives under the group's number is still that group. While any process is in the group,
// the number is given to no other process; so a leader with another start time is a stranger, and when there is no
// leader, members that are older than the group or in another session are.
func (g Group) ours() bool {
	if g.PGID <= 1 {
		return false
	}
	if g.Stray {
		s, err := readStat(g.PGID)
		return err == nil && !s.dead() && s.start == g.Start
	}
	if leader, err := readStat(g.PGID); err == nil && !leader.dead() {
		return leader.start == g.Start && leader.pgrp == g.PGID
	}
	if errors.Is(syscall.Kill(-g.PGID, 0), syscall.ESRCH) {
		return false
	}
	found, _ := anyMember(g.PGID, func(s stat) bool { return s.sid == g.SID && s.start >= g.Start })
	return found
}

// signalGroup sends to all members; that nobody is left is no error.
func signalGroup(pgid int, sig syscall.Signal) {
	if pgid > 1 { // 0 would be our own group, -1 everybody
		_ = syscall.Kill(-pgid, sig)
	}
}

func living(groups []Group) []Group {
	var left []Group
	for _, g := range groups {
		if g.ours() {
			left = append(left, g)
		}
	}
	return left
}
