package process

import (
	"maps"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ours are the children that this process started itself. As the system keeps one list of children for a process, there is
// one of these.
var ours = &children{pids: map[int]int{}, running: map[*Process]struct{}{}, ended: map[string]time.Duration{}}

// children tells own children from strangers that were adopted: an own child's status belongs to who waits for it.
type children struct {
	forking sync.RWMutex // held while a child is made and its number is written down

	mu      sync.Mutex
	pids    map[int]int // how often a number is one of ours: it can be given anew before who waited has taken it out
	running map[*Process]struct{}
	ended   map[string]time.Duration // processor time of those that ended, by kind
	parent  *Parent                  // is told of beginnings and ends; nil = nobody wants to know
	// inherited are those that were there before us: of the program that this process was before an exec. They are nobody's
	// here, and their orphans, which nothing tells from ours, are left alone with them.
	inherited map[member]struct{}

	begun   uint64 // how many children were begun, the guardian aside
	between int    // how many of those do not stand in running yet
	quietAt uint64 // begun when it was last seen that none of them, and no orphan, was left
}

// isQuiet tells that there is nobody below this process but the guardian. When in doubt it is not.
func (c *children) isQuiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun == c.quietAt
}

// beganSoFar is for who will look and then call quietSince. settled says that all who have begun stand in running, or have ended.
func (c *children) beganSoFar() (begun uint64, settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun, c.between == 0
}

// quietSince keeps that a look which began at that count found nobody.
func (c *children) quietSince(begun uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quietAt = begun
}

// start is os.StartProcess, with the child in the book before anybody could take it for a stranger.
// The guardian is not counted: it does nothing by itself. One that is counted is to join.
func (c *children) start(path string, argv []string, attr *os.ProcAttr, counted bool) (*os.Process, error) {
	c.forking.RLock()
	defer c.forking.RUnlock()
	if counted {
		c.mu.Lock()
		c.begun++
		c.between++
		c.mu.Unlock()
	}
	child, err := os.StartProcess(path, argv, attr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.pids[child.Pid]++
	} else if counted {
		c.between--
	}
	return child, err
}

// wait waits for a child that start made.
func (c *children) wait(child *os.Process) (*os.ProcessState, error) {
	pid := child.Pid
	state, err := child.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pids[pid]--; c.pids[pid] <= 0 {
		delete(c.pids, pid)
	}
	return state, err
}

func (c *children) own(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pids[pid] > 0
}

// book is a copy, without a child that is being made just now. When that takes long, it says that it may lack one.
func (c *children) book() (pids map[int]struct{}, sure bool) {
	for end := time.Now().Add(forkPatience); !sure; {
		if sure = c.forking.TryLock(); !sure {
			if time.Now().After(end) {
				break
			}
			<-time.After(time.Millisecond)
		}
	}
	if sure {
		defer c.forking.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pids = make(map[int]struct{}, len(c.pids))
	for pid := range c.pids {
		pids[pid] = struct{}{}
	}
	for m := range c.inherited {
		if s, err := readStat(m.pid); err == nil && s.start == m.start {
			pids[m.pid] = struct{}{}
		}
	}
	return pids, sure
}

// inherit takes note of the children that are there before the first of ours.
func (c *children) inherit() {
	t, err := system.table()
	if err != nil {
		return
	}
	book, _ := c.book()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inherited = map[member]struct{}{}
	for pid, s := range t {
		if _, own := book[pid]; s.ppid == os.Getpid() && !own && !s.dead() {
			c.inherited[member{pid, s.start}] = struct{}{}
		}
	}
}

// others are those that were inherited.
func (c *children) others() map[member]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.inherited)
}

// forkPatience is how long a look waits for children that are being made. A program on a file system that hangs may take for
// ever to start.
const forkPatience = 50 * time.Millisecond

func (c *children) join(p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[p] = struct{}{}
	c.between--
	c.parent.hear(true)
}

// leave is the end of a stop, whatever it reached.
func (c *children) leave(p *Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.running[p]; there {
		delete(c.running, p)
		c.ended[p.spec.kind()] += p.used()
	}
	c.parent.hear(false)
}

// processes are those that were started and whose stop is not through.
func (c *children) processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Process, 0, len(c.running))
	for p := range c.running {
		list = append(list, p)
	}
	return list
}

// reaped says what stopped a round of reaping.
type reaped uint8

const (
	reapedAll  reaped = iota
	reapedOwn         // an own child stands in front, which somebody is just waiting for
	reapedBusy        // a child is being made, and might be taken for a stranger
)

// reapAll collects strangers that have ended. It never blocks.
func (c *children) reapAll() reaped { return c.reap(unix.P_ALL, 0) }

// reapGroup collects those of a group.
func (c *children) reapGroup(pgid int) { c.reap(unix.P_PGID, pgid) }

func (c *children) reap(which, id int) reaped {
	for {
		if !c.forking.TryLock() { // waiting for it would hold up all who start a child, behind one that takes long
			return reapedBusy
		}
		pid := peek(which, id)
		own := pid > 0 && c.own(pid)
		if pid > 0 && !own {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
		c.forking.Unlock()
		switch {
		case pid <= 0:
			return reapedAll
		case own:
			return reapedOwn
		}
	}
}

// peek tells a child that has ended and leaves its status where it is; 0 = there is none.
func peek(which, id int) int {
	var info unix.Siginfo
	for {
		err := unix.Waitid(which, id, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0
		}
		break
	}
	// The pid is the first field behind the three common ones, where a pointer would be aligned.
	const at = (3*4 + unsafe.Sizeof(uintptr(0)) - 1) / unsafe.Sizeof(uintptr(0)) * unsafe.Sizeof(uintptr(0))
	return int(*(*int32)(unsafe.Pointer(uintptr(unsafe.Pointer(&info)) + at)))
}
