package provider

import (
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/acpod/acpod/actors/capability"
	"github.com/acpod/acpod/runtime/kernel"
)

// asking is somebody who waits for a list.
type asking struct {
	question *kernel.Question
	want     capability.Want
	owed     bool // an attempt, although the last one has just failed
}

// tries bounds the attempts at a server in backoff that are made for those who only look for something. A call that names the server is
// tried each time: one at a time, and the breaker bounds those.
type tries struct{ searched, guessed *rate.Limiter }

func newTries() tries {
	return tries{rate.NewLimiter(1, 1), rate.NewLimiter(1, 3)}
}

// allow says whether a server in backoff is tried at once.
func (t tries) allow(want capability.Want, now time.Time) bool {
	switch want {
	case capability.Searched:
		return t.searched.AllowN(now, 1)
	case capability.Guessed:
		return t.guessed.AllowN(now, 1)
	}
	return true
}

// discover answers who waits for a list, or lets it wait where one is coming or may be tried for: at once, also where a backoff is pending,
// and once. Who comes while an attempt is under way has part in it.
func (a *actor) discover(c *kernel.Ctx, q asking) {
	a.use(c)
	n := a.conn
	admitted, _ := a.breaker.admits(c.Now())
	switch {
	case a.list.list != nil, n == nil && !admitted,
		n != nil && n.phase == ready && !n.draining: // its list is empty, and not nil
		q.question.Answer(capability.Discovered{}, nil)
		return
	case (n == nil || n.phase == ending) && a.retry != nil:
		q.owed = admitted && a.tries.allow(q.want, c.Now())
		if !q.owed {
			q.question.Answer(capability.Discovered{}, nil)
			return
		}
	}
	a.asking = append(a.asking, q)
	if n == nil {
		a.breaker.probe()
		a.wake(c)
	}
}

// owed reports that somebody waits for an attempt although a backoff is pending.
func (a *actor) owed() bool {
	return slices.ContainsFunc(a.asking, func(q asking) bool { return q.owed })
}

// meant reports that a call waits for the list.
func (a *actor) meant() bool {
	return slices.ContainsFunc(a.asking, func(q asking) bool { return q.want == capability.Meant })
}

func (a *actor) answerAsking() {
	for _, q := range a.asking {
		q.question.Answer(capability.Discovered{}, nil)
	}
	a.asking = nil
}
