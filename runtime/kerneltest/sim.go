package kerneltest

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"
)

// Sim is a scheduler and a clock that are functions of a seed: one thing runs at a time, chosen at random among what is ready, and
// time stands still until the driver moves it. The same seed gives the same run. Give it to kernel.Options as both.
//
// What runs under it must not wait for anything but Sim.Sleep: there is nobody else who could run meanwhile.
type Sim struct {
	mu     sync.Mutex
	rng    *rand.Rand
	ready  []*task
	timers []*simTimer // by time, then by order of creation
	now    time.Time
	cur    *task
	steps  int
	trace  uint64 // hash of the choices and of what was noted
}

// task is something ready to run, or parked in a Sleep.
type task struct {
	f      func()
	resume chan struct{} // not nil: parked
	yield  chan bool     // true: over, false: parked
}

type simTimer struct {
	at time.Time
	f  func()
}

// NewSim makes a simulation. Seeds differ in all they do.
func NewSim(seed uint64) *Sim {
	return &Sim{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), now: time.Unix(1_700_000_000, 0), trace: 14695981039346656037}
}

// Rand is the simulation's source of chance. Only what runs under it, and its driver, may use it.
func (s *Sim) Rand() *rand.Rand { return s.rng }

// Batch implements kernel.Scheduler: after each message somebody else may run.
func (s *Sim) Batch() int { return 1 }

// Go implements kernel.Scheduler.
func (s *Sim) Go(_ string, f func()) {
	s.mu.Lock()
	s.ready = append(s.ready, &task{f: f, yield: make(chan bool)})
	s.mu.Unlock()
}

// Now implements kernel.Clock.
func (s *Sim) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// AfterFunc implements kernel.Clock. Timers due together fire in the order of their creation.
func (s *Sim) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tm := &simTimer{s.now.Add(max(d, 0)), f}
	i := sort.Search(len(s.timers), func(i int) bool { return s.timers[i].at.After(tm.at) })
	s.timers = slices.Insert(s.timers, i, tm)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.timers, tm)
		if i < 0 {
			return false
		}
		s.timers = slices.Delete(s.timers, i, i+1)
		return true
	}
}

// Sleep parks what runs now for d of simulated time; others run meanwhile. It stands for a turn that blocks.
func (s *Sim) Sleep(d time.Duration) {
	s.mu.Lock()
	t := s.cur
	resume := make(chan struct{})
	t.resume = resume
	s.mu.Unlock()
	s.AfterFunc(d, func() {
		s.mu.Lock()
		s.ready = append(s.ready, t)
		s.mu.Unlock()
	})
	t.yield <- false
	<-resume
}

// Step runs one ready thing until it is over or parked. False: nothing is ready.
func (s *Sim) Step() bool {
	s.mu.Lock()
	if len(s.ready) == 0 {
		s.mu.Unlock()
		return false
	}
	i := s.rng.IntN(len(s.ready))
	t := s.ready[i]
	s.ready = slices.Delete(s.ready, i, i+1)
	s.cur = t
	s.steps++
	resume := t.resume
	t.resume = nil
	s.mu.Unlock()
	s.Note("step", strconv.Itoa(i))
	if resume != nil {
		close(resume)
	} else {
		go func() { // its own goroutine: a Goexit in it must not end the driver
			over := false
			defer func() {
				if !over {
					t.yield <- true
				}
			}()
			t.f()
			over = true
			t.yield <- true
		}()
	}
	<-t.yield
	s.mu.Lock()
	s.cur = nil
	s.mu.Unlock()
	return true
}

// Tick moves the clock to the next timer and fires it. False: there is none.
func (s *Sim) Tick() bool {
	s.mu.Lock()
	if len(s.timers) == 0 {
		s.mu.Unlock()
		return false
	}
	tm := s.timers[0]
	s.timers = s.timers[1:]
	s.now = tm.at
	s.mu.Unlock()
	s.Note("tick", strconv.FormatInt(tm.at.UnixNano(), 36))
	tm.f()
	return true
}

// Run steps and ticks until nothing is ready and no timer is left, at most limit steps. It reports whether it came to rest.
func (s *Sim) Run(limit int) bool {
	for range limit {
		if !s.Step() && !s.Tick() {
			return true
		}
	}
	return false
}

// Steps is how many things ran.
func (s *Sim) Steps() int { return s.steps }

// Idle tells whether nothing is ready and no timer is set.
func (s *Sim) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) == 0 && len(s.timers) == 0
}

// Note mixes something that happened into the trace.
func (s *Sim) Note(what ...string) {
	h := fnv.New64a()
	for _, w := range what {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	s.mu.Lock()
	s.trace = (s.trace ^ h.Sum64()) * 1099511628211
	s.mu.Unlock()
}

// Trace is a hash of all that happened, in its order: two runs of one seed have the same.
func (s *Sim) Trace() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trace
}
