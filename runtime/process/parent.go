package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookEvery is how often children are looked at while there are any. A look reads the state of every process that
	// there is, so where that takes long it is done less often: a fiftieth of a processor is the most that it may cost.
	lookEvery = 5 * time.Second
	lookShare = 50
	// lookSoon is how long after its start a child is looked at first.
	lookSoon = time.Second
	// reapPause is how long one waits for an own child to be waited for, or to be made, before strangers are looked for again.
	reapPause = 5 * time.Millisecond
	// strangerGrace is between TERM and KILL of a stranger.
	strangerGrace = 2 * time.Second
	// maxStrangers is how many orphans of unknown origin are told to the guardian.
	maxStrangers = 1024
)

// Parent is this process as the parent of what its children leave behind. It makes it a subreaper, to which orphans come,
// collects those that have ended, notes what leaves its group, and ends what belongs to children that have ended. There is
// one in a process. Methods are safe from any goroutine and on nil, which does nothing.
type Parent struct {
	guardian *Guardian
	log      *slog.Logger
	// only says that orphans are of our children only. To the first process of a container come also those of who was let in,
	// and one that was another program before has children of that.
	only bool

	mu        sync.Mutex
	strangers map[member]*stranger

	born chan struct{}
	poke chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

// stranger is an orphan of which it is not known whose it was.
type stranger struct {
	suspects map[*Process]struct{} // whose it may be; when all of them have ended, it is ended
	told     Group
	asked    time.Time // when it got TERM; zero = it did not
}

// StartParent begins. Its one goroutine ends with Close.
func StartParent(guardian *Guardian, log *slog.Logger) (*Parent, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans (PR_SET_CHILD_SUBREAPER): %w", err)
	}
	ours.inherit()
	ctx, stop := context.WithCancel(context.Background())
	p := &Parent{
		guardian: guardian, log: log, only: os.Getpid() != 1 && len(ours.others()) == 0, strangers: map[member]*stranger{},
		born: make(chan struct{}, 1), poke: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	ours.mu.Lock()
	ours.parent = p
	ours.mu.Unlock()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go p.mind(ctx, ended)
	return p, nil
}

// hear is told that a child was started, which is looked at soon, or that all of one is gone, which is reason to look at once.
func (p *Parent) hear(birth bool) {
	if p == nil {
		return
	}
	of := p.poke
	if birth {
		of = p.born
	}
	select {
	case of <- struct{}{}:
	default:
	}
}

// mind is the goroutine.
func (p *Parent) mind(ctx context.Context, ended chan os.Signal) {
	defer close(p.done)
	defer signal.Stop(ended)
	again := time.NewTimer(0) // what was there before us
	defer again.Stop()
	look := time.NewTimer(lookEvery)
	defer look.Stop()
	due := time.Now().Add(lookEvery)
	set := func(pause time.Duration) {
		due = time.Now().Add(pause)
		look.Reset(pause)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-again.C:
		case <-p.born:
			if time.Until(due) > lookSoon {
				set(lookSoon)
			}
		case <-p.poke:
			set(p.pause(p.look()))
		case <-look.C:
			set(p.pause(p.look()))
		}
		if ours.reapAll() != reapedAll {
			again.Reset(reapPause)
		}
	}
}

// pause is until the next look after one that took so long.
func (p *Parent) pause(took time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.strangers {
		if !s.asked.IsZero() {
			return max(strangerGrace/4, took*4) // it is being ended
		}
	}
	return max(lookEvery, took*lookShare)
}

// look notes and measures what belongs to each child, and judges strangers. It costs nothing while nothing runs.
func (p *Parent) look() time.Duration {
	if ours.isQuiet() {
		return 0
	}
	began := time.Now()
	begun, settled := ours.beganSoFar()
	running := ours.processes()
	p.mu.Lock()
	defer p.mu.Unlock()
	k, err := newKin(system, os.Getpid(), ours)
	if err != nil {
		return time.Since(began)
	}
	orphans := k.orphans()
	known := map[int]struct{}{}
	for _, one := range running {
		found := one.note(k, orphans)
		one.measure(found)
		for pid := range found {
			known[pid] = struct{}{}
		}
	}
	if now, _ := ours.beganSoFar(); !settled || now != begun {
		return time.Since(began) // an orphan may be of a child that is not among running: the next look judges
	}
	p.judge(k, orphans, known, running)
	if len(running)+len(orphans) == 0 && !k.blind && len(k.spared) <= 1+len(ours.others()) {
		ours.quietSince(begun)
	}
	return time.Since(began)
}

