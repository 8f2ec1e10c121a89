package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/acpod/acpod/protocol/acp"
)

// LearnWait is how long a client's initialize waits at most for what the agent offers.
const LearnWait = 5 * time.Second

// Learned holds what the agent said of itself: once at start, when the supervisor runs it in the background, and again
// whenever a session's agent is ready. Safe from any goroutine.
type Learned struct {
	info  atomic.Pointer[acp.AgentInfo]
	tried chan struct{} // closed when the first attempt has ended, well or not
	done  atomic.Bool
}

func newLearned() *Learned { return &Learned{tried: make(chan struct{})} }

// Now returns what is known without waiting: nil = nothing, the baseline holds. final is false while the first
// attempt is under way, so that waiting might bring more.
func (l *Learned) Now() (info *acp.AgentInfo, final bool) {
	info = l.info.Load()
	return info, info != nil || l.done.Load()
}

// Wait waits for the first attempt, at most [LearnWait] or until the context ends, and returns what is known then; nil
// = the baseline. It blocks: an actor calls it through c.Go.
func (l *Learned) Wait(ctx context.Context) *acp.AgentInfo {
	if info, final := l.Now(); final {
		return info
	}
	timer := time.NewTimer(LearnWait)
	defer timer.Stop()
	select {
	case <-l.tried:
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.info.Load()
}

// learn records one attempt; nil = it failed, and what was known stays.
func (l *Learned) learn(info *acp.AgentInfo) {
	if info != nil {
		l.info.Store(info)
	}
	if l.done.CompareAndSwap(false, true) {
		close(l.tried)
	}
}
