package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Group is a process group as it is told to the guardian and written into a record: a number alone would come to
// mean another group once it is used again.
type Group struct {
	PGID  int    // the leader's pid
	Start uint64 // when the leader started, in clock ticks since boot (/proc/<pid>/stat, field 22)
	SID   int    // the session of the process that started it
}

// stat is what is read of /proc/<pid>/stat.
type stat struct {
	state     byte
	pgrp, sid int
	start     uint64
}

// readStat fails when there is no such process.
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat finds the fields behind the name, which is in parentheses and may contain anything.
func parseStat(b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, errors.New("/proc stat without a name")
	}
	fields := bytes.Fields(b[end+1:]) // from field 3 on
	if len(fields) < 20 || len(fields[0]) != 1 {
		return stat{}, errors.New("/proc stat is too short")
	}
	pgrp, err1 := strconv.Atoi(string(fields[2]))
	sid, err2 := strconv.Atoi(string(fields[3]))
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return stat{}, fmt.Errorf("/proc stat: %w", err)
	}
	return stat{state: fields[0][0], pgrp: pgrp, sid: sid, start: start}, nil
}

// dead tells a zombie: it runs no more and only waits for somebody to ask how it ended, which for an orphan is the
// init process's duty. It does not count as a member.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

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
	dir, err := os.Open("/proc")
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if err == nil && s.pgrp == pgid && !s.dead() && ok(s) {
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

// reap collects members that became our children when their parent died (when this process is init or a
// subreaper). Only after the leader was waited for: before, its status would be taken away from who waits.
func reap(pgid int) {
	for {
		pid, err := syscall.Wait4(-pgid, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
	}
}

// endGroups sends TERM to all, waits until all are gone or the grace is over, sends KILL to the rest, and waits as
// long again. It returns those that live on.
func endGroups(groups []Group, grace time.Duration) []Group {
	left := groups
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		left = living(left)
		for _, g := range left {
			signalGroup(g.PGID, sig)
		}
		deadline := time.Now().Add(grace)
		for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
			if left = living(left); len(left) == 0 || time.Now().After(deadline) {
				break
			}
			<-time.After(pause) // nothing tells the end of a group
		}
	}
	return left
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
