package bridge

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// depth is how many processes stand between a relay and its agent at most: shells, wrappers, launchers of packages.
const depth = 32

// process is what /proc/<pid>/stat tells of one.
type process struct {
	parent int
	start  uint64 // in clock ticks since boot
}

// table reads processes. It fails for one that there is not.
type table func(pid int) (process, error)

// reason says why a connection is refused. The set is closed; the text labels a counter.
type reason string

const (
	noPid      reason = "no_pid"       // the peer is in another pid namespace, or gone
	noAgent    reason = "no_agent"     // no process above it is an agent of this pod
	changed    reason = "pid_changed"  // a process ended, and maybe another has its pid, while it was looked at
	manyRelays reason = "agent_relays" // Config.ConnectionsOfAgent
)

// agentOf walks from a process up to the first that is an agent of this pod.
//
// A pid is only a name for as long as its process lives. So each step is looked at twice: the child is read, then its parent, then the child
// again. As long as the child says that this is its parent, the parent has not ended in between, since a child whose parent ends gets
// another one; and a parent that is younger than its child is a stranger with the parent's pid.
func agentOf(read table, find func(pid int, start uint64) (Agent, bool), pid, self int) (Agent, reason) {
	if pid <= 1 || pid == self {
		return Agent{}, noPid
	}
	here, err := read(pid)
	if err != nil {
		return Agent{}, changed
	}
	for range depth {
		if agent, ok := find(pid, here.start); ok {
			return agent, ""
		}
		up := here.parent
		if up <= 1 || up == self { // a child of the pod that is no agent, or an orphan that came to it or to init
			return Agent{}, noAgent
		}
		parent, err := read(up)
		if err != nil {
			return Agent{}, changed
		}
		again, err := read(pid)
		if err != nil || again != here || parent.start > here.start {
			return Agent{}, changed
		}
		pid, here = up, parent
	}
	return Agent{}, noAgent
}

// system reads /proc.
func system(pid int) (process, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(text)
}

var errStat = errors.New("bridge: /proc/<pid>/stat is not as it should be")

// parseStat finds the fields behind the name, which is in parentheses and may hold anything.
func parseStat(text []byte) (process, error) {
	const parent, start = 4 - 3, 22 - 3 // field numbers of proc(5), from the third on
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= start || bytes.IndexByte(text, ')') < 0 {
		return process{}, errStat
	}
	ppid, bad := strconv.Atoi(string(fields[parent]))
	began, worse := strconv.ParseUint(string(fields[start]), 10, 64)
	if bad != nil || worse != nil || ppid < 0 {
		return process{}, errStat
	}
	return process{ppid, began}, nil
}
