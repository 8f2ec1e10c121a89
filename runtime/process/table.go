package process

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// proc is the folder in which the system shows its processes; in tests it is one that looks like it.
type proc string

const system proc = "/proc"

// stat is what is read of /proc/<pid>/stat.
type stat struct {
	state           byte
	ppid, pgrp, sid int
	start           uint64
	cpu             uint64 // ticks: its own, and those of children that it waited for
	rss             int64  // pages
	threads         int
}

// readStat fails when there is no such process.
func readStat(pid int) (stat, error) { return system.stat(pid) }

func (p proc) stat(pid int) (stat, error) {
	b, err := os.ReadFile(p.of(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

func (p proc) of(pid int, file string) string {
	return string(p) + "/" + strconv.Itoa(pid) + "/" + file
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
	ppid, err0 := strconv.Atoi(string(fields[1]))
	pgrp, err1 := strconv.Atoi(string(fields[2]))
	sid, err2 := strconv.Atoi(string(fields[3]))
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err := errors.Join(err0, err1, err2, err3); err != nil {
		return stat{}, fmt.Errorf("/proc stat: %w", err)
	}
	if ppid < 0 {
		return stat{}, errors.New("/proc stat has no parent")
	}
	s := stat{state: fields[0][0], ppid: ppid, pgrp: pgrp, sid: sid, start: start}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, _ := strconv.ParseUint(string(field), 10, 64)
		s.cpu += ticks
	}
	s.threads, _ = strconv.Atoi(string(fields[17]))
	if len(fields) > 21 {
		s.rss, _ = strconv.ParseInt(string(fields[21]), 10, 64)
	}
	return s, nil
}

// table is one look at all processes. They are read one after the other, so it is no moment in time: who is asked for
// may have come or gone.
type table map[int]stat

func (p proc) table() (table, error) {
	dir, err := os.Open(string(p))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	t := make(table, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := p.stat(pid); err == nil {
			t[pid] = s
		}
	}
	return t, nil
}

// below are the living processes that descend from pid, pid aside. What a process among them leaves behind when it ends goes
// to the next subreaper above, so with a subreaper at pid nothing leaves this set but by its end.
func (t table) below(pid int) map[int]stat {
	children := map[int][]int{}
	for child, s := range t {
		children[s.ppid] = append(children[s.ppid], child)
	}
	found := map[int]stat{}
	for open := children[pid]; len(open) > 0; {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if _, known := found[next]; known || next == pid {
			continue
		}
		found[next] = t[next]
		open = append(open, children[next]...)
	}
	for child, s := range found {
		if s.dead() {
			delete(found, child)
		}
	}
	return found
}

// marks are the hashes of what a process was started with in its environment; none when it may not be read.
func (p proc) marks(pid int) map[[32]byte]struct{} {
	b, err := os.ReadFile(p.of(pid, "environ"))
	if err != nil {
		return nil
	}
	found := map[[32]byte]struct{}{}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if len(entry) > 0 {
			found[sha256.Sum256(entry)] = struct{}{}
		}
	}
	return found
}
