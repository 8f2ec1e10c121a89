package bridge

import processes "github.com/acpod/acpod/runtime/process"

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
	parent, start, err := processes.Born(pid)
	return process{parent, start}, err
}
