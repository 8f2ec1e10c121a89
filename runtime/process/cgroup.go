package process

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits bound what one child and all that it starts may use together, by a cgroup (version 2). Zero = no bound.
type Limits struct {
	Memory     int64   // bytes: memory.max. The kernel kills what goes beyond
	Processors float64 // how many processors' worth of time: cpu.max
	Processes  int     // processes and threads: pids.max
}

// controllers are those that the limits need.
func (l Limits) controllers() (names []string) {
	if l.Processors > 0 {
		names = append(names, "cpu")
	}
	if l.Memory > 0 {
		names = append(names, "memory")
	}
	if l.Processes > 0 {
		names = append(names, "pids")
	}
	return names
}

const (
	cgroupMount  = "/sys/fs/cgroup"
	cgroupLeaf   = "acpod-pod"   // where this process itself is: limits can only be set below a cgroup without processes
	cgroupPrefix = "acpod-agent" // and the pid and start time of its pod, and a number
	cpuPeriod    = 100_000       // microseconds
)

// Cgroups makes a cgroup for each child that is started with it. Methods are safe from any goroutine.
type Cgroups struct {
	dir    string // the cgroup of this process
	limits Limits
	owner  string
	next   atomic.Uint64
	remove func(string) error // os.Remove: what the kernel keeps in the folder goes with it
}

// OpenCgroups prepares the cgroup that this process was started in: it moves this process into one below, and lets limits be
// set beside that. It is for the start, before any child. nil without limits. An error says why the system does not let us;
// nothing has changed then.
func OpenCgroups(limits Limits) (*Cgroups, error) {
	if len(limits.controllers()) == 0 {
		return nil, nil
	}
	dir, err := ownCgroup(cgroupMount, "/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var kind unix.Statfs_t
	if err := unix.Statfs(dir, &kind); err != nil || kind.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("%s is no cgroup of version 2", dir)
	}
	g := &Cgroups{dir: dir, limits: limits, remove: os.Remove}
	return g, g.open(os.Getpid())
}

// ProbeCgroups tells whether OpenCgroups could work, and changes nothing.
func ProbeCgroups(limits Limits) error {
	dir, err := ownCgroup(cgroupMount, "/proc/self/cgroup")
	if err != nil {
		return err
	}
	if err := lacks(dir, "cgroup.controllers", limits.controllers()); err != nil {
		return err
	}
	if err := unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK); err != nil {
		return fmt.Errorf("%s may not be written: %w", filepath.Join(dir, "cgroup.subtree_control"), err)
	}
	return nil
}

// ownCgroup is the folder of this process's cgroup.
func ownCgroup(mount, own string) (string, error) {
	text, err := os.ReadFile(own)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		if slices.Contains(strings.Split(path, "/"), "..") {
			return "", errors.New("the cgroup of this process is outside of what it sees")
		}
		return filepath.Join(mount, path), nil
	}
	return "", errors.New("this process is in no cgroup of version 2")
}

// lacks says which of the names is not in a file of the cgroup.
func lacks(dir, file string, names []string) error {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, file), plain(err))
	}
	have := strings.Fields(string(text))
	for _, name := range names {
		if !slices.Contains(have, name) {
			return fmt.Errorf("the controller %s is not in %s: it was not delegated", name, filepath.Join(dir, file))
		}
	}
	return nil
}

func (g *Cgroups) open(pid int) error {
	names := g.limits.controllers()
	if err := lacks(g.dir, "cgroup.controllers", names); err != nil {
		return err
	}
	g.owner = fmt.Sprintf("%s-%d-%d", cgroupPrefix, pid, identify(pid).Start)
	g.sweep()
	leaf := filepath.Join(g.dir, cgroupLeaf)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", leaf, plain(err))
	}
	if err := enter(leaf, pid); err != nil {
		_ = g.remove(leaf)
		return fmt.Errorf("%s cannot be entered: %w", leaf, err)
	}
	if err := write(g.dir, "cgroup.subtree_control", "+"+strings.Join(names, " +")); err != nil {
		_ = enter(g.dir, pid)
		_ = g.remove(leaf)
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("there are other processes in %s; start the pod in a cgroup of its own", g.dir)
		}
		return fmt.Errorf("%s may not be divided: %w", g.dir, err)
	}
	return nil
}

// sweep removes what pods have left that are gone, with what is still in it.
func (g *Cgroups) sweep() {
	left, _ := os.ReadDir(g.dir) // no pattern: systemd escapes names with what means something in one
	for _, entry := range left {
		var pid int
		var start uint64
		if n, _ := fmt.Sscanf(entry.Name(), cgroupPrefix+"-%d-%d-", &pid, &start); n != 2 {
			continue
		}
		if s, err := readStat(pid); err == nil && s.start == start {
			continue
		}
		one := &cgroup{dir: filepath.Join(g.dir, entry.Name()), remove: g.remove}
		one.kill()
		one.close()
	}
}

// cgroup is that of one child; nil is none.
type cgroup struct {
	dir    string
	folder *os.File
	limits Limits
	remove func(string) error
}

// make makes one. An error leaves nothing behind.
func (g *Cgroups) make() (*cgroup, error) {
	if g == nil {
		return nil, nil
	}
	dir := filepath.Join(g.dir, fmt.Sprintf("%s-%d", g.owner, g.next.Add(1)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make its cgroup: %w", plain(err))
	}
	one := &cgroup{dir: dir, limits: g.limits, remove: g.remove}
	err := one.bound()
	if err == nil {
		one.folder, err = os.Open(dir)
	}
	if err != nil {
		one.close()
		return nil, fmt.Errorf("bound its cgroup: %w", plain(err))
	}
	return one, nil
}

// bound writes the limits.
func (g *cgroup) bound() error {
	var failed error
	if n := g.limits.Memory; n > 0 {
		failed = errors.Join(failed, write(g.dir, "memory.max", strconv.FormatInt(n, 10)))
	}
	if n := g.limits.Processors; n > 0 {
		quota := max(int64(math.Round(n*cpuPeriod)), 1000) // the least that the kernel takes
		failed = errors.Join(failed, write(g.dir, "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriod)))
	}
	if n := g.limits.Processes; n > 0 {
		failed = errors.Join(failed, write(g.dir, "pids.max", strconv.Itoa(n)))
	}
	return failed
}

// members are the processes in it.
func (g *cgroup) members() []int {
	if g == nil {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends all in it in one moment. A kernel before 5.14 cannot; they are signalled one by one all the same.
func (g *cgroup) kill() {
	if g != nil {
		_ = write(g.dir, "cgroup.kill", "1")
	}
}

// overran tells whether the kernel killed in it because of the memory limit.
func (g *cgroup) overran() bool {
	if g == nil || g.limits.Memory == 0 {
		return false
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

// close removes it. One that is not empty stays, and the next pod that is started here removes it.
func (g *cgroup) close() {
	if g == nil {
		return
	}
	if g.folder != nil {
		_ = g.folder.Close()
	}
	_ = g.remove(g.dir)
}

func enter(dir string, pid int) error { return write(dir, "cgroup.procs", strconv.Itoa(pid)) }

// write writes a file that the kernel keeps in a cgroup; its error is the kernel's.
func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return plain(err)
	}
	_, err = f.WriteString(text)
	return errors.Join(plain(err), f.Close())
}