// judge keeps the strangers: whoever is an orphan and not known to belong to a running child. It belongs to one of those that
// ran when it was first seen, or to one that had ended before.
func (p *Parent) judge(k *kin, orphans []int, known map[int]struct{}, running []*Process) {
	runs := map[*Process]struct{}{}
	for _, one := range running {
		runs[one] = struct{}{}
	}
	seen := map[member]struct{}{}
	for _, pid := range orphans {
		m := member{pid, k.table[pid].start}
		s := p.strangers[m]
		if _, theirs := known[pid]; theirs {
			continue
		}
		seen[m] = struct{}{}
		if s == nil {
			s = p.meet(k, m, running)
		}
		for one := range s.suspects {
			if _, still := runs[one]; !still {
				delete(s.suspects, one)
			}
		}
		if len(s.suspects) == 0 && p.only {
			p.end(k, m, s)
		}
	}
	for m, s := range p.strangers {
		if _, still := seen[m]; !still {
			delete(p.strangers, m)
			p.guardian.Remove(s.told)
		}
	}
}

// meet notes a new stranger. What began before a child did cannot be that child's.
func (p *Parent) meet(k *kin, m member, running []*Process) *stranger {
	s := &stranger{suspects: map[*Process]struct{}{}, told: Group{PGID: m.pid, Start: m.start, SID: k.table[m.pid].sid, Stray: true}}
	for _, one := range running {
		if one.group.Start <= m.start {
			s.suspects[one] = struct{}{}
		}
	}
	if len(p.strangers) < maxStrangers {
		p.strangers[m] = s
		if p.only {
			p.guardian.Add(s.told)
		}
	}
	return s
}

// end ends a stranger with all below it: TERM, KILL when that did not help.
func (p *Parent) end(k *kin, m member, s *stranger) {
	sig := syscall.SIGKILL
	switch {
	case s.asked.IsZero():
		sig, s.asked = syscall.SIGTERM, time.Now()
		p.log.Warn("a process that was left behind by a child that has ended is ended", "pid", m.pid)
	case time.Since(s.asked) < strangerGrace:
		return
	}
	for pid, one := range k.of(s.told, nil, nil) {
		member{pid, one.start}.signal(sig)
	}
}

// Strangers is how many orphans there are whose child is not known.
func (p *Parent) Strangers() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.strangers)
}

// Close ends all orphans, when they can be of our children only, and the goroutine. It is for when everything that was started was stopped, and
// before the guardian is closed, which still knows them. An error when something lives on.
func (p *Parent) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	ours.mu.Lock()
	ours.parent = nil
	ours.mu.Unlock()
	p.stop()
	<-p.done
	ours.reapAll()
	if !p.only { // with the first process of a container everything ends anyway
		p.forget()
		return nil
	}
	left := 0
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		told := map[member]struct{}{}
		deadline := time.Now().Add(strangerGrace)
		for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
			ours.reapAll()
			found := orphaned()
			if left = len(found); left == 0 {
				p.forget()
				return nil
			}
			for m := range found {
				if _, before := told[m]; !before || sig == syscall.SIGKILL {
					told[m] = struct{}{}
					m.signal(sig)
				}
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				break
			}
			<-time.After(pause)
		}
	}
	return fmt.Errorf("%d processes that children left behind live on", left)
}

// forget takes all strangers back from the guardian.
func (p *Parent) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.strangers {
		p.guardian.Remove(s.told)
	}
	clear(p.strangers)
}

// orphaned are the orphans of this process, with all below them.
func orphaned() map[member]struct{} {
	k, err := newKin(system, os.Getpid(), ours)
	if err != nil {
		return nil
	}
	found := map[member]struct{}{}
	for _, pid := range k.orphans() {
		for one, s := range k.of(Group{PGID: pid, Start: k.table[pid].start, Stray: true}, nil, nil) {
			found[member{one, s.start}] = struct{}{}
		}
	}
	return found
}
