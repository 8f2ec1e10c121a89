package watch

import (
	"context"
	"time"

	"github.com/acpod/acpod/actors/chaos/invariant"
	"github.com/acpod/acpod/actors/chaos/pod"
)

// equality compares what the pod has charged in all with what its parts account for. While the pod works the two readings are of
// different moments, so only a difference that stays the same for persistent samples and for as long as the given time is a breach. It
// tells whether there is none now.
func (s *State) equality(tree *pod.Node, lasts time.Duration) (equal bool) {
	diff, now := tree.Astray(), s.now()
	s.mu.Lock()
	s.astray.add(float64(diff), now)
	n, since := s.astray.n, s.astray.since
	s.mu.Unlock()
	switch {
	case diff == 0:
		s.Book.Exercise(invariant.Accounts)
	case n >= persistent && now.Sub(since) >= lasts:
		s.Book.Break(invariant.Accounts, []string{"pod"}, "%s: %d bytes are charged to the pod, and its parts account for %d: %d too many, the same for %s",
			s.Name, tree.Pod.BytesUsed, tree.Pod.BytesUsed-diff, diff, now.Sub(since).Round(time.Second))
	}
	return diff == 0
}

// quietPause is between two looks at a pod that nobody asks anything.
const quietPause = 200 * time.Millisecond

// Quiet is for a moment in which connections and sessions are there and nobody asks the pod anything: what is charged to it must come to
// be what its parts account for, at most within patience. It returns when it has, or has not.
func (s *State) Quiet(ctx context.Context, patience time.Duration) {
	for end := time.Now().Add(patience); ctx.Err() == nil; {
		over := time.Now().After(end)
		if tree, err := s.Pod.Tree(ctx); err == nil {
			lasts := homeless
			if over {
				lasts = 0
			}
			if s.equality(tree, lasts) {
				return
			}
		}
		if over {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(quietPause):
		}
	}
}
