package kernel

import "time"

// Op is what a supervisor decides about a child that exited.
type Op uint8

const (
	// Forget the child: it does not come back.
	Forget Op = iota
	// Restart it after Action.After, as a new generation.
	Restart
	// Escalate: the supervisor itself ends with Action.Cause.
	Escalate
)

// Action is one decision, as data; the kernel carries it out.
type Action struct {
	Op    Op
	Child string
	After time.Duration
	Cause error
}

// supervision is the table of one supervisor. It has no clock, no goroutine and no children, only what it must remember:
// it is called with the time, and says what to do.
type supervision struct {
	intensity Intensity
	random    func() float64
	children  map[string]*supervised
	restarts  []time.Time // within the window, oldest first
}

type supervised struct {
	policy  Policy
	backoff Backoff
	failed  int       // failures in a row
	since   time.Time // start of the generation
}

func newSupervision(i Intensity, random func() float64) *supervision {
	if i.Max <= 0 {
		i.Max = DefaultIntensity.Max
	}
	if i.Window <= 0 {
		i.Window = DefaultIntensity.Window
	}
	return &supervision{intensity: i, random: random, children: map[string]*supervised{}}
}

// Add enters a child that is about to start.
func (s *supervision) Add(now time.Time, child string, p Policy, b Backoff) {
	s.children[child] = &supervised{policy: p, backoff: b.orDefault(), since: now}
}

// Started notes when a further generation began to run.
func (s *supervision) Started(now time.Time, child string) {
	if c := s.children[child]; c != nil {
		c.since = now
	}
}

// Exited decides what follows the end of a child's generation. The intensity is the supervisor's: restarts of all its children count.
func (s *supervision) Exited(now time.Time, child string, e end) []Action {
	c := s.children[child]
	if c == nil {
		return nil
	}
	if e.retired || c.policy == Temporary || c.policy == Transient && !e.crashed {
		delete(s.children, child)
		return []Action{{Op: Forget, Child: child}}
	}
	keep := s.restarts[:0]
	for _, t := range s.restarts {
		if now.Sub(t) < s.intensity.Window {
			keep = append(keep, t)
		}
	}
	s.restarts = keep
	if len(s.restarts) >= s.intensity.Max {
		delete(s.children, child)
		return []Action{{Op: Forget, Child: child},
			{Op: Escalate, Child: child, Cause: &IntensityError{Child: child, Restarts: s.intensity.Max, Cause: e.cause}}}
	}
	s.restarts = append(s.restarts, now)
	if now.Sub(c.since) >= c.backoff.Max { // it ran well for a while: the row of failures is over
		c.failed = 0
	}
	after := c.backoff.wait(c.failed, s.random())
	c.failed++
	return []Action{{Op: Restart, Child: child, After: after}}
}
