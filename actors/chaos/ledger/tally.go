package ledger

import (
	"math"
	"sync"
	"time"
)

// Tally counts ends and keeps latencies in buckets of 1/16 of an octave: a quantile is at most 4.5 % too high.
type Tally struct {
	mu      sync.Mutex
	ends    map[string]int64
	buckets [buckets]int64
	n       int64
	max     time.Duration
}

const (
	perOctave = 16
	buckets   = 40 * perOctave // from 1 µs to 12 days
)

// NewTally makes an empty one.
func NewTally() *Tally { return &Tally{ends: map[string]int64{}} }

// Count counts an end without a latency.
func (t *Tally) Count(end string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[end]++
}

// Add counts an end that came after d.
func (t *Tally) Add(end string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[end]++
	t.n++
	t.max = max(t.max, d)
	at := 0
	if us := float64(d) / float64(time.Microsecond); us > 1 {
		at = min(buckets-1, int(math.Log2(us)*perOctave)+1)
	}
	t.buckets[at]++
}

// Latency is a summary in milliseconds.
type Latency struct {
	N   int64   `json:"n"`
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Latency gives the quantiles so far.
func (t *Tally) Latency() Latency {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Latency{t.n, t.quantile(0.5), t.quantile(0.9), t.quantile(0.99), float64(t.max) / float64(time.Millisecond)}
}

func (t *Tally) quantile(q float64) float64 {
	want := int64(math.Ceil(q * float64(t.n)))
	seen := int64(0)
	for at, n := range t.buckets {
		if seen += n; seen >= want && n > 0 {
			top := math.Exp2(float64(at)/perOctave) / 1000
			return min(top, float64(t.max)/float64(time.Millisecond))
		}
	}
	return 0
}

// Ends are the counts so far.
func (t *Tally) Ends() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	ends := make(map[string]int64, len(t.ends))
	for end, n := range t.ends {
		ends[end] = n
	}
	return ends
}
