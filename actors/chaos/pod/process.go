package pod

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Child is a living process of the pod: an agent, what an agent started, the guardian.
type Child struct {
	PID     int
	Command string // its arguments, joined
}

// RSS is the resident memory of a pod that we started, in bytes, as the kernel counts it; 0 for another.
func (p *Pod) RSS() int64 {
	fields := strings.Fields(string(p.proc("statm")))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// PeakRSS is the largest it has been.
func (p *Pod) PeakRSS() int64 {
	for line := range strings.Lines(string(p.proc("status"))) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// FDs are the open file descriptors of a pod that we started. Only a privileged process may count them from outside, since a pod is
// not dumpable; anybody else asks the pod.
func (p *Pod) FDs() int {
	if p.process == nil {
		return 0
	}
	if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.process.Pid)); err == nil {
		return len(entries)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fdPatience)
	defer cancel()
	metrics, err := p.Metrics(ctx)
	if err != nil {
		return 0
	}
	return metrics.FDs()
}

// fdPatience is how long a pod may take to say how many descriptors it has open.
const fdPatience = 10 * time.Second

// CPU is the processor time that a pod that we started has used, user and system.
func (p *Pod) CPU() time.Duration {
	text := string(p.proc("stat"))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ is 100 on every Linux that Go runs on
}

func (p *Pod) proc(file string) []byte {
	if p.process == nil {
		return nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.process.Pid, file))
	if err != nil {
		return nil
	}
	return text
}

// Children are the living processes with the pod's home in their environment, the pod aside; also those that outlived it.
func (p *Pod) Children() []Child {
	if p.process == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	home := []byte("HOME=" + p.dir + "\x00")
	var found []Child
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == p.process.Pid {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if os.IsPermission(err) && parentOf(entry.Name()) == p.process.Pid {
			env = home // its guardian, which shows its environment as little as the pod does
		} else if err != nil {
			continue
		}
		if !bytes.Contains(env, home) {
			continue
		}
		args, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || len(args) == 0 {
			continue // it has ended
		}
		found = append(found, Child{pid, string(bytes.ReplaceAll(bytes.TrimRight(args, "\x00"), []byte{0}, []byte{' '}))})
	}
	return found
}

// parentOf is 0 when there is no such process.
func parentOf(pid string) int {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
