package audit

import "sync"

// maxOutcomes bounds the outcomes that are counted apart. They are words of the code, so what is over it is a fault, and stands
// under [OtherOutcome].
const maxOutcomes = 64

// OtherOutcome is the outcome of calls beyond the outcomes that are counted apart.
const OtherOutcome = "other"

// outcomes counts how calls ended, those that were refused and never sent included. The zero value is ready.
type outcomes struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (o *outcomes) count(outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[string]int64{}
	}
	if _, known := o.counts[outcome]; !known && len(o.counts) >= maxOutcomes {
		outcome = OtherOutcome
	}
	o.counts[outcome]++
}

// Outcomes is how many calls have ended so far, by outcome, whether or not their records found room. From any goroutine.
func (r *Recorder) Outcomes() map[string]int64 {
	r.ends.mu.Lock()
	defer r.ends.mu.Unlock()
	out := make(map[string]int64, len(r.ends.counts))
	for outcome, n := range r.ends.counts {
		out[outcome] = n
	}
	return out
}
