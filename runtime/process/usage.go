package process

import (
	"os"
	"time"
)

// tick is the unit of processor time in /proc: USER_HZ is 100 on every Linux that Go runs on.
const tick = time.Second / 100

// Usage is what a child and all that belongs to it use, as it was last seen.
type Usage struct {
	CPU       time.Duration // since its start; what was used by orphans that others collected is not in it
	RSS       int64         // bytes, the sum of the processes': memory that they share counts for each
	Processes int
}

// Usage is what was seen at the last look of a [Parent]; zero before the first, or without one.
func (p *Process) Usage() Usage {
	if u := p.usage.Load(); u != nil {
		return *u
	}
	return Usage{}
}

// UsageOf is [Process.Usage] of the child with that pid; zero when there is none.
func UsageOf(pid int) Usage {
	for _, p := range ours.processes() {
		if p.PID() == pid {
			return p.Usage()
		}
	}
	return Usage{}
}

// measure keeps what the living processes use. Processor time never becomes less: one that ended and was waited for by its
// parent is in its parent's.
func (p *Process) measure(found map[int]stat) {
	var u Usage
	for _, s := range found {
		u.CPU += time.Duration(s.cpu) * tick
		u.RSS += s.rss * int64(os.Getpagesize())
		u.Processes++
	}
	u.CPU = max(u.CPU, p.Usage().CPU)
	p.usage.Store(&u)
}

// used is the processor time at the end: what the leader and those that it waited for have used, or what was seen before.
func (p *Process) used() time.Duration {
	return max(p.Usage().CPU, time.Duration(p.spent.Load()))
}

func (s Spec) kind() string {
	if s.Kind == "" {
		return "other"
	}
	return s.Kind
}

// Total is what all children of one kind use together.
type Total struct {
	Usage    // of those that run; CPU is also of those that have ended
	Children int
}

// Totals sums up all children of this process by kind. Safe from any goroutine.
func Totals() map[string]Total {
	totals := map[string]Total{}
	ours.mu.Lock()
	defer ours.mu.Unlock()
	for kind, cpu := range ours.ended {
		totals[kind] = Total{Usage: Usage{CPU: cpu}}
	}
	for p := range ours.running {
		kind, u := p.spec.kind(), p.Usage()
		t := totals[kind]
		t.CPU, t.RSS, t.Processes, t.Children = t.CPU+u.CPU, t.RSS+u.RSS, t.Processes+u.Processes, t.Children+1
		totals[kind] = t
	}
	return totals
}
